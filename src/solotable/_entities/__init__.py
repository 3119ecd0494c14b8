"""Entities: Pydantic models with key templates, index keys and named access patterns.

Pure declarations: this room sends nothing, reads no clock and knows no engine.
"""
