"""Exports to and imports from buckets: their records, and the threads that run them."""
