"""Applications on the store, each with its entities, services and routes."""
