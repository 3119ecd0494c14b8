"""Formats that the CMS accepts: slugs, links, MIME types, e-mail addresses, free JSON."""
