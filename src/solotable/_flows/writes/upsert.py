"""Update an entity, or create it if it does not exist.

One UpdateItem does both if nothing depends on the stored item. Otherwise the item is read first, and the
write is an update or a create that requires what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import ValidationError

from solotable._entities.codecs.containers import input_name
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Action, Assign, Const, Exists, IfNotExists, Not, Or, Remove, Update
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import ensure_keys
from solotable._flows.transactions.write import ANY, Write, load_stored
from solotable._protocol.requests import UpdateItem
from solotable.errors import DataError

from .changes import Changes, ResolvedChanges, resolve_changes
from .put import PreparedPut, plan_put, prepare_put
from .update import managed_actions, plan_update, with_encrypted_fields, with_managed_fields

#: DynamoDB: an update expression has at most 4 KB; each default takes about 40 bytes of it.
_MOST_DEFAULTS = 60


def plan_upsert(scope: Scope, plan: Plan, given: Mapping[str, Any], changes: Changes) -> Flow[Write]:
    """Return the write that updates an entity or creates it; read the item first only if it is needed."""
    arguments = scope.bind(plan, given)
    key = plan.key_from(arguments)
    _check_whole(plan, changes)
    resolved = resolve_changes(plan, changes)
    values = dict(arguments)
    values |= {name: value for name, value in resolved.known.items() if name not in changes.remove}
    values |= resolved.if_missing
    values, adds_to_default = _with_additions(plan, values, changes)
    if plan.loads_keys:
        yield from ensure_keys(plan, values)
    prepared = prepare_put(scope, _new_entity(plan, values))
    # An addition starts from the default of a new entity, and from the stored value otherwise.
    if not adds_to_default and not _depends_on_stored(plan, prepared, resolved):
        return _single_update(scope, prepared, resolved)
    before = yield from load_stored(scope, plan, key)
    if before is None:
        created = yield from plan_put(scope, prepared, create=True)
        # Not `creates`: an item that another writer has created since the read is updated instead.
        return replace(created, verb="upsert", creates=False, derived_absent=True)
    version = None if plan.version is None else ANY
    updated = yield from plan_update(scope, plan, given, changes, version=version, before=before)
    again = None if updated.instead is None else partial(plan_upsert, scope, plan, given, changes)
    return replace(updated, verb="upsert", instead=again)


def _single_update(scope: Scope, prepared: PreparedPut, resolved: ResolvedChanges) -> Write:
    plan = prepared.plan
    now = scope.now() if plan.updated is None else prepared.values[plan.updated]
    resolved = with_encrypted_fields(plan, with_managed_fields(plan, resolved, now), prepared.values)
    actions = [*resolved.actions, *managed_actions(plan, now)]
    item, key_names = prepared.item, plan.primary.names
    index_attributes = {name for path in plan.indexes for name in path.derived}
    others = {*(str(action.path[0]) for action in actions), *index_attributes, *key_names}
    actions += [_set_if_missing(name, item) for name in item if name not in others]
    for name in index_attributes:
        actions.append(Assign((name,), Const(item[name])) if name in item else Remove((name,)))
    nothing = Not(Exists((plan.table.partition.name,)))
    return Write(
        plan=plan,
        verb="upsert",
        given=prepared.values,
        action=UpdateItem(
            table=scope.table(plan.table),
            key={name: item[name] for name in key_names},
            update=Update(tuple(actions), creates=True),
            condition=Or((nothing, scope.present(plan))),
            returns="ALL_NEW",
            returns_on_failure=True,
        ),
    )


def _set_if_missing(name: str, item: Mapping[str, Any]) -> Action:
    return Assign((name,), IfNotExists((name,), Const(item[name])))


def _depends_on_stored(plan: Plan, prepared: PreparedPut, resolved: ResolvedChanges) -> bool:
    """Return whether the write depends on the stored item, or differs without one."""
    if plan.is_derived_from or plan.ttl is not None or plan.schema_versions.declared or resolved.checked:
        return True
    if len(prepared.item) > _MOST_DEFAULTS:
        return True
    known = {*resolved.known, *plan.known_parts}
    return any(not path.sources <= known for path in plan.indexes)


def _check_whole(plan: Plan, changes: Changes) -> None:
    for texts in (
        changes.set,
        changes.set_if_missing,
        changes.remove,
        changes.add,
        changes.append,
        changes.prepend,
        changes.delete,
    ):
        for text in texts:
            if "." in text or "[" in text:
                raise DataError(
                    f"upsert() takes whole fields, got {plan.name}.{text}: a new item has nothing to change "
                    f"inside; use update(), or set the whole field."
                )


def _with_additions(plan: Plan, given: Mapping[str, Any], changes: Changes) -> tuple[dict[str, Any], bool]:
    """Return the values of a new entity, and whether an addition starts from a default that is not empty."""
    values = dict(given)
    grown = {*changes.add, *changes.append, *changes.prepend, *changes.delete}
    if not grown:
        return values, False
    # A default may be computed from the fields before its own, so take them in order.
    data: dict[str, Any] = {}
    has_defaults, is_complete = False, True
    for name, info in plan.entity.model_fields.items():
        default = None
        if name in values:
            data[name] = values[name]
            continue
        if not info.is_required() and (is_complete or not info.default_factory_takes_validated_data):
            default = data[name] = info.get_default(call_default_factory=True, validated_data=data)
        elif name not in grown:
            is_complete = False  # The model reports the missing field.
        if name in grown:
            has_defaults = has_defaults or bool(default)
            data[name] = values[name] = _added(plan, name, default, changes)
    return values, has_defaults


def _added(plan: Plan, name: str, default: Any, changes: Changes) -> Any:
    if name in changes.append:
        return [*(default or ()), *changes.append[name]]
    if name in changes.prepend:
        return [*changes.prepend[name], *(default or ())]
    if name in changes.delete:
        return set(default or ()) - set(changes.delete[name])
    amount = changes.add[name]
    if plan.attributes[name].kind == "N":
        return amount if default is None else default + amount
    return set(default or ()) | set(amount)


def _new_entity(plan: Plan, values: Mapping[str, Any]) -> Entity:
    """Return the entity that is created if none exists; raise DataError if the model rejects it."""
    try:
        return plan.entity.model_validate(values)
    except ValidationError as error:
        # The cause has the values of all fields.
        raise _rejected(plan, error) from (error if plan.cipher is None else None)


def _rejected(plan: Plan, error: ValidationError) -> DataError:
    problems = error.errors()
    # Pydantic names a field by its alias.
    names = {input_name(plan.entity, name): name for name in plan.entity.model_fields}
    places = [[names.get(str(part), part) for part in each["loc"][:1]] for each in problems]
    missing = [
        str(place[0])
        for each, place in zip(problems, places, strict=True)
        if each["type"] == "missing" and len(each["loc"]) == 1
    ]
    if missing:
        return DataError(
            f"upsert() of {plan.name} needs {' and '.join(missing)} to create the item; "
            f"pass set= or set_if_missing=, or use update() for an item that exists."
        )
    first = problems[0]
    where = ".".join(str(part) for part in (plan.name, *places[0], *first["loc"][1:]))
    public = f"{where}: {first['msg']}."
    shown = public if plan.cipher is not None else f"{where} = {first['input']!r}: {first['msg']}."
    return DataError(f"upsert() cannot create the item: {shown}", public_message=public)
