"""Traits as they are declared on an entity: counters, history, outbox, soft delete."""
