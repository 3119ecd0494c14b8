"""Unused and incomplete indexes, reserved names, nested values, missing stamps (ST3, ST4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.syntax.reserved_words import RESERVED

from .findings import Finding, make_finding
from .key_overlap import EntityPath

_NESTED = ("L", "M")
#: In a table with at least this many entities, report a single entity with nested values.
_ENOUGH = 3


def check_indexes(table: Table, by_index: Mapping[str | None, list[EntityPath]]) -> Iterator[Finding]:
    """Find indexes that no entity uses, and index keys that an item may lack."""
    declared = {index: [key for key in keys if not key.implied] for index, keys in by_index.items()}
    for index in table.indexes.values():
        if not declared.get(index.name):
            yield make_finding(
                "ST301",
                "warning",
                f"No entity of table {table.name!r} has a key on index {index.name!r}, which stays empty; "
                f"remove it, or declare a Key(..., index={index.name!r}).",
                table=table.name,
            )
    for key in (each for index, keys in declared.items() if index for each in keys):
        plan, path = key.plan, key.path
        parts = [part for part in path.parts if part != plan.tenant]
        if parts and all(_is_optional(key, part) for part in parts):
            yield make_finding(
                "ST302",
                "note",
                f"{plan.name}.{path.name} is not in index {key.index!r} if {' or '.join(parts)} is None, "
                f"and {'it' if len(parts) == 1 else 'each'} may be None; make "
                f"{'it' if len(parts) == 1 else 'them'} required, unless the index is meant to be sparse.",
                plan=plan,
            )


def check_deletion(plan: Plan) -> Iterator[Finding]:
    """Find indexes in which a soft delete by an older release would not be seen."""
    if plan.deletion is None:
        return
    for path in plan.indexes:
        index = path.index
        # KEYS_ONLY lacks the tag too, so the store reads the items from the table.
        if index is None or isinstance(index.projection, str) or not path.derived:
            continue
        if DELETED_AT not in plan.table.projection(index)["NonKeyAttributes"]:
            yield make_finding(
                "ST304",
                "note",
                f"Index {index.name!r} does not project {DELETED_AT}, so while a release runs that does not "
                f"know {plan.name}.{path.name}, its soft deletes stay visible there; add {DELETED_AT!r} to "
                f"the projection, or run a backfill when that release is gone.",
                plan=plan,
            )


def _is_optional(key: EntityPath, part: str) -> bool:
    for layout in (key.path.partition, key.path.sort):
        if isinstance(layout, TemplateLayout) and part in layout.fields:
            return part in layout.template.optional
    return key.plan.attributes[part].optional


def check_attributes(plan: Plan) -> Iterator[Finding]:
    """Find attribute names that other programs must alias in their expressions."""
    words = [attribute.wire for attribute in plan.attributes.values() if attribute.wire.upper() in RESERVED]
    if words:
        yield make_finding(
            "ST401",
            "note",
            f"{plan.name} stores {', '.join(words)}, which DynamoDB reserves: solotable aliases them, other "
            f"programs must write #name; if other programs read the table, choose other attribute names "
            f"with Attr(...).",
            plan=plan,
        )


def check_stamps(plan: Plan) -> Iterator[Finding]:
    """Find entities without the timestamps that the library of an adopted table requires."""
    preset = plan.table.preset
    if preset is None or not preset.stamps_required:
        return
    missing = [
        f"Annotated[datetime | None, {marker}()] = None, stored as {name}"
        for marker, name in (("Created", preset.created), ("Updated", preset.updated))
        if name not in plan.by_wire
    ]
    if missing:
        yield make_finding(
            "ST403",
            "warning",
            f"{preset.library} cannot read an item without its timestamps, which {plan.name} does not "
            f"declare; add {' and '.join(missing)}, unless its entities have no timestamps.",
            plan=plan,
        )


def check_nesting(table: Table) -> Iterator[Finding]:
    """Find nested values in a flat table, or in one entity when all others are flat."""
    nested = {
        plan.tag: [each.field for each in plan.attributes.values() if each.kind in _NESTED]
        for plan in table.plans.values()
    }
    nesting = [tag for tag, fields in nested.items() if fields]
    alone = len(nesting) == 1 and len(nested) >= _ENOUGH
    for tag in nesting if table.flat or alone else ():
        plan = table.plans[tag]
        why = f"table {table.name!r} is flat" if table.flat else "every other entity is flat"
        yield make_finding(
            "ST402",
            "warning" if table.flat else "note",
            f"{plan.name} stores nested values in {', '.join(nested[tag])} although {why}; make them "
            f"separate items or attributes, or one string with Json().",
            plan=plan,
        )
