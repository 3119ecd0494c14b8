"""Keys of different entities: never the same, and never across tenants (ST101, ST103, ST104, ST105)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Literal

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import INTERNAL_KINDS, Index, KeyAttribute, Table
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import AttributeLayout, KeyLayout, TemplateLayout

from .findings import Finding, found
from .key_overlap import EntityKey, keys_overlap, partitions_overlap, shown


def entity_keys(table: Table) -> dict[str | None, list[EntityKey]]:
    """Return the keys of a table's entities by index; None is the primary key."""
    by_index: dict[str | None, list[EntityKey]] = {}
    for plan in table.plans.values():
        mine = [EntityKey(plan, path) for path in plan.keys.values()]
        declared = {place.index for place in mine}
        others = (index for index in table.indexes.values() if index.name not in declared)
        mine += [EntityKey(plan, path, implied=True) for index in others if (path := _implied(plan, index))]
        for place in mine:
            by_index.setdefault(place.index, []).append(place)
    return by_index


def _implied(plan: Plan, index: Index) -> AccessPath | None:
    """Return the key of an entity in an index that it declares no key for, but has the attributes of."""
    partition, sort = _layout(plan, index.partition, "partition"), _layout(plan, index.sort, "sort")
    if partition is None or (index.sort and sort is None):
        return None
    fields = frozenset((*partition.fields, *(sort.fields if sort else ())))
    return AccessPath(f"key on {index.name}", plan.name, index, partition, sort, fields)


def _layout(
    plan: Plan, attributes: Sequence[KeyAttribute], role: Literal["partition", "sort"]
) -> KeyLayout | None:
    names = [attribute.name for attribute in attributes]
    if names and all(name in plan.by_wire for name in names):
        return AttributeLayout(tuple(plan.by_wire[name] for name in names), role)
    layouts = (layout for path in plan.keys.values() for layout in (path.partition, path.sort))
    return next(
        (layout for layout in layouts if isinstance(layout, TemplateLayout) and [layout.attribute] == names),
        None,
    )


def check_keys(by_index: dict[str | None, list[EntityKey]]) -> Iterator[Finding]:
    """Compare the keys of every two entities in one table or index."""
    for index, all_of_it in by_index.items():
        for one, other in combinations(all_of_it, 2):
            # Many items of an index may share a key; in the table the second would replace the first.
            if index is None and (finding := _same_key(one, other)) is not None:
                yield finding
            if (finding := _across_tenants(one, other)) is not None:
                yield finding
    own = by_index.get(None, [])
    yield from filter(None, map(_among_own, own))
    along = [(place, kept) for place in own for kept in _kept_along(place)]
    for (place, kept), other in product(along, own):
        if other is not place and (finding := _lies_on(kept, other)) is not None:
            yield finding
    for (place, kept), (elsewhere, other) in combinations(along, 2):
        if elsewhere is not place and (finding := _lies_on(kept, other)) is not None:
            yield finding


def _kept_along(place: EntityKey) -> Iterator[EntityKey]:
    """Yield the keys of the items that traits write into the entity's partition: its snapshots."""
    path = place.path
    if not isinstance(path.sort, TemplateLayout):
        return
    for trait in place.plan.traits:
        for template in trait.sort_templates:
            sort = TemplateLayout(path.sort.attribute, template, "sort")
            fields = frozenset((*path.partition.fields, *sort.fields))
            yield EntityKey(
                place.plan, AccessPath(trait.name, path.owner, None, path.partition, sort, fields)
            )


def _lies_on(kept: EntityKey, other: EntityKey) -> Finding | None:
    overlap = keys_overlap(kept, other)
    if overlap is None:
        return None
    key = shown(kept, overlap.texts)
    return found(
        "ST101",
        "error",
        f"Items of {kept.plan.name}.{kept.path.name} can have the same key as {other.plan.name}"
        f"{f' ({key})' if key else ''}, so one would block the other; give each its own literal.",
        plan=kept.plan,
    )


def _same_key(one: EntityKey, other: EntityKey) -> Finding | None:
    overlap = keys_overlap(one, other)
    if overlap is None:
        return None
    key = shown(one, overlap.texts)
    return found(
        "ST101",
        "error",
        f"{_named(one.plan, other.plan)} can have the same key{f' ({key})' if key else ''}, so one would "
        f"replace the other; give each its own literal, as in {other.plan.name.upper()}#.",
        plan=other.plan,
    )


def _across_tenants(one: EntityKey, other: EntityKey) -> Finding | None:
    if one.plan.table.tenant is None or (one.plan.tenant is None and other.plan.tenant is None):
        return None
    if one.plan.tenant is not None and other.plan.tenant is not None:
        if _tenant_at(one) == _tenant_at(other) is not None:
            return None  # equal partitions have equal tenants
        overlap = partitions_overlap(one, other)
        if overlap is None:
            return None
        return found(
            "ST103",
            "error",
            f"{_named(one.plan, other.plan)} have the tenant at different places of {_partition(one)} and "
            f"{_partition(other)}{_such(overlap.texts)}, so two tenants can share a partition; put the "
            f"tenant at the same place, after its own literal.",
            plan=other.plan,
        )
    overlap = partitions_overlap(one, other)
    if overlap is None:
        return None
    shared, own = (one, other) if one.plan.tenant is None else (other, one)
    return found(
        "ST104",
        "error",
        f"The global {shared.plan.name} can lie in a tenant's partition of {own.plan.name}: "
        f"{_partition(shared)} can be {_partition(own)}{_such(overlap.texts)}; give the global one a "
        f"partition with its own literal.",
        plan=shared.plan,
    )


def _among_own(place: EntityKey) -> Finding | None:
    layout = place.path.partition
    first = (
        place.partition[0].literal
        if isinstance(layout, TemplateLayout) and place.partition[0].part is None
        else ""
    )
    if first not in INTERNAL_KINDS:
        return None
    return found(
        "ST105",
        "warning",
        f"{place.plan.name} is stored under {first}, as internal items of the store are, so one may "
        f"block the other; begin {_partition(place)} with another literal.",
        plan=place.plan,
    )


def _tenant_at(place: EntityKey) -> tuple[int, str] | None:
    """Return which segment of the partition key the tenant is, and the literal before it."""
    tenant, layout = place.plan.tenant, place.path.partition
    assert tenant is not None
    if not isinstance(layout, TemplateLayout):
        if tenant not in layout.fields:
            return None  # only in an index without a declared key
        return -1 - layout.fields.index(
            tenant
        ), ""  # never equal to a position in a template, which escapes it
    for number, segment in enumerate(place.partition):
        if segment.part is not None and segment.part.field == tenant:
            return number, segment.literal
    return None


def _partition(place: EntityKey) -> str:
    layout = place.path.partition
    return repr(layout.template.text) if isinstance(layout, TemplateLayout) else repr(layout.fields)


def _such(texts: tuple[str, ...] | None) -> str:
    return f" (both can be {'#'.join(texts)!r})" if texts else ""


def _named(one: Plan, other: Plan) -> str:
    return f"{one.name} and {other.name}"
