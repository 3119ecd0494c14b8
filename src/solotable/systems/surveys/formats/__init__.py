"""Formats of the surveys: order keys, texts and dates."""
