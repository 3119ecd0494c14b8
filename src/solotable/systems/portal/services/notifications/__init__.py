"""The inbox of a user, and the worker that fills it."""
