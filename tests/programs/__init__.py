"""Ordinary programs for Amazon DynamoDB. None of them knows solotable; a test runs them through it."""
