"""Create items that do not exist: through the model, or as they are written."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._expressions.ast import Exists, Not
from solotable._flows.writes import hooked
from solotable._flows.writes.put import prepare_put
from solotable._protocol.requests import PutItem
from solotable._store.runner import run
from solotable._values import Item
from solotable.console.data.catalog import LiveTable
from solotable.console.state import Console
from solotable.errors import ConditionFailed, DataError, SolotableError

from .draft import Row, encode_value
from .save import Conflict, check_unaltered


def writable(plan: Plan) -> dict[str, Attribute]:
    """Return the fields that a user writes, by the names of their attributes."""
    return {
        each.wire: each
        for each in plan.attributes.values()
        if not (each.version or each.created or each.updated or each.counter) and each.opaque is None
    }


def why_not(plan: Plan) -> str:
    """Return why a form cannot create entities of a model; empty if it can."""
    if plan.abstract:
        return f"{plan.name} is abstract; create an item of one of its subclasses."
    fields = plan.entity.model_fields
    needed = [
        f"{name} is {each.opaque}"
        for name, each in plan.attributes.items()
        if each.opaque is not None and fields[name].is_required()
    ]
    return f"{', '.join(needed)}; create {plan.name} with a program." if needed else ""


def blank_rows(plan: Plan, tenant: str | None) -> tuple[Row, ...]:
    """Return a row for each required field, and for each field whose default is not None."""
    found: list[Row] = []
    for wire, attribute in writable(plan).items():
        if attribute.field == plan.tenant:
            found.append(Row(name=wire, kind="S", text=tenant or ""))
            continue
        if plan.entity.model_fields[attribute.field].is_required():
            found.append(blank_row(wire, attribute))
            continue
        value = _default(plan, attribute)
        if value is not None:
            kind, text, escaped = encode_value(value)
            found.append(Row(name=wire, kind=kind, text=text, escaped=escaped))
    return tuple(found)


def blank_row(wire: str, attribute: Attribute) -> Row:
    """Return the row of a field without a value."""
    return Row(name=wire, kind=attribute.kind or "S", text="")


def required_names(plan: Plan) -> frozenset[str]:
    """Return the attributes that an entity must have."""
    return frozenset(
        wire
        for wire, each in writable(plan).items()
        if each.field == plan.tenant or plan.entity.model_fields[each.field].is_required()
    )


def _default(plan: Plan, attribute: Attribute) -> Any:
    """Return the default of a field in wire form; None without one, or if it needs other fields."""
    try:
        value = plan.entity.model_fields[attribute.field].get_default(
            call_default_factory=True, validated_data={}
        )
        return None if value is None else attribute.encode(value)
    except (KeyError, TypeError, ValueError, DataError):
        return None


def create_entity(console: Console, plan: Plan, item: Item) -> Item:
    """Create the entity with these attributes; return its key. Raises Conflict and DataError."""
    entity = _build(plan, item)
    assert console.database is not None
    scope = console.database.scope
    if plan.tenant is not None:
        scope = scope.of_tenant(str(getattr(entity, plan.tenant)))
    encoded = prepare_put(scope, entity).item
    stored = {name: value for name, value in item.items() if name in plan.by_wire}
    check_unaltered(plan, stored, {name: encoded[name] for name in stored if name in encoded})
    try:
        run(hooked.put(scope, entity, create=True), console.engine)
    except ConditionFailed as error:
        raise Conflict(str(error)) from error
    return {name: encoded[name] for name in plan.table.key_names}


def _build(plan: Plan, item: Item) -> Entity:
    """Return the entity of attributes as a user wrote them."""
    known = writable(plan)
    values: dict[str, Any] = {}
    for name, value in item.items():
        if name not in known:
            raise DataError(
                f"{name}: not a field of {plan.name} that you write; its fields are {', '.join(known)}. "
                f"Create a raw item for other attributes."
            )
        try:
            values[known[name].field] = known[name].decode(value)
        except (SolotableError, ValueError, TypeError, ArithmeticError) as error:
            raise DataError(f"{name}: {_reason(error)}") from None
    try:
        return plan.entity.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where or plan.name}: {first['msg']}.") from None


def _reason(error: Exception) -> str:
    """Return why a value does not fit, without the part of the sentence that is about a stored item."""
    what, _, reason = str(error).partition(": ")
    return reason.partition("; correct the item")[0] if " the stored " in what else str(error)


def create_raw(console: Console, table: LiveTable, item: Item) -> Item:
    """Put an item as it is, if its key is free; return its key. Raises Conflict."""
    for part in table.keys:
        if part.kind not in item.get(part.name, {}):
            raise DataError(f"{part.name}: the key needs a value of type {part.kind}.")
    absent = Not(Exists((table.partition.name,)))
    try:
        console.engine.handle(PutItem(table=table.name, item=item, condition=absent))
    except ConditionFailed as error:
        raise Conflict("An item with this key exists; open it to edit it.") from error
    return table.key_of(item)
