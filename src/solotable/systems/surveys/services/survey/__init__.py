"""Surveys, their parts, batches of changes, and snapshots of their configuration."""
