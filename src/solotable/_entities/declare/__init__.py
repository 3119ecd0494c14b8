"""Declarations: tables, entities, fields, and the plan that a class compiles to."""
