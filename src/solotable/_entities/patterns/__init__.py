"""Access patterns, queries, conditions and their cost."""
