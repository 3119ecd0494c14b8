"""The router: decisions, fences, switches under load."""
