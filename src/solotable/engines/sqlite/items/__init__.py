"""Stored items: rows, key bytes, streams and expiry times."""
