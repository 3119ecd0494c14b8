"""Check, before an update is sent, that the model accepts the updated entity."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from solotable._entities.codecs.validator_functions import has_nested_functions
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.paths import FieldPath, field_path
from solotable._expressions.ast import Action, Assign, Condition, Const, Remove, Update
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import Stored, Write, capitalize, condition_error
from solotable._values import AttributeValue
from solotable.errors import DataError, DeclarationError, ServiceError, StoredDataError

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
    stored = after.item if plan.cipher is None else plan.cipher.decrypt(after.item)
    known: dict[str, Any] = {}
    encoded: dict[str, AttributeValue | None] = {}
    for name in plan.attributes:
        value = after.entity.__dict__[name]
        path = field_path(plan, name)
        before = stored.get(path.attribute.wire)
        if name in given and before is not None:
            is_changed = given[name] != value
            if is_changed or (path.attribute.opaque is None and has_nested_functions(plan.entity, name)):
                # The codec of a nested model validates, so only the stored form shows what has changed.
                encoded[name] = _with_unknown_members(path, before, path.attribute.encode(value), value)
                is_changed = is_changed or encoded[name] != before
        elif name in plan.primary.fields:
            is_changed = False  # The field was read from the key.
        else:
            info = plan.entity.model_fields[name]
            takes_data = info.default_factory_takes_validated_data
            is_default = value == info.default if info.default_factory is None else not takes_data
            is_changed = not is_default and path.attribute.missing is None
            encoded[name] = path.attribute.encode(value) if is_changed else None
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
    for name in known:
        at, new = (plan.attributes[name].wire,), encoded[name]
        actions.append(Remove(at) if new is None else Assign(at, Const(new)))
    return replace(
        resolved,
        actions=tuple(actions),
        known={**resolved.known, **known},
        added={name: value for name, value in resolved.added.items() if name not in known},
        if_missing={name: value for name, value in resolved.if_missing.items() if name not in known},
        changed=resolved.changed | known.keys(),
        # Another writer may have changed the fields since the read; a version changes with every field.
        checked=resolved.checked if plan.version in resolved.checked else resolved.checked | known.keys(),
    )


def _with_unknown_members(
    path: FieldPath, stored: AttributeValue, encoded: AttributeValue | None, value: Any
) -> AttributeValue | None:
    """Return an encoded value with the stored members of nested models that have no field."""
    if encoded is None:
        return None
    try:
        return _merged(path, stored, encoded, value)
    except DeclarationError:  # A union or a custom type, whose parts have no paths.
        return encoded


def _merged(path: FieldPath, stored: AttributeValue, encoded: AttributeValue, value: Any) -> AttributeValue:
    if "M" in stored and "M" in encoded and isinstance(value, BaseModel):
        fields = [(path.member(name), getattr(value, name)) for name in type(value).model_fields]
        members = {str(each.path[-1]): (each, member) for each, member in fields}
        merged = {name: each for name, each in stored["M"].items() if name not in members}
        for name, each in encoded["M"].items():
            merged[name] = _merged_member(members.get(name), stored["M"].get(name), each)
        return {"M": merged}
    if "M" in stored and "M" in encoded and isinstance(value, dict):
        pairs = zip(encoded["M"].items(), value.values(), strict=True)
        return {
            "M": {
                name: _merged_member((path.member(name), each), stored["M"].get(name), wire)
                for (name, wire), each in pairs
            }
        }
    if "L" in stored and "L" in encoded and len(stored["L"]) == len(encoded["L"]):
        triples = enumerate(zip(stored["L"], encoded["L"], value, strict=True))
        return {
            "L": [
                _merged_member((path.element(at), each), before, wire) for at, (before, wire, each) in triples
            ]
        }
    return encoded


def _merged_member(
    member: tuple[FieldPath, Any] | None, stored: AttributeValue | None, encoded: AttributeValue
) -> AttributeValue:
    if member is None or stored is None:
        return encoded
    return _with_unknown_members(member[0], stored, encoded, member[1]) or encoded


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
