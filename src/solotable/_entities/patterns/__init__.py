"""Access patterns, queries, conditions and the cost of requests."""
