"""Neighbourhoods, their members, personal sites and builds."""

from . import entities
from .table import community

__all__ = ["community", "entities"]
