"""Recognise the entity of a stored item: by its type tag, or by the templates of its primary key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Compare,
    Condition,
    Const,
    Exists,
    In,
    Not,
    Or,
    TypeIs,
)
from solotable._values import Item
from solotable.errors import DataError, DeclarationError

from .table import HISTORY_TAG, INTERNAL_KINDS, REDIRECT_TAG

if TYPE_CHECKING:
    from .plan import Plan
    from .table import Table

#: The first character of the type tags of internal items, such as locks.
INTERNAL = "_"
#: The start of the type tags of internal items under keys of their entity: snapshots and redirects.
_BESIDE = (HISTORY_TAG, REDIRECT_TAG)


def tag_of(table: Table, item: Item) -> str | None:
    """Return the type tag of an item; None without one, or if it is not a string."""
    value = item.get(table.internal_tag)
    return None if value is None else value.get("S")


def is_internal(table: Table, item: Item) -> bool:
    """Return whether an item is an internal item of the store, such as a lock."""
    tag = tag_of(table, item)
    if tag is None or not tag.startswith(INTERNAL):
        return False
    if table.tag is not None or tag.startswith(_BESIDE):
        return True
    # Without a declared tag, the attribute may be another program's.
    partition = item.get(table.partition.name, {}).get("S", "")
    return partition.partition("#")[0] in INTERNAL_KINDS


def recognise(table: Table, item: Item) -> Plan | None:
    """Return the plan of an item's entity; None for an internal item, or if no entity matches."""
    tag = tag_of(table, item)
    if tag is not None and table.tag is not None:
        return table.plans.get(tag)
    if table.tag_required or is_internal(table, item):
        return None
    return next(matching(table, item), None)


def matching(table: Table, item: Item) -> Iterator[Plan]:
    """Yield the entities whose primary key matches that of an item."""
    return (plan for plan in table.plans.values() if matches_key(plan, item))


def matches_key(plan: Plan, item: Item) -> bool:
    """Return whether the primary key of an item is one of this entity."""
    try:
        return plan.arguments_of(item) is not None
    except DataError:
        return False


def is_entity(table: Table, tags: Sequence[str]) -> Condition:
    """Return the condition of a write that the stored item has one of these tags, or none.

    The key of the write is a key of the entity, and no other entity of the table can have it.
    """
    exists = Exists((table.partition.name,))
    if table.tag is None:
        tag = Attr((table.internal_tag,))
        return And((exists, *(Not(BeginsWith(tag, Const({"S": start}))) for start in _BESIDE)))
    tagged = _has_tag(table.tag, tags)
    return tagged if table.tag_required else Or((tagged, And((exists, _is_untagged(table.tag)))))


def entity_filter(table: Table, tags: Sequence[str]) -> Condition | None:
    """Return the filter of a Query; it may let other entities pass if the table does not require tags.

    DynamoDB: the filter of a Query cannot name its key attributes.
    """
    if table.tag is None:
        return None
    tagged = _has_tag(table.tag, tags)
    return tagged if table.tag_required else Or((tagged, _is_untagged(table.tag)))


def scan_filter(table: Table, tags: Sequence[str], primary: AccessPath) -> Condition | None:
    """Return the filter of a Scan; it may let other entities pass if the table does not require tags."""
    tagged = entity_filter(table, tags)
    if table.tag_required:
        return tagged
    prefixes = [
        BeginsWith(Attr((layout.attribute,)), Const({"S": prefix}))
        for layout in (primary.partition, primary.sort)
        if isinstance(layout, TemplateLayout) and (prefix := layout.template.prefix({}))
    ]
    conditions: list[Condition] = [*([] if tagged is None else [tagged]), *prefixes]
    return And(tuple(conditions)) if len(conditions) > 1 else next(iter(conditions), None)


def check_distinct(table: Table, plan: Plan) -> None:
    """Reject an entity whose keys another one can have, in a table that does not require tags."""
    # Imported here, so that tables with tags do not load the linter.
    from solotable._entities.lint.key_overlap import EntityPath, format_key, keys_overlap

    mine = EntityPath(plan, plan.primary)
    for other in table.plans.values():
        if other.tag == plan.tag:
            continue
        overlap = keys_overlap(mine, EntityPath(other, other.primary))
        if overlap is not None:
            key = format_key(mine, overlap.texts)
            raise DeclarationError(
                f"{plan.name} and {other.name} can have the same key{f' ({key})' if key else ''}, and table "
                f"{table.name!r} does not require the type tag that would tell them apart; give each key a "
                f"different literal, such as {plan.name.upper()}#, or require tags."
            )


def bases_of(plan: Plan) -> list[Plan]:
    """Return the plans of the base classes that have the same table and primary key."""
    found = []
    for base in plan.entity.__mro__[1:]:
        declared = vars(base).get("_declared")
        if declared is not None and declared.table is plan.table:
            other: Plan = base.plan()  # type: ignore[attr-defined]  # only entities have a declaration
            if other.describe() == plan.describe():
                found.append(other)
    return found


def are_related(one: Plan, other: Plan) -> bool:
    """Return whether two entities share a primary key because of a common base class."""
    return any(base.covers(other) for base in (one, *bases_of(one)))


def check_subclass(base: Plan, plan: Plan) -> None:
    """Reject a subclass whose items reads of the base class would not find or could not decode."""
    for name, path in base.keys.items():
        own = plan.keys[name]
        if (own.index, own.names) != (path.index, path.names) or _shown(own) != _shown(path):
            raise DeclarationError(
                f"{plan.name}.{name} differs from that of its base class {base.name}, whose queries would "
                f"not find it; rename the key, or give {plan.name} another primary key."
            )
    fields = {each for path in base.keys.values() for each in path.fields}
    for name, attribute in base.attributes.items():
        own_type, type_ = (each.entity.model_fields[name].annotation for each in (plan, base))
        if plan.attributes[name].wire != attribute.wire or (name in fields and own_type != type_):
            raise DeclarationError(
                f"{plan.name}.{name} is stored otherwise than that of its base class {base.name}; use the "
                f"same type and attribute name, or another field."
            )
    if (base.tenant is None) != (plan.tenant is None):
        raise DeclarationError(f"{plan.name} and its base class {base.name} must have the same scope=.")


def _shown(path: AccessPath) -> tuple[object, ...]:
    layouts = (path.partition, path.sort)
    return tuple(each.shown if isinstance(each, TemplateLayout) else each and each.fields for each in layouts)


def _is_untagged(name: str) -> Condition:
    # As `tag_of`: a value that is not a string, such as NULL, does not count.
    return Not(TypeIs(Attr((name,)), "S"))


def _has_tag(name: str, tags: Sequence[str]) -> Condition:
    if len(tags) == 1:
        return Compare("=", Attr((name,)), Const({"S": tags[0]}))
    return In(Attr((name,)), tuple(Const({"S": tag}) for tag in tags))
