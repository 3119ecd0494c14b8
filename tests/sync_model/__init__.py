"""Sync on a table with DynamoDB's documented isolation and no more: a seeded model, and planted bugs."""
