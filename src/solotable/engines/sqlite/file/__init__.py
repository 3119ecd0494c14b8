"""The SQLite file: connections, locks, forks and group commit."""
