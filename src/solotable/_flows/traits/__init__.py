"""Flows of traits: counters, history, leases, names, outbox, soft deletes and unique fields."""
