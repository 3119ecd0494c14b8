"""Jobs of operators: the purge of accounts and of what was deleted."""
