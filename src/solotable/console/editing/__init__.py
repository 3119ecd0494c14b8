"""Editing without loss: an item as a form or as DynamoDB JSON, and guarded saves."""
