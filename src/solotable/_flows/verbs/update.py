"""Updating part of an entity: typed paths in, one UpdateItem out, index keys recomputed.

Where a changed field is part of an index key, the key follows: computed from what is given, or, when
other parts are needed, from the stored item, under the condition that those parts are unchanged.
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
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.transactions.derived_writes import depends_on, derived_writes_of, follows
from solotable._flows.transactions.write import (
    Change,
    ExpectedVersion,
    Stored,
    Write,
    all_of,
    as_stored,
    capitalize,
    expected_version,
    refusal,
    stored,
    unchanged,
    version_is,
)
from solotable._protocol.requests import UpdateItem
from solotable._values import AttributeValue, Item, levels
from solotable._values.limits import DEEPEST_VALUE
from solotable.errors import DataError, ServiceError, StoredDataError

from .get import not_found
from .update_check import explain_misfit, fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a caller wants changed, by the model's own names."""

    set: Mapping[str, Any] = field(default_factory=dict)
    remove: Iterable[str] = ()
    add: Mapping[str, Any] = field(default_factory=dict)
    append: Mapping[str, Any] = field(default_factory=dict)
    delete: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.remove, str):
            raise DataError(f"remove takes a list of fields; write remove=[{self.remove!r}].")
        # Read more than once: an update is planned again after a conflict.
        object.__setattr__(self, "remove", tuple(self.remove))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The checked changes: actions, and the new values of whole fields (None: removed)."""

    actions: tuple[Action, ...]
    #: Fields whose new value is known before sending.
    known: Mapping[str, Any]
    #: Numbers that are added to.
    added: Mapping[str, Any]
    changed: frozenset[str]
    places: Mapping[Path, FieldPath]
    #: Fields whose stored values decide whether the result fits the model.
    checked: frozenset[str]


def plan_update(  # noqa: PLR0913 - what an update is made of, each by name
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
    """Return the write of an update; reads the item only when an index key cannot be derived without.

    An item of another schema version is never changed in part: it is read, upgraded and written with the
    change in it. `reencodes` says that one was met; with downgrades declared it always is.
    """
    arguments = scope.bind(plan, given)
    expected = expected_version(plan, version, "update")
    key = plan.key_from(arguments)
    now = scope.now()
    wanted = _with_own_fields(plan, _wanted(plan, changes), now)
    values = {name: arguments[name] for name in plan.primary.parts} | dict(wanted.known)
    conditions: list[Condition] = [scope.present(plan)]
    if expected is not None:
        conditions.append(version_is(plan, expected))
    if where is not None:
        conditions.append(where)
    versions = plan.schema_versions
    reencodes = reencodes or bool(versions.downgrades)
    needed = _unknown_parts(plan, wanted, values)
    ending = _end_actions(plan, wanted)
    derives = follows(plan, (*wanted.changed, plan.ttl or "") if ending else wanted.changed)
    before = None
    derived_from: dict[str, AttributeValue | None] = {}
    if needed or derives or reencodes or wanted.checked:
        before = yield from stored(scope, plan, key)
        if before is None:
            raise not_found(plan, arguments)
        if reencodes or versions.differs(before.item):
            target = _Target(arguments, key, expected, mine, where, derives)
            return _reencode(scope, plan, target, wanted, before, now)
        derived_from = before.facts(
            plan, sorted({*needed, *wanted.checked, *(depends_on(plan) if derives else ())})
        )
        for name in needed:
            values[name] = getattr(before.entity, name)
            if name in wanted.added:
                # DynamoDB: what is added to an absent number is added to 0, whatever the model's default.
                there = 0 if derived_from[name] is None else values[name]
                values[name] = there + wanted.added[name]
        conditions += unchanged(plan, derived_from)
    if versions.declared:
        conditions.append(is_current(plan))
    actions = (
        *wanted.actions,
        *_index_actions(plan, wanted, values),
        *_own_actions(plan, now),
        *ending,
    )
    # DynamoDB: an update that only removes creates no item; the condition rejects a missing one.
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
    if before is None or not (derives or wanted.checked):
        return write
    after = fitted(scope, write, change, before, condition)
    derived_writes = derived_writes_of(scope, Change(plan, before, after)) if derives else ()
    return replace(write, derived_writes=derived_writes, after=after.entity)


@dataclass(frozen=True, slots=True)
class _Target:
    """Which entity is updated, and what is expected of it."""

    arguments: Mapping[str, Any]
    key: Item
    expected: int | None
    mine: Entity | None
    where: Condition | None
    derives: bool


def _reencode(
    scope: Scope, plan: Plan, target: _Target, wanted: _Wanted, before: Stored, now: datetime
) -> Write:
    """Return the write that brings an item to the current schema version with a change in it."""
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
    # What the caller requires is required of the entity, not of how it happens to be stored.
    if where is not None and not evaluate(where, base.item):
        raise refusal(scope, write, base.item)
    actions = (*wanted.actions, *_own_actions(plan, now), *_end_actions(plan, wanted))
    try:
        changed = apply_update(Update(actions, creates=True), base.item)
    except ServiceError as refused:
        raise DataError(f"{capitalize(write.title)}: {refused.message}.") from refused
    try:
        entity = plan.decode(changed)
    except StoredDataError as refused:  # what was stored could be read, so it is the change
        raise explain_misfit(write, refused) from refused
    item = plan.encode(entity.__dict__, entity.unknown_attributes)
    touched = difference(before.item, item)
    named = () if where is None else [str(path[0]) for path in paths_of(where)]
    origin = origins(plan, before.item, (*touched, *named, *_wires(plan, target)))
    conditions = [scope.present(plan), *as_stored(origin)]
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


def _wires(plan: Plan, target: _Target) -> list[str]:
    """Return the attributes that what is written along follows from."""
    return [plan.attributes[name].wire for name in depends_on(plan)] if target.derives else []


def _wanted(plan: Plan, changes: Changes) -> _Wanted:
    actions: list[Action] = []
    known: dict[str, Any] = {}
    added: dict[str, Any] = {}
    places: dict[Path, FieldPath] = {}
    paths: list[Path] = []

    def at(text: str) -> FieldPath:
        place = resolve(plan, text)
        _check_field(plan, place.path, text)
        paths.append(place.path)
        places[place.path] = place
        return place

    for text, value in changes.set.items():
        place = at(text)
        checked = _valid(place, value)
        whole = text in plan.attributes
        # None of a field whose default is another value is kept as NULL, as put keeps it.
        plain_none = checked is None and not place.attribute.optional
        dumped = None if plain_none else place.attribute.encode(checked)
        if dumped is not None and len(place.path) - 1 + levels(dumped) >= DEEPEST_VALUE:
            raise depth_error(place.owner)
        actions.append(Remove(place.path) if dumped is None else Assign(place.path, Const(dumped)))
        if whole:
            known[text] = checked
    for text in changes.remove:
        place = at(text)
        if text in plan.attributes:
            _check_removable(plan, text)
            known[text] = _when_absent(plan, text)
        actions.append(Remove(place.path))
    for text, value in changes.add.items():
        place = at(text)
        if place.attribute.kind not in ("N", "SS", "NS", "BS"):
            raise DataError(
                f"{place.owner} is neither a number nor a set; add takes these, append takes lists."
            )
        actions.append(Add(place.path, place.encode(value)))
        if text in plan.attributes:
            added[text] = value
    for text, value in changes.append.items():
        place = at(text)
        if place.attribute.kind != "L":
            raise DataError(f"{place.owner} is not a list; append takes lists.")
        tail = place.encode(list(value))
        actions.append(Assign(place.path, ListAppend(IfNotExists(place.path, Const({"L": []})), Const(tail))))
    for text, value in changes.delete.items():
        place = at(text)
        if place.attribute.kind not in ("SS", "NS", "BS"):
            raise DataError(f"{place.owner} is not a set; delete takes members of sets, remove takes fields.")
        actions.append(Delete(place.path, place.encode(set(value))))
    if not actions:
        raise DataError(
            f"This update of {plan.name} changes nothing; give it set=, remove=, add=, append= or delete=."
        )
    _check_overlap(plan, paths, places)
    changed = frozenset(plan.by_wire[str(path[0])].field for path in paths)
    checked = fields_to_read(plan, changes)
    return _Wanted(tuple(actions), known, added, changed, places, checked)


_adapters: dict[tuple[int, str], tuple[Any, TypeAdapter[Any]]] = {}


def _valid(place: FieldPath, value: Any) -> Any:
    """Return a value as the field's type has it, or say what is wrong with it."""
    annotation = place.annotation
    key = (id(annotation), place.owner)
    found = _adapters.get(key)
    if found is None or found[0] is not annotation:
        found = _adapters[key] = (annotation, TypeAdapter(place.validated))
    try:
        return found[1].validate_python(value)
    except ValidationError as refused:
        problem = refused.errors()[0]["msg"]
        raise DataError(
            f"{place.owner} = {value!r}: {problem}.", public_message=f"{place.owner}: {problem}."
        ) from refused


def _check_field(plan: Plan, path: Path, text: str) -> None:
    name = plan.by_wire[str(path[0])].field
    if name in plan.primary.fields:
        raise DataError(
            f"{plan.name}.{name} is part of its key and never changes; create another item instead."
        )
    if name in (plan.version, plan.updated, plan.created, *plan.counters):
        raise DataError(f"{plan.name}.{text} is kept by the store; leave it out of the update.")


def _check_removable(plan: Plan, name: str) -> None:
    info = plan.entity.model_fields[name]
    if info.is_required() and plan.attributes[name].missing is None:
        raise DataError(f"{plan.name}.{name} is required by its model and cannot be removed; set it instead.")


def _when_absent(plan: Plan, name: str) -> Any:
    """Return what a field is read as when its attribute is not there."""
    attribute, info = plan.attributes[name], plan.entity.model_fields[name]
    if attribute.missing is not None:
        return attribute.missing()
    if info.default_factory is None:
        return info.default
    if any(name in path.fields for path in plan.indexes):
        raise DataError(
            f"{plan.name}.{name} is part of an index key and its default is made again for every read; "
            f"set it instead of removing it."
        )
    return None


def _check_overlap(plan: Plan, paths: list[Path], places: Mapping[Path, FieldPath]) -> None:
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise DataError(f"{places[twice].owner} is changed twice in one update; once is possible.")
    found = find_clash(tuple(paths))
    if found is not None:
        _, one, other = found
        raise DataError(
            f"{places[one].owner} and {places[other].owner} lie in one another; "
            f"change the outer one, or the inner."
        )


def _unknown_parts(plan: Plan, wanted: _Wanted, values: Mapping[str, Any]) -> set[str]:
    """Return the fields that an affected index key needs and the caller did not give."""
    return {
        name
        for path in plan.indexes
        if path.fields & wanted.changed
        for name in path.fields
        if name not in values
    }


def _index_actions(plan: Plan, wanted: _Wanted, values: Mapping[str, Any]) -> list[Action]:
    actions: list[Action] = []
    for path in plan.indexes:
        if not path.fields & wanted.changed:
            continue
        attributes = path.encode(values)
        if attributes is None:
            # Sparse: both attributes go, so that half a key is never left behind.
            actions += [Remove((name,)) for name in path.derived]
        else:
            actions += [Assign((name,), Const(attributes[name])) for name in path.derived]
    return actions


def _with_own_fields(plan: Plan, wanted: _Wanted, now: datetime) -> _Wanted:
    """Return the changes with those that the store makes, where an index key has such a field."""
    indexed = {name for path in plan.indexes for name in path.fields}
    if plan.updated in indexed:
        known = {**wanted.known, plan.updated: plan.stamp(plan.updated, now)}
        wanted = replace(wanted, known=known, changed=wanted.changed | {plan.updated})
    if plan.version in indexed:
        added = {**wanted.added, plan.version: 1}
        wanted = replace(wanted, added=added, changed=wanted.changed | {plan.version})
    return wanted


def _own_actions(plan: Plan, now: datetime) -> list[Action]:
    actions: list[Action] = []
    if plan.version is not None:
        path = (plan.attributes[plan.version].wire,)
        raised = Arithmetic("+", IfNotExists(path, Const({"N": "0"})), Const({"N": "1"}))
        actions.append(Assign(path, raised))
    if plan.updated is not None:
        attribute = plan.attributes[plan.updated]
        stamp = attribute.encode(plan.stamp(plan.updated, now))
        assert stamp is not None
        actions.append(Assign((attribute.wire,), Const(stamp)))
    return actions


def _end_actions(plan: Plan, wanted: _Wanted) -> list[Action]:
    """Return what fills in the end of an entity whose retention begins with this update."""
    rule = plan.retention
    if rule is None or plan.ttl is None or plan.ttl in wanted.changed:
        return []
    end = rule.end_of(wanted.known)
    if end is None:
        return []
    attribute = plan.attributes[plan.ttl]
    value = attribute.encode(end)
    assert value is not None
    return [Assign((attribute.wire,), IfNotExists((attribute.wire,), Const(value)))]
