"""Entities: Pydantic models with key templates, index keys and named access patterns.

The package sends no requests, reads no clock and does not know the engines.
"""
