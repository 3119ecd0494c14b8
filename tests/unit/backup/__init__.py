"""Backups over an API."""
