"""Writes: planned, merged with their derived writes, and committed."""
