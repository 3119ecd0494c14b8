"""Update fields of an entity with one UpdateItem, and recompute its index keys.

An index key with a changed field is computed from the caller's values. If it needs other fields, they are
read from the stored item, and the update requires that they have not changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError

from solotable._entities.codecs.model_rules import fields_to_read
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan, depth_error
from solotable._entities.patterns.paths import FieldPath, resolve
from solotable._expressions.ast import (
    Action,
    Add,
    Arithmetic,
    Assign,
    Condition,
    Const,
    Delete,
    IfNotExists,
    ListAppend,
    Path,
    Remove,
    Update,
)
from solotable._expressions.evaluate import evaluate, paths_of
from solotable._expressions.path_overlap import find_clash
from solotable._expressions.update import apply_update
from solotable._flows.jobs.reencode import difference, is_current, origins, reencoded, update_of
from solotable._flows.reads.get import not_found
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.derived_writes import (
    derived_writes_of,
    needs_derived_writes,
    source_fields,
)
from solotable._flows.transactions.write import (
    Change,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    attributes_unchanged,
    capitalize,
    condition_error,
    expected_version,
    fields_unchanged,
    load_stored,
    version_is,
)
from solotable._protocol.requests import UpdateItem
from solotable._values import AttributeValue, Item, levels
from solotable._values.limits import DEEPEST_VALUE
from solotable.errors import DataError, ServiceError, StoredDataError

from .update_check import apply_checked, explain_misfit


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes that a caller requests, by the names of the model's fields."""

    set: Mapping[str, Any] = field(default_factory=dict)
    remove: Iterable[str] = ()
    add: Mapping[str, Any] = field(default_factory=dict)
    append: Mapping[str, Any] = field(default_factory=dict)
    delete: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.remove, str):
            raise DataError(f"remove= takes a list of fields, got a string; write remove=[{self.remove!r}].")
        # A tuple, because an update is planned again after a conflict.
        object.__setattr__(self, "remove", tuple(self.remove))


@dataclass(frozen=True, slots=True)
class _ResolvedChanges:
    """The validated changes: actions, and the new values of whole fields (None: removed)."""

    actions: tuple[Action, ...]
    #: Fields whose new value is known before sending.
    known: Mapping[str, Any]
    #: The amounts that are added to numbers.
    added: Mapping[str, Any]
    changed: frozenset[str]
    field_paths: Mapping[Path, FieldPath]
    #: Fields whose stored values are needed to validate the result.
    checked: frozenset[str]


def plan_update(  # noqa: PLR0913 - the parts of an update, by name
    scope: Scope,
    plan: Plan,
    given: Mapping[str, Any],
    changes: Changes,
    *,
    version: ExpectedVersion = None,
    mine: Entity | None = None,
    where: Condition | None = None,
    reencodes: bool = False,
) -> Flow[Write]:
    """Return the write of an update; read the item first only if its stored values are needed.

    An item of another schema version is never updated partially: it is read, upgraded and written with the
    change. `reencodes` requests that; an entity with downgrades always does it.
    """
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "update")
    key = plan.key_from(arguments)
    now = scope.now()
    resolved = _with_managed_fields(plan, _resolve_changes(plan, changes), now)
    values = {name: arguments[name] for name in plan.primary.parts} | dict(resolved.known)
    conditions: list[Condition] = [scope.present(plan)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    versions = plan.schema_versions
    reencodes = reencodes or bool(versions.downgrades)
    needed = _unknown_parts(plan, resolved, values)
    ending = _ttl_actions(plan, resolved)
    derives = needs_derived_writes(plan, (*resolved.changed, plan.ttl or "") if ending else resolved.changed)
    before = None
    derived_from: dict[str, AttributeValue | None] = {}
    if needed or derives or reencodes or resolved.checked:
        before = yield from load_stored(scope, plan, key)
        if before is None:
            raise not_found(plan, arguments)
        if reencodes or versions.differs(before.item):
            target = _Target(arguments, key, expected, mine, where, derives)
            return _reencode(scope, plan, target, resolved, before, now)
        derived_from = before.wire_values(
            plan, sorted({*needed, *resolved.checked, *(source_fields(plan) if derives else ())})
        )
        for name in needed:
            values[name] = getattr(before.entity, name)
            if name in resolved.added:
                # DynamoDB: ADD to an absent number starts at 0, not at the model's default.
                current = 0 if derived_from[name] is None else values[name]
                values[name] = current + resolved.added[name]
        conditions += fields_unchanged(plan, derived_from)
    if versions.declared:
        conditions.append(is_current(plan))
    actions = (
        *resolved.actions,
        *_index_actions(plan, resolved, values),
        *_managed_actions(plan, now),
        *ending,
    )
    # DynamoDB: an update that only removes does not create an item; the condition rejects a missing one.
    change = Update(actions, creates=not all(isinstance(one, (Remove, Delete)) for one in actions))
    condition = all_of(conditions)
    action = UpdateItem(
        table=scope.table(plan.table),
        key=key,
        update=change,
        condition=condition,
        returns="ALL_NEW",
        returns_on_failure=True,
    )
    write = Write(
        plan=plan,
        verb="update",
        given=arguments,
        action=action,
        mine=mine,
        needs_item=True,
        expected_version=expected,
        where=where,
        derived_from=derived_from,
        instead=partial(
            plan_update, scope, plan, given, changes, version=version, mine=mine, where=where, reencodes=True
        )
        if versions.declared
        else None,
    )
    if before is None or not (derives or resolved.checked):
        return write
    after = apply_checked(scope, write, change, before, condition)
    derived_writes = derived_writes_of(scope, Change(plan, before, after)) if derives else ()
    return replace(write, derived_writes=derived_writes, after=after.entity)


@dataclass(frozen=True, slots=True)
class _Target:
    """The entity to update, and the expectations of the caller."""

    arguments: Mapping[str, Any]
    key: Item
    expected: int | None
    mine: Entity | None
    where: Condition | None
    derives: bool


def _reencode(
    scope: Scope, plan: Plan, target: _Target, resolved: _ResolvedChanges, before: Stored, now: datetime
) -> Write:
    """Return the write that upgrades an item to the current schema version and includes the change."""
    if plan.schema_versions.is_newer(before.item):
        raise plan.schema_versions.newer_error(before.item)
    base = reencoded(plan, before.item)
    action = UpdateItem(table=scope.table(plan.table), key=target.key, returns="ALL_NEW")
    write = Write(
        plan=plan,
        verb="update",
        given=target.arguments,
        action=action,
        mine=target.mine,
        needs_item=True,
        expected_version=target.expected,
        where=target.where,
    )
    where = target.where
    # The caller's condition applies to the upgraded item, not to the stored layout.
    if where is not None and not evaluate(where, base.item):
        raise condition_error(scope, write, base.item)
    actions = (*resolved.actions, *_managed_actions(plan, now), *_ttl_actions(plan, resolved))
    try:
        changed = apply_update(Update(actions, creates=True), base.item)
    except ServiceError as error:
        raise DataError(f"{capitalize(write.title)}: {error.message}.") from error
    try:
        entity = plan.decode(changed)
    except StoredDataError as error:  # The stored item was valid, so the change is not.
        raise explain_misfit(write, error) from error
    item = plan.encode(entity.__dict__, entity.unknown_attributes)
    touched = difference(before.item, item)
    named = () if where is None else [str(path[0]) for path in paths_of(where)]
    origin = origins(plan, before.item, (*touched, *named, *_source_attributes(plan, target)))
    conditions = [scope.present(plan), *attributes_unchanged(origin)]
    if target.expected is not None:
        conditions.append(version_is(plan, target.expected))
    after = Stored(item, entity)
    return replace(
        write,
        action=replace(
            action, update=update_of(touched), condition=all_of(conditions), returns_on_failure=True
        ),
        derived_writes=derived_writes_of(scope, Change(plan, before, after)) if target.derives else (),
        after=entity,
        carried=origin,
    )


def _source_attributes(plan: Plan, target: _Target) -> list[str]:
    """Return the attributes that the derived writes are computed from."""
    return [plan.attributes[name].wire for name in source_fields(plan)] if target.derives else []


def _resolve_changes(plan: Plan, changes: Changes) -> _ResolvedChanges:
    actions: list[Action] = []
    known: dict[str, Any] = {}
    added: dict[str, Any] = {}
    field_paths: dict[Path, FieldPath] = {}
    paths: list[Path] = []

    def at(text: str) -> FieldPath:
        field_path = resolve(plan, text)
        _check_field(plan, field_path.path, text)
        paths.append(field_path.path)
        field_paths[field_path.path] = field_path
        return field_path

    for text, value in changes.set.items():
        field_path = at(text)
        checked = _validate(field_path, value)
        whole = text in plan.attributes
        # put() stores None as NULL if the field's default is another value; an update does the same.
        removes = checked is None and not field_path.attribute.optional
        encoded = None if removes else field_path.attribute.encode(checked)
        if encoded is not None and len(field_path.path) - 1 + levels(encoded) >= DEEPEST_VALUE:
            raise depth_error(field_path.owner)
        actions.append(
            Remove(field_path.path) if encoded is None else Assign(field_path.path, Const(encoded))
        )
        if whole:
            known[text] = checked
    for text in changes.remove:
        field_path = at(text)
        if text in plan.attributes:
            _check_removable(plan, text)
            known[text] = _when_absent(plan, text)
        actions.append(Remove(field_path.path))
    for text, value in changes.add.items():
        field_path = at(text)
        if field_path.attribute.kind not in ("N", "SS", "NS", "BS"):
            raise DataError(
                f"add= takes numbers and sets, but {field_path.owner} is neither; use append= for a list."
            )
        actions.append(Add(field_path.path, field_path.encode(value)))
        if text in plan.attributes:
            added[text] = value
    for text, value in changes.append.items():
        field_path = at(text)
        if field_path.attribute.kind != "L":
            raise DataError(f"append= takes lists, but {field_path.owner} is not a list; use add= or set=.")
        tail = field_path.encode(list(value))
        actions.append(
            Assign(field_path.path, ListAppend(IfNotExists(field_path.path, Const({"L": []})), Const(tail)))
        )
    for text, value in changes.delete.items():
        field_path = at(text)
        if field_path.attribute.kind not in ("SS", "NS", "BS"):
            raise DataError(
                f"delete= takes members of sets, but {field_path.owner} is not a set; "
                f"use remove= for a field."
            )
        actions.append(Delete(field_path.path, field_path.encode(set(value))))
    if not actions:
        raise DataError(
            f"The update of {plan.name} has no changes; pass set=, remove=, add=, append= or delete=."
        )
    _check_overlap(plan, paths, field_paths)
    changed = frozenset(plan.by_wire[str(path[0])].field for path in paths)
    checked = fields_to_read(plan, changes)
    return _ResolvedChanges(tuple(actions), known, added, changed, field_paths, checked)


_adapters: dict[tuple[int, str], tuple[Any, TypeAdapter[Any]]] = {}


def _validate(field_path: FieldPath, value: Any) -> Any:
    """Validate a value against the field's type; raise DataError if it is invalid."""
    annotation = field_path.annotation
    key = (id(annotation), field_path.owner)
    found = _adapters.get(key)
    if found is None or found[0] is not annotation:
        found = _adapters[key] = (annotation, TypeAdapter(field_path.validated))
    try:
        return found[1].validate_python(value)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
        raise DataError(
            f"{field_path.owner} = {value!r}: {problem}.", public_message=f"{field_path.owner}: {problem}."
        ) from error


def _check_field(plan: Plan, path: Path, text: str) -> None:
    name = plan.by_wire[str(path[0])].field
    if name in plan.primary.fields:
        raise DataError(
            f"{plan.name}.{name} is part of the primary key and cannot change; create another entity."
        )
    if name in (plan.version, plan.updated, plan.created, *plan.counters):
        raise DataError(f"{plan.name}.{text} is maintained by the store; leave it out of the update.")


def _check_removable(plan: Plan, name: str) -> None:
    info = plan.entity.model_fields[name]
    if info.is_required() and plan.attributes[name].missing is None:
        raise DataError(f"{plan.name}.{name} is required by its model and cannot be removed; set it instead.")


def _when_absent(plan: Plan, name: str) -> Any:
    """Return the value of a field whose attribute is absent."""
    attribute, info = plan.attributes[name], plan.entity.model_fields[name]
    if attribute.missing is not None:
        return attribute.missing()
    if info.default_factory is None:
        return info.default
    if any(name in path.fields for path in plan.indexes):
        raise DataError(
            f"{plan.name}.{name} cannot be removed: it is part of an index key, and its default_factory "
            f"returns a new value at every read; set it instead."
        )
    return None


def _check_overlap(plan: Plan, paths: list[Path], field_paths: Mapping[Path, FieldPath]) -> None:
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise DataError(f"{field_paths[twice].owner} is changed twice in one update; change it once.")
    found = find_clash(tuple(paths))
    if found is not None:
        _, one, other = found
        raise DataError(
            f"{field_paths[one].owner} and {field_paths[other].owner} overlap: one contains the other; "
            f"change only one of them."
        )


def _unknown_parts(plan: Plan, resolved: _ResolvedChanges, values: Mapping[str, Any]) -> set[str]:
    """Return the fields that an affected index key needs and the caller has not given."""
    return {
        name
        for path in plan.indexes
        if path.fields & resolved.changed
        for name in path.fields
        if name not in values
    }


def _index_actions(plan: Plan, resolved: _ResolvedChanges, values: Mapping[str, Any]) -> list[Action]:
    actions: list[Action] = []
    for path in plan.indexes:
        if not path.fields & resolved.changed:
            continue
        attributes = path.encode(values)
        if attributes is None:
            # A sparse index: remove both attributes, so that no partial key remains.
            actions += [Remove((name,)) for name in path.derived]
        else:
            actions += [Assign((name,), Const(attributes[name])) for name in path.derived]
    return actions


def _with_managed_fields(plan: Plan, resolved: _ResolvedChanges, now: datetime) -> _ResolvedChanges:
    """Add the store's changes of version and timestamp if they are part of an index key."""
    indexed = {name for path in plan.indexes for name in path.fields}
    if plan.updated in indexed:
        known = {**resolved.known, plan.updated: plan.stamp(plan.updated, now)}
        resolved = replace(resolved, known=known, changed=resolved.changed | {plan.updated})
    if plan.version in indexed:
        added = {**resolved.added, plan.version: 1}
        resolved = replace(resolved, added=added, changed=resolved.changed | {plan.version})
    return resolved


def _managed_actions(plan: Plan, now: datetime) -> list[Action]:
    actions: list[Action] = []
    if plan.version is not None:
        path = (plan.attributes[plan.version].wire,)
        incremented = Arithmetic("+", IfNotExists(path, Const({"N": "0"})), Const({"N": "1"}))
        actions.append(Assign(path, incremented))
    if plan.updated is not None:
        attribute = plan.attributes[plan.updated]
        stamp = attribute.encode(plan.stamp(plan.updated, now))
        assert stamp is not None
        actions.append(Assign((attribute.wire,), Const(stamp)))
    return actions


def _ttl_actions(plan: Plan, resolved: _ResolvedChanges) -> list[Action]:
    """Return the action that sets the time to live if the retention begins with this update."""
    rule = plan.retention
    if rule is None or plan.ttl is None or plan.ttl in resolved.changed:
        return []
    end = rule.end_of(resolved.known)
    if end is None:
        return []
    attribute = plan.attributes[plan.ttl]
    value = attribute.encode(end)
    assert value is not None
    return [Assign((attribute.wire,), IfNotExists((attribute.wire,), Const(value)))]
