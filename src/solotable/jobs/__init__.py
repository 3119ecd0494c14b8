"""Jobs: long work over a table, with progress, checkpoints in the table itself, and resuming after a kill."""
