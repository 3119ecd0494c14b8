"""Traits that an entity declares: counters, history, names, outbox, soft delete, unique fields."""
