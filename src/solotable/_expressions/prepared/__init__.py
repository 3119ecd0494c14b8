"""Updates whose values are filled in by each request: checked once, compiled after a few uses."""
