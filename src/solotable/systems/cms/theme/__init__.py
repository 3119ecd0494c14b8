"""The default theme of a tenant's site: blocks, brand colours, words, templates and styles."""
