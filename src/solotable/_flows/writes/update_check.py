"""Check, before an update is sent, that the model accepts the updated entity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Action, Assign, Condition, Const, Remove, Update
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Stored, Write, capitalize, condition_error
from solotable.errors import DataError, ServiceError, StoredDataError

from .changes import ResolvedChanges


def apply_checked(
    scope: Scope, write: Write, change: Update, before: Stored, condition: Condition | None
) -> Stored:
    """Return an entity with an update applied; raise DataError if its model rejects the result."""
    try:
        item = apply_update(change, before.item)
        return Stored(item, write.plan.decode(item))
    except (ServiceError, DataError) as error:
        # A failed condition takes precedence over a rejected result.
        if condition is not None and not evaluate(condition, before.item):
            raise condition_error(scope, write, before.item) from error
        if isinstance(error, ServiceError):
            raise DataError(f"{capitalize(write.title)}: {error.message}.") from error
        raise explain_misfit(write, error) from error


def changed_value(plan: Plan, actions: tuple[Action, ...], before: Stored, name: str) -> Any:
    """Return the value of a field after an update of its members."""
    try:
        item = apply_update(Update(actions, creates=True), before.item)
        return getattr(plan.decode(item), name)
    except (ServiceError, StoredDataError) as error:
        why = error.message if isinstance(error, ServiceError) else str(error)
        raise DataError(f"The update of {plan.name}.{name} fails: {why} Nothing was written.") from error


def changes_of_validators(plan: Plan, resolved: ResolvedChanges, after: Stored) -> ResolvedChanges | None:
    """Return the changes with the fields that validators changed besides; None if there are none.

    The update stores what the validated entity has, so that stored fields, index keys and locks follow it.
    """
    given = plan.raw_values(after.item)
    known: dict[str, Any] = {}
    for name in plan.attributes:
        value = after.entity.__dict__[name]
        if name in given:
            is_changed = given[name] != value
        else:
            info = plan.entity.model_fields[name]
            takes_data = info.default_factory_takes_validated_data
            is_default = value == info.default if info.default_factory is None else not takes_data
            is_changed = not is_default and plan.attributes[name].missing is None
        if is_changed:
            known[name] = value
    if not known:
        return None
    if names := known.keys() & plan.primary.fields:
        raise DataError(
            f"{plan.name}: a validator changes {', '.join(sorted(names))}, which is part of the primary key "
            f"and cannot change; create another entity."
        )
    wires = {plan.attributes[name].wire for name in known}
    actions: list[Action] = [each for each in resolved.actions if each.path[0] not in wires]
    for name, value in known.items():
        attribute = plan.attributes[name]
        encoded = attribute.encode(value)
        path = (attribute.wire,)
        actions.append(Remove(path) if encoded is None else Assign(path, Const(encoded)))
    return replace(
        resolved,
        actions=tuple(actions),
        known={**resolved.known, **known},
        added={name: value for name, value in resolved.added.items() if name not in known},
        if_missing={name: value for name, value in resolved.if_missing.items() if name not in known},
        changed=resolved.changed | known.keys(),
    )


def explain_misfit(write: Write, error: DataError) -> DataError:
    """Return the error for an update whose result the model rejects."""
    public = f"{write.plan.name} would be invalid."
    shown = str(error)
    if isinstance(error.__cause__, ValidationError):
        first = error.__cause__.errors()[0]
        where = ".".join(str(part) for part in (write.plan.name, *first["loc"]))
        public = f"{where}: {first['msg']}."
        shown = public if write.plan.cipher is not None else f"{where} = {first['input']!r}: {first['msg']}."
    return DataError(
        f"{capitalize(write.title)} would make the entity invalid: {shown} Nothing was written.",
        public_message=public,
    )
