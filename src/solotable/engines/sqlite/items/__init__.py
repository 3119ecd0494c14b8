"""Stored items: rows, keys, change records and expiry times."""
