"""Live migrations: from tables of any shape to entities, without losing a write."""
