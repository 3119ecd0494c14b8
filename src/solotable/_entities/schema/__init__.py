"""Schema versions of stored items, and the comparison of declared tables with live ones."""
