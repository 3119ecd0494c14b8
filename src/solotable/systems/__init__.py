"""Whole applications on the store: each is entities, services and routes of its own."""
