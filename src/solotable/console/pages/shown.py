"""Items, entities and counts as plain values that templates and JSON share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from solotable._entities.declare.table import Table
from solotable._entities.lint import ON_REQUEST, Finding, lint
from solotable._protocol.capacity import read_units, write_units
from solotable._values import Item, item_size
from solotable.console.data.catalog import Facet, LiveTable
from solotable.console.data.census import TableCount
from solotable.console.data.item_pages import PAGE_BYTES, ItemPage
from solotable.console.paths import encode_start
from solotable.console.state import Console
from solotable.console.table_links import TableLinks

MOST_COLUMNS = 7
#: Attributes that a row does not repeat: they are its key, or the store's own.
_NAMES = ("name", "title", "label", "subject", "email", "summary", "description", "status", "text")


@cache
def lint_findings(table: Table) -> tuple[Finding, ...]:
    """Return the linter's findings; declarations do not change while the console runs."""
    return tuple(each for each in lint(table) if each.code not in ON_REQUEST)


def show_facet(facet: Facet) -> dict[str, Any]:
    """Return an entity with its colour."""
    return {"name": facet.name, "colour": facet.colour, "monogram": facet.monogram}


def show_counts(table: LiveTable, counted: TableCount | None) -> dict[str, Any]:
    """Return the counts of a table by entity; without a sample, the entities alone."""
    if counted is None:
        facets = [show_facet(each) | {"items": None, "bytes": None, "share": None} for each in table.facets]
        return {"known": False, "facets": facets}
    total = counted.bytes or 1
    return {
        "known": True,
        "exact": counted.exact,
        "sampled": counted.sampled,
        "time": counted.time,
        "facets": [
            show_facet(each.facet)
            | {"items": each.items, "bytes": each.bytes, "share": 100 * each.bytes / total}
            for each in counted.counts
        ],
    }


def show_cost(page: ItemPage) -> dict[str, Any]:
    """Return what a page of items has read."""
    return {
        "operation": page.operation,
        "index": page.index,
        "read": page.read,
        "shown": len(page.items),
        "rcu": page.rcu,
        "after": None if page.after is None else encode_start(page.after),
    }


def show_item(table: LiveTable, item: Item, links: TableLinks) -> dict[str, Any]:
    """Return an item with its entity, key, size and page."""
    facet = table.facet_of(item)
    return {
        "facet": show_facet(facet),
        "key": [str(item[part.name][part.kind]) for part in table.keys],
        "item": item,
        "bytes": item_size(item),
        "href": links.item(table, facet.name, item),
        "label": label_of(table, item),
    }


def label_of(table: LiveTable, item: Item) -> str:
    """Return a few words about an item: the values of attributes that name things."""
    keys = {part.name for part in (*table.keys, *(part for index in table.indexes for part in index.parts))}
    found = [
        item[name]["S"]
        for name in _NAMES
        if name not in keys and "S" in item.get(name, {}) and item[name]["S"].strip()
    ]
    return ", ".join(found[:3])[:120]


def columns_of(table: LiveTable, facet: Facet, items: Sequence[Item], most: int) -> list[dict[str, Any]]:
    """Return the attributes to show as columns: in declaration order, or by how many items have them."""
    hidden = {part.name for part in table.keys} | {
        part.name for index in table.indexes for part in index.parts
    }
    if facet.plan is not None:
        plan = facet.plan
        hidden.add(plan.table.internal_tag)
        # The column of the key has these values.
        hidden |= {plan.attributes[each].wire for each in plan.primary.parts if each in plan.attributes}
        names = [each.wire for each in plan.attributes.values() if each.wire not in hidden]
    else:
        counts: dict[str, int] = {}
        for item in items:
            for name in item:
                counts[name] = counts.get(name, 0) + 1
        names = sorted((each for each in counts if each not in hidden), key=lambda each: -counts[each])
    return [{"name": name, "kind": _kind(name, items)} for name in names[:most]]


def _kind(name: str, items: Iterable[Item]) -> str:
    return next((next(iter(item[name])) for item in items if name in item), "")


def write_cost(table: LiveTable, item: Item) -> dict[str, Any]:
    """Return the write units of an item: of the table, and of each index that has it."""
    whole = write_units(item_size(item), transactional=False)
    indexes = {index.name: whole for index in table.indexes if all(part.name in item for part in index.parts)}
    return {"table": whole, "indexes": indexes, "total": whole + sum(indexes.values())}


def scan_cost(console: Console, table: LiveTable, most_bytes: int = PAGE_BYTES) -> dict[str, Any]:
    """Return what reading part of a table would cost, before it is read."""
    read = min(table.bytes, most_bytes)
    units = read_units(read, consistent=False)
    return {"rcu": units, "dollars": console.read_dollars(units), "bytes": read}
