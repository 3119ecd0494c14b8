"""Mappings: how the items of source tables become the items of one table, and the way back."""

from .check import CheckReport, Problem
from .inverse import ReversedMapping
from .mapping import Mapping
from .outputs import DeadLetter, Output, OutputKey, Outputs, Part, Snapshot, output_key
from .source import Source
from .stable_ids import stable_id

__all__ = [
    "CheckReport",
    "DeadLetter",
    "Mapping",
    "Output",
    "OutputKey",
    "Outputs",
    "Part",
    "Problem",
    "ReversedMapping",
    "Snapshot",
    "Source",
    "output_key",
    "stable_id",
]
