"""Steps of long jobs over a table: backfill, purge."""
