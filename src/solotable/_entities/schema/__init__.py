"""Schema versions of stored items, and declared tables against live ones."""
