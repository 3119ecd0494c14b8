"""Replies of statements: items with the selected columns, and the total capacity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from solotable._expressions.evaluate import evaluate, fetch
from solotable._partiql import Column, Reads
from solotable._protocol.engine import Pause
from solotable._protocol.json_codec import loads
from solotable._protocol.replies import Capacity, SomeItem, decode_items
from solotable._values import Item


def select_columns(found: Sequence[SomeItem], reads: Reads, pause: Pause) -> list[SomeItem]:
    """Return the items that match the statement, with its columns only."""
    if reads.residue is None and reads.columns is None:
        return list(found)
    selected: list[SomeItem] = []
    for some in found:
        pause(len(some))
        selected += [
            in_columns(item, reads.columns)
            for item in decode_items((some,))
            if reads.residue is None or evaluate(reads.residue, item, pause)
        ]
    return selected


def in_columns(item: Item, columns: tuple[Column, ...] | None) -> Item:
    """Return the item with these columns; None selects all."""
    if columns is None:
        return item
    values = ((column.name, fetch(column.path, item)) for column in columns)
    return {name: value for name, value in values if value is not None}


def as_item(raw: SomeItem) -> Item:
    """Return an item, decoded if it is raw JSON."""
    if isinstance(raw, bytes):
        item: Item = loads(raw)
        return item
    return raw


def merge_by_table(capacities: list[Capacity]) -> list[Capacity]:
    """Return one report for each table, in the order of first use."""
    tables: dict[str, Capacity] = {}
    for capacity in capacities:
        name = capacity["TableName"]
        tables[name] = _sum(tables[name], capacity) if name in tables else capacity
    return list(tables.values())


def total(capacities: list[Capacity]) -> Capacity | None:
    """Return the report on reads of one table."""
    return merge_by_table(capacities)[0] if capacities else None


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    total = dict(one)
    for name, value in other.items():
        if name not in total:
            total[name] = value
        elif isinstance(value, dict):
            total[name] = _sum(total[name], value)
        elif not isinstance(value, str):
            total[name] += value
    return total
