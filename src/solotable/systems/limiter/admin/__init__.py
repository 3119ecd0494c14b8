"""Limits, entities and namespaces, and the audit trail of their changes."""
