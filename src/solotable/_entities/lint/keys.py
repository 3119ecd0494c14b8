"""Find keys that two entities or two tenants can share (ST101, ST103 to ST106)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Literal

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.recognition import are_related
from solotable._entities.declare.table import INTERNAL_KINDS, Index, KeyAttribute, Table
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import AttributeLayout, KeyLayout, TemplateLayout

from .findings import Finding, make_finding
from .key_overlap import EntityPath, format_key, keys_overlap, partitions_overlap


def entity_keys(table: Table) -> dict[str | None, list[EntityPath]]:
    """Return the keys of a table's entities by index; None is the primary key."""
    by_index: dict[str | None, list[EntityPath]] = {}
    for plan in table.plans.values():
        keys = [EntityPath(plan, path) for path in plan.keys.values()]
        declared = {key.index for key in keys}
        others = (index for index in table.indexes.values() if index.name not in declared)
        keys += [EntityPath(plan, path, implied=True) for index in others if (path := _implied(plan, index))]
        for key in keys:
            by_index.setdefault(key.index, []).append(key)
    return by_index


def _implied(plan: Plan, index: Index) -> AccessPath | None:
    """Return the key of an entity that has an index's key attributes but declares no key for it."""
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


def check_keys(by_index: dict[str | None, list[EntityPath]]) -> Iterator[Finding]:
    """Compare the keys of every two entities in one table or index."""
    for index, keys in by_index.items():
        for one, other in combinations(keys, 2):
            # Items of an index may share a key. In the table, the second item would replace the first.
            if index is None and (finding := _same_key(one, other)) is not None:
                yield finding
            if (finding := _across_tenants(one, other)) is not None:
                yield finding
    every = (key for keys in by_index.values() for key in keys if not key.implied)
    yield from filter(None, map(_unpadded_number, every))
    primary = by_index.get(None, [])
    yield from filter(None, map(_internal_prefix, primary))
    derived = [(key, trait_key) for key in primary for trait_key in _trait_keys(key)]
    for (key, trait_key), other in product(derived, primary):
        if other is not key and (finding := _trait_collision(trait_key, other)) is not None:
            yield finding
    for (key, trait_key), (other_key, other) in combinations(derived, 2):
        if other_key is not key and (finding := _trait_collision(trait_key, other)) is not None:
            yield finding


def _trait_keys(key: EntityPath) -> Iterator[EntityPath]:
    """Yield the keys of the items that traits write into the entity's partition, such as snapshots."""
    path = key.path
    if not isinstance(path.sort, TemplateLayout):
        return
    for trait in key.plan.traits:
        for template in trait.sort_templates:
            sort = TemplateLayout(path.sort.attribute, template, "sort")
            fields = frozenset((*path.partition.fields, *sort.fields))
            yield EntityPath(key.plan, AccessPath(trait.name, path.owner, None, path.partition, sort, fields))


def _trait_collision(trait_key: EntityPath, other: EntityPath) -> Finding | None:
    overlap = keys_overlap(trait_key, other)
    if overlap is None:
        return None
    key = format_key(trait_key, overlap.texts)
    return make_finding(
        "ST101",
        "error",
        f"Items of {trait_key.plan.name}.{trait_key.path.name} can have the same key as {other.plan.name}"
        f"{f' ({key})' if key else ''}, so one would block the other; give each a different literal.",
        plan=trait_key.plan,
    )


def _same_key(one: EntityPath, other: EntityPath) -> Finding | None:
    overlap = keys_overlap(one, other)
    if overlap is None or are_related(one.plan, other.plan):
        return None
    key = format_key(one, overlap.texts)
    return make_finding(
        "ST101",
        "error",
        f"{_names(one.plan, other.plan)} can have the same key{f' ({key})' if key else ''}, so one would "
        f"replace the other; give each a different literal, such as {other.plan.name.upper()}#.",
        plan=other.plan,
    )


def _across_tenants(one: EntityPath, other: EntityPath) -> Finding | None:
    if one.plan.table.tenant is None or (one.plan.tenant is None and other.plan.tenant is None):
        return None
    if one.plan.tenant is not None and other.plan.tenant is not None:
        if _tenant_position(one) == _tenant_position(other) is not None:
            return None  # equal partitions have equal tenants
        overlap = partitions_overlap(one, other)
        if overlap is None:
            return None
        return make_finding(
            "ST103",
            "error",
            f"{_names(one.plan, other.plan)} have the tenant at different positions of {_partition(one)} "
            f"and {_partition(other)}{_example(one, overlap.texts)}, so two tenants can share a partition; "
            f"put the tenant at the same position, after a literal.",
            plan=other.plan,
        )
    overlap = partitions_overlap(one, other)
    if overlap is None:
        return None
    global_key, tenant_key = (one, other) if one.plan.tenant is None else (other, one)
    return make_finding(
        "ST104",
        "error",
        f"The global entity {global_key.plan.name} can be in a tenant's partition of "
        f"{tenant_key.plan.name}: {_partition(global_key)} can equal {_partition(tenant_key)}"
        f"{_example(one, overlap.texts)}; start the global partition key with a different literal.",
        plan=global_key.plan,
    )


def _internal_prefix(key: EntityPath) -> Finding | None:
    layout = key.path.partition
    first = (
        key.partition[0].literal
        if isinstance(layout, TemplateLayout) and key.partition and key.partition[0].part is None
        else ""
    )
    if first not in INTERNAL_KINDS:
        first = _reachable_kind(layout)
    if not first:
        return None
    return make_finding(
        "ST105",
        "warning",
        f"{key.plan.name} is stored under {first}, a prefix of the store's internal items, so one may "
        f"block the other; begin {_partition(key)} with another literal.",
        plan=key.plan,
    )


def _reachable_kind(layout: KeyLayout) -> str:
    """Return a prefix of internal items that unescaped values can begin with; an empty text if none."""
    if not isinstance(layout, TemplateLayout) or layout.template.key_format.delimiter == "#":
        return ""
    template = layout.template
    literal = template.first_literal
    is_text = [name for name in template.fields[:1] if template.codec(name).kind == "text"]
    starts = (kind for kind in sorted(INTERNAL_KINDS) if f"{kind}#".startswith(literal))
    return next(starts, "") if is_text else ""


def _unpadded_number(key: EntityPath) -> Finding | None:
    layout = key.path.sort
    if not isinstance(layout, TemplateLayout):
        return None
    fields = [name for name in layout.fields if layout.template.codec(name).kind == "number"]
    if not fields:
        return None
    return make_finding(
        "ST106",
        "note",
        f"{key.plan.name}.{key.path.name} sorts {fields[0]} as text, 10 before 9, without ranges over it; "
        f"write {{{fields[0]}:06d}} if no other program writes these keys.",
        plan=key.plan,
    )


def _tenant_position(key: EntityPath) -> tuple[int, str] | None:
    """Return the number of the tenant's segment in the partition key, and the literal before it."""
    tenant, layout = key.plan.tenant, key.path.partition
    assert tenant is not None
    if not isinstance(layout, TemplateLayout):
        if tenant not in layout.fields:
            return None  # possible only in an index for which the entity declares no key
        # A template escapes the tenant, a plain attribute does not: their positions are never equal.
        return -1 - layout.fields.index(tenant), ""
    for number, segment in enumerate(key.partition):
        if segment.part is not None and segment.part.field == tenant:
            return number, segment.literal
    return None


def _partition(key: EntityPath) -> str:
    layout = key.path.partition
    return repr(layout.template.text) if isinstance(layout, TemplateLayout) else repr(layout.fields)


def _example(key: EntityPath, texts: tuple[str, ...] | None) -> str:
    layout = key.path.partition
    if not texts or not isinstance(layout, TemplateLayout):
        return ""
    return f" (both can be {layout.template.key_format.delimiter.join(texts)!r})"


def _names(one: Plan, other: Plan) -> str:
    return f"{one.name} and {other.name}"
