"""The workflow of a migration: its control record, its states, its fenced cursors and its fences."""
