"""Convert PartiQL statements (SELECT, INSERT, UPDATE, DELETE) to DynamoDB requests.

All functions are pure. A text outside the grammar raises DynamoDB's error.
"""

from .ast import Parsed
from .keys import Schema
from .plan import Column, Reads, check_where, plan, plan_check, plan_get
from .syntax.parse import parse_statement

__all__ = [
    "Column",
    "Parsed",
    "Reads",
    "Schema",
    "check_where",
    "parse_statement",
    "plan",
    "plan_check",
    "plan_get",
]
