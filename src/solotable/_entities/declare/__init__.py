"""Declarations of tables, entities and fields, and the compiled plan of an entity class."""
