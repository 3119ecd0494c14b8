"""Background and offline work on a file: index backfill, TTL, compact, checkup."""
