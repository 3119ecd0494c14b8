"""Measurements of the data patterns and their jobs."""
