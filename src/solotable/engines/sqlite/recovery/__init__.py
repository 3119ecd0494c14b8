"""Restore tables: undo changes, copy past states, keep backups."""
