"""Full-text search over content: a port, an SQLite FTS5 adapter, an OpenSearch adapter, an indexer."""
