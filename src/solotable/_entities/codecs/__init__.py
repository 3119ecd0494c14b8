"""Codecs between field values and canonical DynamoDB values."""
