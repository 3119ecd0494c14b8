"""Encode entities and values as DynamoDB items, and decode items of replies."""

from __future__ import annotations

from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
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
    # The two kinds that flows write most, without the pattern match.
    if type(value) is int:
        return {"N": str(value)}
    if type(value) is str:
        return {"S": value}
    return dump(value)


def decode_value(value: AttributeValue) -> Any:
    """Return a DynamoDB value as a Python value."""
    return load(value)


def encode_entity(scope: Scope, entity: Entity) -> Item:
    """Return an entity as its item, keys included, with the tenant of the scope.

    Version and timestamps stay as they are: `put` and `create` set those.
    """
    plan = entity.plan()
    return plan.encode(dict(scope.bind(plan, entity.__dict__)), entity.unknown_attributes)


def decode_entity(scope: Scope, entity: type[EntityT], item: Item) -> EntityT | None:
    """Return an item as its entity; None if it is another entity's, deleted or expired.

    Raises TenantViolation for an item of another tenant.
    """
    found: EntityT | None = scope.admit(entity.plan(), item)
    return found


def key_of(scope: Scope, entity: type[Entity], /, **key: Any) -> Item:
    """Return the primary key of an entity as DynamoDB has it."""
    plan = entity.plan()
    return plan.key_from(scope.bind(plan, key))
