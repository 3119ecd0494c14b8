"""Arguments of the stores' verbs: checked, and converted to what flows take. Sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.keys.key import BoundKey, EntityKey
from solotable._entities.patterns.conditions import record
from solotable._entities.patterns.pattern import BoundPattern
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import Condition
from solotable._flows.transactions.write import ExpectedVersion
from solotable._flows.writes.delete_partition import PartitionDeletion
from solotable.errors import DataError

EntityT = TypeVar("EntityT", bound=Entity)
RowT = TypeVar("RowT")
ModelT = TypeVar("ModelT", bound=BaseModel)

#: A condition on an entity as a lambda: `lambda s: s.status != "archived"`. Its result is an int for type
#: checkers, because `~` of a bool is an int.
Where = Callable[[RowT], int] | None
#: A member of a collection: a class by its primary key, another key, or a query.
Member = type[EntityT] | BoundKey[EntityT] | Query[EntityT]
#: The longest part of a string that an error quotes.
_LONGEST_SHOWN = 40
_WRITES_BY_KEY = frozenset({"upsert", "modify", "undelete", "hold", "release_hold", "check"})


class PartitionDeletionOptions(TypedDict, total=False):
    """The options of `delete_partition`, all of them optional."""

    #: The largest number of items to read.
    budget: int | None
    #: The cursor of a former deletion of the same query.
    cursor: str | None
    #: Count what would be deleted, and delete nothing.
    dry_run: bool
    #: Delete every item of the range, also of unknown types, in batches and without traits.
    raw: bool
    #: Called after each batch with what was done so far.
    progress: Callable[[PartitionDeletion], None] | None


def check_class(verb: str, entity: type[EntityT]) -> type[EntityT]:
    """Return the argument of a verb that takes an Entity class, or raise DataError."""
    given: object = entity
    if isinstance(given, type) and issubclass(given, Entity):
        if verb in _WRITES_BY_KEY:
            check_no_subclasses(verb, entity.plan())
        return entity
    raise DataError(f"{verb}() takes an Entity class, got {_shown(given)}.")


def entity_keys(verb: str, keys: Sequence[object]) -> list[EntityKey[Any]]:
    """Return the arguments of a verb that takes keys of entities, or raise DataError."""
    found: list[EntityKey[Any]] = []
    for key in keys:
        if not isinstance(key, EntityKey):
            raise DataError(
                f"{verb}() takes keys of entities, such as User.key(username=...), got {_shown(key)}."
            )
        found.append(key)
    return found


def check_no_subclasses(verb: str, plan: Plan) -> None:
    """Raise DataError for a write by key of a base class: it does not know how its subclasses are stored."""
    if plan.subclasses or plan.abstract:
        names = " or ".join(each.name for each in plan.subclasses.values()) or "a subclass"
        raise DataError(
            f"{verb}() of {plan.name} by key needs its class: pass {names}, or the entity that you read."
        )


def check_instance(verb: str, entity: EntityT) -> EntityT:
    """Return the argument of a verb that takes an Entity instance, or raise DataError."""
    given: object = entity
    if isinstance(given, Entity):
        return entity
    raise DataError(f"{verb}() takes an Entity instance, got {_shown(given)}.")


def check_query(verb: str, pattern: Query[ModelT]) -> Query[ModelT]:
    """Return the argument of a verb that takes a query, or raise DataError."""
    given: object = pattern
    if isinstance(given, Query):
        return pattern
    if isinstance(given, BoundPattern):
        raise DataError(f"{verb}() takes a Query, got the pattern {given.name}; call it with its arguments.")
    if isinstance(given, BoundKey):
        raise DataError(f"{verb}() takes a Query, got the key {given!r}; call its query() with its parts.")
    raise DataError(f"{verb}() takes a Query (from a pattern or key.query()), got {_shown(given)}.")


def _shown(given: object) -> str:
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if isinstance(given, str):
        return f"the string {given if len(given) <= _LONGEST_SHOWN else given[:_LONGEST_SHOWN] + '...'!r}"
    return f"an instance of {type(given).__name__}" if isinstance(given, Entity) else type(given).__name__


def condition_of(entity: type[Entity] | Entity | Plan, where: Where[Any]) -> Condition | None:
    """Return the condition of a lambda over an entity."""
    if where is None:
        return None
    return record(entity if isinstance(entity, Plan) else entity.plan(), where)


def filtered(verb: str, pattern: Query[ModelT], where: Where[Any]) -> Query[ModelT]:
    """Return a query with one more condition."""
    query = check_query(verb, pattern)
    return query if where is None else query.where(where)


def target_of(
    verb: str, entity: type[Entity] | Entity, key: Mapping[str, Any], version: ExpectedVersion
) -> tuple[Plan, Mapping[str, Any], Entity | None, ExpectedVersion]:
    """Return the target of a write: the key and version of an entity, or those that the caller passed."""
    if not (issubclass(entity, Entity) if isinstance(entity, type) else isinstance(entity, Entity)):
        raise DataError(f"{verb}() takes an Entity class and its key, or an instance, got {_shown(entity)}.")
    plan = entity.plan()
    if isinstance(entity, type):
        check_no_subclasses(verb, plan)
        return plan, key, None, version
    if key:
        raise DataError(f"{plan.name}: give the entity or its key, not both ({', '.join(key)}).")
    own = {name: getattr(entity, name) for name in plan.primary.parts}
    if version is None and plan.version is not None:
        version = getattr(entity, plan.version)
    return plan, own, entity, version


def members_of(
    members: Sequence[type[Entity] | BoundKey[Any] | Query[Any]], key: Mapping[str, Any]
) -> list[Query[Any]]:
    """Return the queries of a collection's members: their own, or the parts of `key` that their key has."""
    found: list[Query[Any]] = []
    for member in members:
        if isinstance(member, Query):
            found += member.parts
            continue
        if isinstance(member, BoundKey):
            bound: BoundKey[Any] = member
        else:
            bound = BoundKey(check_class("collection", member), "key")
        path = bound.path
        own = {name: value for name, value in key.items() if path.takes(name)}
        found.append(Query.over(bound.entity, path, own))
    if not found:
        raise DataError("collection() takes the entities of a partition, got none.")
    names = [part.plan.name for part in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"collection() groups items by class, got {twice} twice; remove one.")
    unused = {name for name in key if not any(part.path.takes(name) for part in found)}
    if unused:
        raise DataError(f"No entity of the collection has the key part {', '.join(sorted(unused))}.")
    return found
