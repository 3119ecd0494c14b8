"""Exports to and imports from buckets."""
