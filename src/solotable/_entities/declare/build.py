"""An entity class, checked and compiled: what is wrong with it is said when the class is defined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from solotable._entities.codecs.field_codecs import Attribute, attribute_of
from solotable._entities.codecs.loader import Reading
from solotable._entities.keys.access_path import AccessPath, compile_key
from solotable._entities.keys.codecs import TIMES, TimestampCodec
from solotable._entities.keys.key import Key
from solotable._entities.keys.layout import Composed, Native
from solotable._entities.keys.shard_keys import settle_keys
from solotable._entities.keys.templates import Part
from solotable._entities.schema.upgrades import Newer
from solotable._entities.schema.versions import build_shapes
from solotable._entities.traits.retention import Retention
from solotable._entities.traits.soft_delete import HIDING, SoftDelete
from solotable._entities.traits.trait import Trait
from solotable.errors import DeclarationError

from .fields import is_from_scope
from .table import Table, suggestion

if TYPE_CHECKING:
    from solotable._entities.patterns.pattern import Pattern

    from .entity import Entity

#: DynamoDB: the largest item, names included.
from solotable._entities.traits.unique import UniqueRule

from .plan import Draft, Plan


def build_plan(
    entity: type[Entity],
    table: Table,
    *,
    tag: str,
    flat: bool,
    is_global: bool,
    shape: int | None = None,
    newer: Newer = "refuse",
) -> Plan:
    """Compile an entity class, or raise the DeclarationError that says what is wrong with it."""
    name = entity.__name__
    infos = entity.model_fields
    annotations = {each: info.annotation for each, info in infos.items()}
    attributes = {each: attribute_of(name, each, info, flat=flat) for each, info in infos.items()}
    declared = _declared_keys(entity)
    if "key" not in declared:
        raise DeclarationError(f'{name} has no key; write key = Key("...", "...") in it.')
    if declared["key"].index is not None:
        raise DeclarationError(
            f"{name}.key is the table's own key and takes no index=; name an index key otherwise."
        )
    keys = {
        each: compile_key(key, owner=name, table=table, attributes=attributes, annotations=annotations)
        for each, key in declared.items()
    }
    for each, path in keys.items():
        if each != "key" and path.index is None:
            raise DeclarationError(f"{name}.{each} names no index; only `key` is the table's own.")
        if (
            path.index is not None
            and path.index.local
            and _text(path.partition) != _text(keys["key"].partition)
        ):
            raise DeclarationError(
                f"{name}.{each} has the partition {_text(path.partition)}, but index {path.index.name!r} is "
                f"local and shares that of {name}.key; write {_text(keys['key'].partition)}."
            )
    keys = settle_keys(declared, keys)
    tenant = None if is_global else table.tenant
    if tenant is not None:
        _judge_tenant(name, tenant, infos, keys)
    by_wire = _by_wire(name, table, attributes, keys)
    # Also the keys of indexes that the entity is not in: one that it has left is not kept as unknown.
    indexed = {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
    of_keys = {each for path in keys.values() for each in path.derived}
    derived = frozenset({table.tag, *of_keys, *indexed.difference(by_wire)})
    _judge_one_per_index(name, keys)
    roles = {role: _role(name, role, attributes) for role in ("version", "ttl", "created", "updated")}
    if roles["ttl"] is not None and table.ttl != attributes[roles["ttl"]].wire:
        raise DeclarationError(
            f"{name}.{roles['ttl']} is the time to live, but the table's TTL attribute is {table.ttl!r}; "
            f"write Table(..., ttl={attributes[roles['ttl']].wire!r}) or rename the field with Attr()."
        )
    draft = Draft(
        name=name,
        tag=tag,
        table=table,
        attributes=attributes,
        annotations=annotations,
        keys=keys,
        tenant=tenant,
        version=roles["version"],
    )
    traits = _traits(entity, draft)
    deletion = next((trait for trait in traits if isinstance(trait, SoftDelete)), None)
    if deletion is not None:
        derived |= HIDING
    shapes = build_shapes(
        entity,
        shape=shape,
        newer=newer,
        attribute=table.shape,
        derived=derived,
        wires=by_wire,
        key_names=keys["key"].names,
        key_fields=[attributes[each].wire for each in keys["key"].fields],
    )
    return Plan(
        entity=entity,
        name=name,
        tag=tag,
        table=table,
        attributes=attributes,
        keys=keys,
        primary=keys["key"],
        indexes=tuple(path for path in keys.values() if path.index is not None and path.derived),
        patterns=_declared_patterns(entity),
        counters=tuple(each for each, attribute in attributes.items() if attribute.counter),
        traits=tuple(trait for trait in traits if trait.writes_along),
        deletion=deletion,
        retention=next((trait for trait in traits if isinstance(trait, Retention)), None),
        tenant=tenant,
        by_wire=by_wire,
        derived=derived,
        shapes=shapes,
        stamp_steps=_stamp_steps(keys, (roles["created"], roles["updated"])),
        _dumpers=tuple((each, attribute.wire, attribute.dump) for each, attribute in attributes.items()),
        _reading=Reading(entity, attributes, shapes.dropped | by_wire.keys()),
        **roles,
    )


def _traits(entity: type[Entity], draft: Draft) -> tuple[Trait, ...]:
    declared: dict[str, Trait] = {}
    for owner in reversed(entity.__mro__):
        declared |= {each: value for each, value in vars(owner).items() if isinstance(value, Trait)}
    for each, trait in declared.items():
        if trait.whole and draft.version is None:
            raise DeclarationError(
                f"{draft.name}.{each} follows every change of the entity and needs its version; "
                f"add a field: version: Annotated[int, Version()] = 0."
            )
    return (*_uniques(draft.name, draft.attributes), *(trait.bind(draft) for trait in declared.values()))


def _uniques(name: str, attributes: Mapping[str, Attribute]) -> tuple[UniqueRule, ...]:
    rules = []
    ends = tuple(each.field for each in attributes.values() if each.ttl)
    for attribute in attributes.values():
        marker = attribute.unique
        if marker is None:
            continue
        for each in (attribute.field, *marker.within):
            if each not in attributes:
                raise DeclarationError(
                    f"{name}.{attribute.field} is unique within {each!r}, which is no field; "
                    f"{suggestion(each, attributes)}"
                )
            if attributes[each].kind not in ("S", "N", "B"):
                raise DeclarationError(
                    f"{name}.{each} cannot be part of a unique value: it is kept as "
                    f"{attributes[each].kind or 'several types'}; only texts, numbers and bytes can."
                )
        within = tuple(attributes[each] for each in marker.within)
        rules.append(UniqueRule(attribute, within, marker.normalise, ends))
    return tuple(rules)


def _declared_keys(entity: type[Entity]) -> dict[str, Key]:
    found: dict[str, Key] = {}
    for owner in reversed(entity.__mro__):
        found |= {name: value for name, value in vars(owner).items() if isinstance(value, Key)}
    return found


def _declared_patterns(entity: type[Entity]) -> dict[str, Pattern]:
    from solotable._entities.patterns.pattern import Pattern

    found: dict[str, Pattern] = {}
    for owner in reversed(entity.__mro__):
        found |= {name: value for name, value in vars(owner).items() if isinstance(value, Pattern)}
    return found


def _judge_tenant(name: str, tenant: str, infos: Mapping[str, Any], keys: Mapping[str, AccessPath]) -> None:
    if tenant not in infos:
        raise DeclarationError(
            f"{name} has no field {tenant!r}, which keeps the tenants of its table apart; "
            f"write `{tenant}: str = FROM_SCOPE`, or scope='global' for an entity of no tenant."
        )
    if infos[tenant].annotation is not str:
        raise DeclarationError(f"{name}.{tenant} is the tenant and must be a plain str.")
    default = infos[tenant].default
    if not infos[tenant].is_required() and not is_from_scope(default):
        raise DeclarationError(f"{name}.{tenant} is the tenant; its only default is FROM_SCOPE.")
    for path in keys.values():
        if tenant not in path.partition.fields:
            raise DeclarationError(
                f"{name}.{path.name} has no {{{tenant}}} in its partition key, so tenants would share it; "
                f"add it, or declare the entity with scope='global'."
            )


def _by_wire(
    name: str, table: Table, attributes: Mapping[str, Attribute], keys: Mapping[str, AccessPath]
) -> dict[str, Attribute]:
    by_wire: dict[str, Attribute] = {}
    derived = {each for path in keys.values() for each in path.derived}
    reserved = derived | {table.tag}
    reserved |= {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
    native = {each for path in keys.values() for each in path.names} - derived
    for each, attribute in attributes.items():
        if attribute.wire in by_wire:
            raise DeclarationError(
                f"{name} keeps two fields as {attribute.wire!r}: {by_wire[attribute.wire].field}, {each}."
            )
        if attribute.wire in reserved - native:
            raise DeclarationError(
                f"{name}.{each} is kept as {attribute.wire!r}, which is a key attribute or the type tag of "
                f"table {table.name!r}; rename it on the wire with Attr(...)."
            )
        by_wire[attribute.wire] = attribute
    return by_wire


def _text(side: Composed | Native) -> str:
    return repr(side.template.text if isinstance(side, Composed) else side.fields)


def _judge_one_per_index(name: str, keys: Mapping[str, AccessPath]) -> None:
    seen: dict[str, str] = {}
    for path in keys.values():
        for attribute in path.derived:
            if attribute in seen:
                raise DeclarationError(
                    f"{name}.{path.name} and {name}.{seen[attribute]} both fill {attribute!r}; "
                    f"use another index for one of them."
                )
            seen[attribute] = path.name


def _stamp_steps(keys: Mapping[str, AccessPath], stamped: tuple[str | None, ...]) -> dict[str, int]:
    """Return the microseconds of the coarsest precision that a key has for each stamped field."""
    steps: dict[str, int] = {}
    for path in keys.values():
        for side in (path.partition, path.sort):
            for part in side.template.parts if isinstance(side, Composed) else ():
                if (
                    isinstance(part, Part)
                    and part.field in stamped
                    and isinstance(part.codec, TimestampCodec)
                ):
                    step = TIMES[part.codec.precision][0]
                    steps[part.field] = max(step, steps.get(part.field, 1))
    return {name: step for name, step in steps.items() if step > 1}


def _role(name: str, role: str, attributes: Mapping[str, Attribute]) -> str | None:
    found = [each for each, attribute in attributes.items() if getattr(attribute, role)]
    if len(found) > 1:
        raise DeclarationError(f"{name} has more than one {role} field: {', '.join(found)}.")
    return found[0] if found else None
