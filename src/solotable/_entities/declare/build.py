"""Compile an entity class to its plan when the class is defined, or raise DeclarationError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic.fields import FieldInfo

from solotable._entities.codecs.computed_fields import ComputedField, computed_fields, computed_from
from solotable._entities.codecs.field_codecs import Attribute, attribute_of
from solotable._entities.codecs.item_decoder import ItemDecoder
from solotable._entities.hooks import hooks_of
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.compile import (
    check_alternatives,
    check_shared,
    compile_key,
    join_alternatives,
    shard_keys,
)
from solotable._entities.keys.key import Key
from solotable._entities.keys.key_check import compile_key_check
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.templates import TemplateField, field_names
from solotable._entities.patterns.pattern import Pattern
from solotable._entities.schema.versions import SchemaVersions, build_schema_versions
from solotable._entities.synced import SPACE_VERSION, Synced
from solotable._entities.traits.retention import Retention
from solotable._entities.traits.soft_delete import HIDING, SoftDelete
from solotable._entities.traits.trait import Trait
from solotable._entities.traits.unique import UniqueRule
from solotable._values.limits import MOST_COMPARISONS
from solotable.errors import DeclarationError

from .fields import Epoch, Iso, is_from_scope
from .plan import Draft, Plan
from .table import Table, suggestion

if TYPE_CHECKING:
    from solotable._entities.codecs.opaque.encryption import ItemCipher
    from solotable._entities.codecs.opaque.offloading import ItemBlobs
    from solotable._values import Item

    from .entity import Declaration, Entity

MemberT = TypeVar("MemberT")
#: The arguments of the verbs that take the parts of a primary key by name.
RESERVED_PARTS = frozenset(
    {
        "add",
        "append",
        "consistent",
        "cursor",
        "default",
        "delete",
        "descending",
        "limit",
        "most",
        "prepend",
        "reason",
        "remove",
        "root",
        "set",
        "set_if_missing",
        "unknown",
        "version",
        "where",
    }
)
_ROLES = ("version", "ttl", "created", "updated")


def build_plan(entity: type[Entity], declared: Declaration) -> Plan:
    """Compile an entity class, or raise DeclarationError with the mistake."""
    table, tag = declared.table, declared.tag
    tenant = None if declared.is_global else table.tenant
    draft = _draft(entity, declared, tenant)
    by_wire = _by_wire(draft)
    derived = _derived(draft, by_wire)
    roles = _roles(draft)
    traits = _traits(entity, draft)
    deletion = next((trait for trait in traits if isinstance(trait, SoftDelete)), None)
    if deletion is not None:
        derived |= HIDING
    synced = next((trait for trait in traits if isinstance(trait, Synced)), None)
    if synced is not None:
        derived |= {SPACE_VERSION}
    versions = _schema_versions(entity, draft, by_wire, derived, declared)
    hooks, read_hooks = hooks_of(entity)
    return Plan(
        entity=entity,
        name=draft.name,
        tag=tag,
        abstract=declared.abstract,
        table=table,
        attributes=draft.attributes,
        keys=draft.keys,
        primary=draft.keys["key"],
        indexes=tuple(path for path in draft.keys.values() if path.index is not None and path.derived),
        patterns=_members(entity, Pattern),
        counters=tuple(each for each, attribute in draft.attributes.items() if attribute.counter),
        traits=tuple(trait for trait in traits if trait.writes_along),
        deletion=deletion,
        synced=synced,
        retention=next((trait for trait in traits if isinstance(trait, Retention)), None),
        tenant=draft.tenant,
        by_wire=by_wire,
        derived=derived,
        schema_versions=versions,
        cipher=_cipher(entity, draft),
        blobs=_blobs(entity, draft),
        hooks=hooks,
        read_hooks=read_hooks,
        stamp_steps=_stamp_steps(draft, (roles["created"], roles["updated"])),
        truncated=_truncated(draft),
        reserved=derived.union(
            (each.wire for each in draft.attributes.values() if each.stored), draft.keys["key"].names
        ),
        _decoder=ItemDecoder(
            entity,
            draft.attributes,
            versions.dropped | by_wire.keys(),
            draft.keys["key"],
            tuple(path for name, path in draft.keys.items() if name != "key"),
            _other_keys(draft, by_wire),
        ),
        key_check=compile_key_check(draft.keys["key"], draft.attributes),
        **roles,
    )


def _cipher(entity: type[Entity], draft: Draft) -> ItemCipher | None:
    """Return the cipher of an entity's items; None without an encrypted field."""
    markers = {each.wire: each.encrypted for each in draft.attributes.values() if each.encrypted is not None}
    if not markers:
        return None
    from solotable._entities.codecs.opaque.encryption import ItemCipher
    from solotable._entities.codecs.opaque.subjects import check_subjects, subject_of

    check_subjects(entity, draft)
    secrets = {each.field for each in draft.attributes.values() if each.encrypted is not None}
    # The repr of an entity goes into logs.
    for name in secrets:
        entity.model_fields[name].repr = False
    for name in computed_from(entity, secrets):
        # Base classes share the description of a computed field.
        computed = entity.__pydantic_computed_fields__
        computed[name] = replace(computed[name], repr=False)
    return ItemCipher(
        owner=draft.name,
        table=draft.table.name,
        tag=draft.tag,
        key_names=draft.table.key_names,
        markers=markers,
        tenant_of=_tenant_of(entity, draft),
        subject_of=subject_of(entity),
    )


def _blobs(entity: type[Entity], draft: Draft) -> ItemBlobs | None:
    """Return what finds the objects of offloaded fields; None without such a field."""
    markers = {each.wire: each.offloaded for each in draft.attributes.values() if each.offloaded is not None}
    if not markers:
        return None
    from solotable._entities.codecs.opaque.offloading import ItemBlobs

    return ItemBlobs(
        owner=draft.name, table=draft.table.name, markers=markers, tenant_of=_tenant_of(entity, draft)
    )


def _tenant_of(entity: type[Entity], draft: Draft) -> Callable[[Item], str | None]:
    tenant = draft.tenant

    def tenant_of(item: Item) -> str | None:
        return None if tenant is None else entity.plan().tenant_of(item)

    return tenant_of


def _draft(entity: type[Entity], declared: Declaration, tenant: str | None) -> Draft:
    """Compile fields and keys, and check each key against its table and the tenant."""
    name, table = entity.__name__, declared.table
    infos = entity.model_fields
    annotations = {each: _with_format(info) for each, info in infos.items()}
    attributes = {
        each: attribute_of(name, each, info, flat=declared.flat, by_alias=declared.by_alias)
        for each, info in infos.items()
    }
    keys = _keys(entity, table, attributes, annotations)
    _check_model(entity, keys["key"])
    if tenant is not None:
        _check_tenant(name, tenant, infos, keys)
    for each, attribute in attributes.items():
        if not attribute.stored:
            _check_only_in_key(f"{name}.{each}", attribute, keys["key"], _case(entity, table))
    return Draft(
        name=name,
        tag=declared.tag,
        table=table,
        attributes=attributes,
        annotations=annotations,
        keys=keys,
        tenant=tenant,
        version=_field_of_role(name, "version", attributes),
    )


def _case(entity: type[Entity], table: Table) -> str | None:
    """Return the case to which an entity's primary key is folded."""
    found = _members(entity, Key)["key"].format or table.key_format
    return None if found is None else found.case


def _check_only_in_key(where: str, attribute: Attribute, primary: AccessPath, case: str | None) -> None:
    """Reject a field that is not stored as an attribute, unless its value can be read from the key."""
    if case is not None:
        raise DeclarationError(
            f"{where} has stored=False, but the key's format folds its case, so the key does not contain the "
            f"value; remove stored=False."
        )
    if attribute.field not in primary.invertible:
        raise DeclarationError(
            f"{where} has stored=False, but a template of the primary key does not contain its whole value; "
            f"put {{{attribute.field}}} into the key, or remove stored=False."
        )
    if attribute.unique or attribute.version or attribute.ttl or attribute.counter:
        raise DeclarationError(
            f"{where} has stored=False and a marker that needs the stored attribute; remove one of them."
        )


def _with_format(info: FieldInfo) -> Any:
    """Return the type of a field, with the format of its time if one is declared."""
    formats = [meta for meta in info.metadata if isinstance(meta, Iso | Epoch)]
    return Annotated[info.annotation, formats[0]] if formats else info.annotation


def _check_model(entity: type[Entity], primary: AccessPath) -> None:
    """Reject a model whose values would be lost, and names that the store uses itself."""
    from .entity import Entity as Base

    name = entity.__name__
    if entity.model_config.get("extra") == "allow":
        raise DeclarationError(
            f"{name} has extra='allow', but the store writes only declared fields; declare a field such as "
            f"`more: dict[str, Any] = {{}}`, and remove extra='allow'."
        )
    for each in (*entity.model_fields, *entity.model_computed_fields):
        if hasattr(Base, each):
            raise DeclarationError(
                f"{name}.{each} hides {each} of Entity; rename the field, and keep the attribute's name with "
                f"Attr({each!r})."
            )
    for part in (*primary.parts, *(each.name for each in primary.computed)):
        if part in RESERVED_PARTS:
            raise DeclarationError(
                f"{name}.key has the part {part!r}, which is an option of get(), update() and other verbs; "
                f"rename the field, and keep the attribute's name with Attr({part!r})."
            )


def _members(entity: type[Entity], kind: type[MemberT]) -> dict[str, MemberT]:
    """Return the members of one type that a class and its bases declare, by name."""
    found: dict[str, MemberT] = {}
    for owner in reversed(entity.__mro__):
        found |= {name: value for name, value in vars(owner).items() if isinstance(value, kind)}
    return found


def _keys(
    entity: type[Entity], table: Table, attributes: Mapping[str, Attribute], annotations: Mapping[str, Any]
) -> dict[str, AccessPath]:
    name = entity.__name__
    declared = _members(entity, Key)
    if "key" not in declared:
        raise DeclarationError(f'{name} has no key; write key = Key("...", "...") in it.')
    if declared["key"].index is not None:
        raise DeclarationError(
            f"{name}.key is the table's primary key and takes no index=; give an index key another name."
        )
    computed = _computed(entity, declared)
    keys = {
        each: compile_key(
            key, owner=name, table=table, attributes=attributes, annotations=annotations, computed=computed
        )
        for each, key in declared.items()
    }
    for each, path in keys.items():
        if each != "key" and path.index is None:
            raise DeclarationError(f"{name}.{each} needs index=; only `key` is the table's primary key.")
        check_shared(path, keys["key"])
    return join_alternatives(shard_keys(declared, keys))


def _computed(entity: type[Entity], declared: Mapping[str, Key]) -> dict[str, ComputedField]:
    """Return the computed fields that the declared keys name."""
    if not entity.model_computed_fields:
        return {}
    used: set[str] = set()
    for key in declared.values():
        used |= {*(key.when or ()), *(key.shard_by or ())}
        for given in (key.partition, key.sort or ()):
            used |= set(field_names(given) if isinstance(given, str) else given)
    return computed_fields(entity, frozenset(used))


def _check_tenant(name: str, tenant: str, infos: Mapping[str, Any], keys: Mapping[str, AccessPath]) -> None:
    if tenant not in infos:
        raise DeclarationError(
            f"{name} has no field {tenant!r}, which is the tenant field of its table; "
            f"write `{tenant}: str = FROM_SCOPE`, or scope='global' for an entity without a tenant."
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


def _index_attributes(table: Table) -> set[str]:
    return {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}


def _by_wire(draft: Draft) -> dict[str, Attribute]:
    """Return the attributes by their stored names, or raise DeclarationError for a reserved name."""
    by_wire: dict[str, Attribute] = {}
    name, table, keys = draft.name, draft.table, draft.keys
    derived = {each for path in keys.values() for each in path.derived}
    reserved = derived | {table.internal_tag} | _index_attributes(table)
    key_names = {each for path in keys.values() for each in path.names} - derived
    for each, attribute in draft.attributes.items():
        if attribute.wire in by_wire:
            raise DeclarationError(
                f"{name} stores two fields as {attribute.wire!r}: {by_wire[attribute.wire].field}, {each}."
            )
        if each == draft.tenant and _is_in_no_index(draft):
            by_wire[attribute.wire] = attribute
            continue
        if attribute.stored and attribute.wire in reserved - key_names:
            raise DeclarationError(
                f"{name}.{each} is stored as {attribute.wire!r}, which is a key attribute or the type tag of "
                f"table {table.name!r}; give it another attribute name with Attr(...)."
            )
        by_wire[attribute.wire] = attribute
    return by_wire


def _is_in_no_index(draft: Draft) -> bool:
    """Return whether the indexes over the tenant attribute do not contain the entity unless it has a Key.

    DynamoDB: an item without one of the key attributes is not in the index.
    """
    tenant = draft.attributes[draft.tenant or ""].wire
    filled = {each.wire for each in draft.attributes.values()}
    filled.update(name for path in draft.keys.values() for name in path.names)
    indexes = [(*index.partition, *index.sort) for index in draft.table.indexes.values()]
    over_tenant = [
        names for names in indexes if any((tenant, "S") == (each.name, each.kind) for each in names)
    ]
    return bool(over_tenant) and all(any(each.name not in filled for each in names) for names in over_tenant)


def _derived(draft: Draft, by_wire: Mapping[str, Attribute]) -> frozenset[str]:
    """Return the attributes that only keys and the tag use; two keys must not fill the same one."""
    seen: dict[str, list[AccessPath]] = {}
    for path in draft.keys.values():
        for attribute in path.derived:
            for other in seen.setdefault(attribute, []):
                check_alternatives(path, other, attribute)
            seen[attribute].append(path)
    # Include the keys of other indexes, which are not attributes of this class either.
    unused = _index_attributes(draft.table).difference(by_wire)
    named = () if draft.table.tag is None else (draft.table.tag,)
    return frozenset({*named, *seen, *unused})


def _other_keys(draft: Draft, by_wire: Mapping[str, Attribute]) -> frozenset[str]:
    """Return the key attributes of indexes on which the class has no Key; a newer release may fill them."""
    own = {name for path in draft.keys.values() for name in path.names}
    stored = (name for name, attribute in by_wire.items() if attribute.stored)
    return frozenset(_index_attributes(draft.table).difference(own, stored))


def _roles(draft: Draft) -> dict[str, str | None]:
    """Return the fields with a role for the store, by role."""
    roles = {role: _field_of_role(draft.name, role, draft.attributes) for role in _ROLES}
    ttl = roles["ttl"]
    if ttl is not None and draft.table.ttl != draft.attributes[ttl].wire:
        wire = draft.attributes[ttl].wire
        raise DeclarationError(
            f"{draft.name}.{ttl} is the time to live, but the table's TTL attribute is {draft.table.ttl!r}; "
            f"write Table(..., ttl={wire!r}), or rename the field's attribute with Attr()."
        )
    return roles


def _field_of_role(name: str, role: str, attributes: Mapping[str, Attribute]) -> str | None:
    found = [each for each, attribute in attributes.items() if getattr(attribute, role)]
    if len(found) > 1:
        raise DeclarationError(f"{name} has more than one {role} field: {', '.join(found)}.")
    return found[0] if found else None


def _traits(entity: type[Entity], draft: Draft) -> tuple[Trait, ...]:
    declared = _members(entity, Trait)
    for each, trait in declared.items():
        if trait.whole and draft.version is None:
            raise DeclarationError(
                f"{draft.name}.{each} records every change of the entity and needs its version; "
                f"add a field: version: Annotated[int, Version()] = 0."
            )
    traits = [*_unique_rules(draft.name, draft.attributes), *(each.bind(draft) for each in declared.values())]
    fields = {name for trait in traits for name in trait.depends}
    if len(fields) > MOST_COMPARISONS and draft.version is None:
        raise DeclarationError(
            f"{draft.name}: its derived writes depend on {len(fields)} fields, because a Counted(where=...) "
            f"may read all of them, and a write compares at most {MOST_COMPARISONS} with what it has read; "
            f"add a field, which is compared instead: version: Annotated[int, Version()] = 0."
        )
    return tuple(traits)


def _unique_rules(name: str, attributes: Mapping[str, Attribute]) -> tuple[UniqueRule, ...]:
    rules = []
    ends = tuple(each.field for each in attributes.values() if each.ttl)
    for attribute in attributes.values():
        marker = attribute.unique
        if marker is None:
            continue
        for each in (attribute.field, *marker.within):
            if each not in attributes:
                raise DeclarationError(
                    f"{name}.{attribute.field} is unique within {each!r}, which is not a field; "
                    f"{suggestion(each, attributes)}"
                )
            if attributes[each].kind not in ("S", "N", "B"):
                raise DeclarationError(
                    f"{name}.{each} cannot be part of a unique value: it is stored as "
                    f"{attributes[each].kind or 'several types'}; use a string, a number or bytes."
                )
        within = tuple(attributes[each] for each in marker.within)
        rules.append(UniqueRule(attribute, within, marker.normalise, ends))
    return tuple(rules)


def _schema_versions(
    entity: type[Entity],
    draft: Draft,
    by_wire: Mapping[str, Attribute],
    derived: frozenset[str],
    declared: Declaration,
) -> SchemaVersions:
    primary = draft.keys["key"]
    return build_schema_versions(
        entity,
        schema_version=declared.schema_version,
        newer=declared.newer,
        attribute=draft.table.schema_version,
        derived=derived,
        wires=by_wire,
        key_names=primary.names,
        key_fields=[draft.attributes[each].wire for each in primary.fields],
    )


def _stamp_steps(draft: Draft, stamped: tuple[str | None, ...]) -> dict[str, int]:
    """Return the coarsest precision of each stamped field in its keys and attribute, in microseconds."""
    steps = {name: draft.attributes[name].step for name in stamped if name is not None}
    for path in draft.keys.values():
        for layout in (path.partition, path.sort):
            for part in layout.template.parts if isinstance(layout, TemplateLayout) else ():
                if isinstance(part, TemplateField) and part.field in steps:
                    steps[part.field] = max(part.codec.step, steps[part.field])
    return {name: step for name, step in steps.items() if step > 1}


def _truncated(draft: Draft) -> tuple[tuple[str, int], ...]:
    """Return the fields that a put truncates to their declared precision, in microseconds."""
    fields = draft.attributes.values()
    return tuple((each.field, each.step) for each in fields if each.step > 1 and not each.ttl)
