"""Maintenance of a database file: index backfill, TTL sweeper, compaction, checkup."""
