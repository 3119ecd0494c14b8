"""What callers hand to a verb, as flows take it. Nothing is sent from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.key import BoundKey
from solotable._entities.patterns.conditions import record
from solotable._entities.patterns.pattern import BoundPattern
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import Condition
from solotable._flows.transactions.write import ExpectedVersion
from solotable.errors import DataError

RowT = TypeVar("RowT")
ModelT = TypeVar("ModelT", bound=BaseModel)

#: A condition over an entity, written as a lambda: `lambda s: s.status != "archived"`. It gives an int to
#: type checkers because `~` of a bool does; a bool is one.
Where = Callable[[RowT], int] | None


def condition_of(entity: type[Entity] | Entity | Plan, where: Where[Any]) -> Condition | None:
    """Return the condition that a lambda writes."""
    if where is None:
        return None
    return record(entity if isinstance(entity, Plan) else entity.plan(), where)


def filtered(pattern: Query[ModelT], where: Where[Any]) -> Query[ModelT]:
    """Return a query with one more condition."""
    given: Any = pattern
    if isinstance(given, BoundPattern):
        raise DataError(f"{given.name} is a pattern: call it with its arguments to get its query.")
    if not isinstance(given, Query):
        raise DataError(f"Give a query, as a pattern or a key's query() returns it; {given!r} is none.")
    return pattern if where is None else pattern.filtered(record(pattern.plan, where))


def target_of(
    entity: type[Entity] | Entity, key: Mapping[str, Any], version: ExpectedVersion
) -> tuple[Plan, Mapping[str, Any], Entity | None, ExpectedVersion]:
    """Return what a write by key is aimed at: an entity's own key and version, or those given."""
    plan = entity.plan()
    if isinstance(entity, type):
        return plan, key, None, version
    if key:
        raise DataError(f"{plan.name}: give the entity or its key, not both ({', '.join(key)}).")
    own = {name: getattr(entity, name) for name in plan.primary.parts}
    if version is None and plan.version is not None:
        version = getattr(entity, plan.version)
    return plan, own, entity, version


def members_of(members: Sequence[type[Entity] | BoundKey[Any]]) -> list[tuple[Plan, AccessPath]]:
    """Return the plans and keys of a collection's members."""
    found = []
    for member in members:
        bound: BoundKey[Any] = member if isinstance(member, BoundKey) else BoundKey(member, "key")
        found.append((bound.entity.plan(), bound.path))
    return found
