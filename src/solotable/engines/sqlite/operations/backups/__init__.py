"""Continuous backups, backups on demand, and restores."""
