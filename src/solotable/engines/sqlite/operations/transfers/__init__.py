"""Exports to and imports from buckets: the checks, descriptions and lists."""
