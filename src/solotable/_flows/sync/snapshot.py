"""The items of a space: the ranges of the table that hold them, and their values for clients."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import KeyTerm
from solotable._flows.jobs.cascade import shard_keys
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import load_keys
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Query
from solotable._values import Item
from solotable._values.limits import LONGEST_SORT_KEY
from solotable.errors import DataError

from .entries import client_value, is_deleted, space_of, space_version
from .spaces import Space

log = logging.getLogger("solotable.sync")


@dataclass(frozen=True, slots=True)
class SpaceItem:
    """An item of a space: its key and value for clients; no value for an item that they do not see."""

    sort: str
    version: int
    key: str | None
    value: str = ""


def space_ranges(space: Space) -> list[tuple[KeyTerm, ...]]:
    """Return key conditions for all items of a space, each item in one of them."""
    found: dict[str, dict[str, tuple[KeyTerm, ...]]] = {}
    for plan in space.table.plans.values():
        values = None if plan.synced is None else plan.synced.space_template.parse(space.name)
        if values is None or (plan.tenant is None) != (space.tenant is None):
            continue
        if plan.tenant is not None:
            values[plan.tenant] = space.tenant
        for terms in shard_keys(plan.primary, values):
            partition, *sort = terms
            prefix = sort[0].values[0].get("S", "") if sort else ""
            found.setdefault(repr(partition), {})[prefix] = terms
    return [terms for ranges in found.values() for terms in _without_nested(ranges)]


def _without_nested(ranges: dict[str, tuple[KeyTerm, ...]]) -> Iterator[tuple[KeyTerm, ...]]:
    """Yield the ranges that no other one contains."""
    for prefix, terms in sorted(ranges.items()):
        contained = any(
            prefix != other and prefix.startswith(other) and _is_open(ranges[other]) for other in ranges
        )
        if not contained:
            yield terms


def _is_open(terms: Sequence[KeyTerm]) -> bool:
    return len(terms) == 1 or terms[1].operator == "begins_with"


def has_position(space: Space, number: int, sort: str | None) -> bool:
    """Return whether a page of a space can begin after a sort key in one of its ranges."""
    ranges = space_ranges(space)
    if number >= len(ranges) or sort is None:
        return number <= len(ranges) and sort is None
    try:
        size = len(sort.encode())
    except UnicodeEncodeError:
        return False
    _, *others = ranges[number]
    prefix = others[0].values[0].get("S", "") if others else ""
    return 0 < size <= LONGEST_SORT_KEY and sort.startswith(prefix)


def read_page(
    scope: Scope, space: Space, terms: tuple[KeyTerm, ...], after: str | None, limit: int
) -> Flow[tuple[list[SpaceItem], str | None]]:
    """Return the next items of a range, and the sort key after which the rest begins; None at its end."""
    table = space.table
    assert table.sort is not None
    start: Item | None = None
    if after is not None:
        start = {table.partition.name: terms[0].values[0], table.sort.name: {"S": after}}
    request = Query(table=scope.table(table), key=terms, start=start, limit=limit, consistent=True)
    page = yield from send(request, scope.retries)
    items = decode_items(page.items or ())
    found: list[SpaceItem] = []
    for item in items:
        plan = table.recognise(item)
        if plan is None or plan.synced is None:
            continue
        if plan.loads_keys:
            yield from load_keys(plan, [item])
        found.append(_space_item(plan, space, item, item[table.sort.name]["S"]))
    return found, page.last_key[table.sort.name]["S"] if page.last_key else None


def highest_version(scope: Scope, space: Space) -> Flow[int]:
    """Return the highest version of an item in a space: an imported item brings that of another table."""
    highest = 0
    for terms in space_ranges(space):
        start: Item | None = None
        while True:
            request = Query(table=scope.table(space.table), key=terms, start=start, consistent=True)
            page = yield from send(request, scope.retries)
            highest = max(highest, *(space_version(item) for item in decode_items(page.items or ())), 0)
            start = page.last_key
            if not start:
                break
    return highest


def _space_item(plan: Plan, space: Space, item: Item, sort: str) -> SpaceItem:
    version = space_version(item)
    hidden = SpaceItem(sort, version, None)
    if is_deleted(plan, item):
        return hidden
    try:
        entity = plan.decode(item)
        if space_of(plan, entity.__dict__) != space:
            return hidden
        assert plan.synced is not None
        return SpaceItem(
            sort, version, plan.synced.key_template.format(entity.__dict__), client_value(plan, entity)
        )
    except DataError as error:
        # One damaged item must not stop every client of the space.
        log.error("clients do not get the %s %s: %s", plan.name, sort, error)
        return hidden
