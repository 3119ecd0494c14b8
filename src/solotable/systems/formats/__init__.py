"""Formats of input that several systems accept."""
