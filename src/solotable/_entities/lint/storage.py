"""Unused indexes, absent index keys, reserved names and nested values (ST301, ST302, ST401, ST402)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._expressions.syntax.reserved_words import RESERVED

from .findings import Finding, found
from .key_overlap import EntityKey

_NESTED = ("L", "M")
#: With this many entities, a single one with nested values is reported.
_ENOUGH = 3


def check_indexes(table: Table, by_index: Mapping[str | None, list[EntityKey]]) -> Iterator[Finding]:
    """Find indexes that no entity uses, and index keys that an item may lack."""
    declared = {index: [each for each in places if not each.implied] for index, places in by_index.items()}
    for index in table.indexes.values():
        if not declared.get(index.name):
            yield found(
                "ST301",
                "warning",
                f"No entity of table {table.name!r} has a key on index {index.name!r}, which stays empty; "
                f"remove it, or declare a Key(..., index={index.name!r}).",
                table=table.name,
            )
    for place in (each for index, places in declared.items() if index for each in places):
        plan, path = place.plan, place.path
        parts = [part for part in path.parts if part != plan.tenant]
        if parts and all(plan.attributes[part].optional for part in parts):
            yield found(
                "ST302",
                "note",
                f"{plan.name}.{path.name} is left out of index {place.index!r} as soon as one of "
                f"{', '.join(parts)} is None, and all of them may be; make them required unless the index is "
                f"meant to be sparse.",
                plan=plan,
            )


def check_attributes(plan: Plan) -> Iterator[Finding]:
    """Find attribute names that expressions of other programs must alias."""
    words = [attribute.wire for attribute in plan.attributes.values() if attribute.wire.upper() in RESERVED]
    if words:
        yield found(
            "ST401",
            "note",
            f"{plan.name} stores {', '.join(words)}, which DynamoDB reserves: the library aliases them, "
            f"other programs must write #name; give them other attribute names with Attr(...) if such "
            f"programs read the table.",
            plan=plan,
        )


def check_nesting(table: Table) -> Iterator[Finding]:
    """Find nested values in a flat table, or in the only entity that has them."""
    nested = {
        plan.tag: [each.field for each in plan.attributes.values() if each.kind in _NESTED]
        for plan in table.plans.values()
    }
    nesting = [tag for tag, fields in nested.items() if fields]
    alone = len(nesting) == 1 and len(nested) >= _ENOUGH
    for tag in nesting if table.flat or alone else ():
        plan = table.plans[tag]
        why = f"table {table.name!r} is flat" if table.flat else "every other entity is flat"
        yield found(
            "ST402",
            "warning" if table.flat else "note",
            f"{plan.name} stores nested values in {', '.join(nested[tag])} although {why}; make them "
            f"separate items or attributes, or one string with Json().",
            plan=plan,
        )
