"""Merge the written items of an overlay into a page of a Query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from solotable._entities.declare.table import Table
from solotable._expressions.ast import Attr, BeginsWith, Between, Compare, Condition, Const, KeyTerm
from solotable._expressions.evaluate import evaluate
from solotable._expressions.project import project
from solotable._protocol.replies import Page
from solotable._protocol.requests import Query
from solotable._values import Item, ordered_bytes

_Position = tuple[bytes, ...]


def merged_page(
    request: Query, table: Table, page: Page, stored: Sequence[Item], written: Sequence[Item]
) -> Page:
    """Return a page of stored items together with the written items in its range."""
    names = _key_names(request, table)
    first = None if request.start is None else _position(request.start, names)
    last = None if page.last_key is None else _position(page.last_key, names)
    added = [
        item
        for item in written
        if all(name in item for name in names)
        and all(evaluate(_condition(term), item) for term in request.key)
        and _is_between(_position(item, names), first, last, forward=request.forward)
        and (request.filter is None or evaluate(request.filter, item))
    ]
    items = sorted((*stored, *added), key=lambda item: _position(item, names), reverse=not request.forward)
    last_key = page.last_key
    if request.limit is not None and len(items) > request.limit:
        items = items[: request.limit]
        last_key = {name: items[-1][name] for name in names}
    shown: list[Any] | None = list(items)
    if request.projection is not None:
        shown = [project(request.projection, item) for item in items]
    if request.select == "COUNT":
        shown = None
    return replace(page, items=shown, count=len(items), scanned=page.scanned + len(added), last_key=last_key)


def _key_names(request: Query, table: Table) -> tuple[str, ...]:
    """Return the key attributes of the queried index or table, then those of the primary key."""
    if request.index is None:
        return table.key_names
    index = table.indexes[request.index]
    return tuple(dict.fromkeys((*(each.name for each in (*index.partition, *index.sort)), *table.key_names)))


def _position(item: Item, names: Sequence[str]) -> _Position:
    return tuple(ordered_bytes(*next(iter(item[name].items()))) for name in names)


def _is_between(
    position: _Position, first: _Position | None, last: _Position | None, *, forward: bool
) -> bool:
    if forward:
        return (first is None or position > first) and (last is None or position <= last)
    return (first is None or position < first) and (last is None or position >= last)


def _condition(term: KeyTerm) -> Condition:
    attribute = Attr((term.name,))
    values = [Const(value) for value in term.values]
    if term.operator == "BETWEEN":
        return Between(attribute, values[0], values[1])
    if term.operator == "begins_with":
        return BeginsWith(attribute, values[0])
    return Compare(term.operator, attribute, values[0])
