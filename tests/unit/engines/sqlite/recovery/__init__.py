"""Recovery: windows, copies, backups, restores in place."""
