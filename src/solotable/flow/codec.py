"""Encode entities and values as DynamoDB items, and decode items of replies."""

from __future__ import annotations

from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._expressions.prepared.slots import Slot
from solotable._flows.scope import Scope, decode_item
from solotable._protocol.replies import decode_items
from solotable._values import AttributeValue, Item, dump, load

EntityT = TypeVar("EntityT", bound=Entity)

__all__ = [
    "decode_entity",
    "decode_item",
    "decode_items",
    "decode_value",
    "encode_entity",
    "encode_value",
    "key_of",
]


def encode_value(value: Any) -> AttributeValue:
    """Return a Python value as a DynamoDB value.

    >>> encode_value(7), encode_value(["a"])
    ({'N': '7'}, {'L': [{'S': 'a'}]})
    """
    # The two most frequent types, without the pattern match.
    if type(value) is int:
        return {"N": str(value)}
    if type(value) is str:
        return {"S": value}
    return value if type(value) is Slot else dump(value)


def decode_value(value: AttributeValue) -> Any:
    """Return a DynamoDB value as a Python value."""
    return load(value)


def encode_entity(scope: Scope, entity: Entity) -> Item:
    """Encode an entity to its item, with its keys and the tenant of the scope.

    It does not set the version and the timestamps; `put` and `create` do.
    """
    plan = entity.plan()
    values = dict(scope.bind(plan, entity.__dict__))
    return plan.encode(values, plan.kept(entity, values))


def decode_entity(scope: Scope, entity: type[EntityT], item: Item) -> EntityT | None:
    """Decode an item to its entity; None if it belongs to another entity, is deleted or has expired.

    Raises TenantViolation for an item of another tenant.
    """
    found: EntityT | None = scope.admit(entity.plan(), item)
    return found


def key_of(scope: Scope, entity: type[Entity], /, **key: Any) -> Item:
    """Return the primary key of an entity in wire form."""
    plan = entity.plan()
    return plan.key_from(scope.bind(plan, key))
