"""Read entities by key: one, or many in the caller's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._protocol.replies import BatchGot, decode_items
from solotable._protocol.requests import BatchGetItem, GetItem, TableKeys
from solotable._values import Item
from solotable._values.limits import MOST_BATCH_GETS
from solotable.errors import BatchIncomplete, NotFound

EntityT = TypeVar("EntityT", bound=Entity)

_ROUNDS = 10


def get(
    scope: Scope, entity: type[EntityT], given: Mapping[str, Any], *, consistent: bool
) -> Flow[EntityT | None]:
    """Return the entity with this key, or None."""
    plan = entity.plan()
    key = plan.key_from(scope.bind(plan, given))
    request = GetItem(table=scope.table(plan.table), key=key, consistent=consistent)
    reply = yield from send(request, scope.retries)
    return None if reply.item is None else scope.admit(plan, decode_item(reply.item))


def require(
    scope: Scope, entity: type[EntityT], given: Mapping[str, Any], *, consistent: bool
) -> Flow[EntityT]:
    """Return the entity with this key, or raise NotFound."""
    found = yield from get(scope, entity, given, consistent=consistent)
    if found is None:
        raise not_found(entity.plan(), given)
    return found


def not_found(plan: Plan, given: Mapping[str, Any]) -> NotFound:
    """Return the error for an entity that does not exist."""
    shown = ", ".join(f"{name}={given[name]!r}" for name in plan.primary.parts if given.get(name) is not None)
    return NotFound(f"{plan.name} not found: {shown}.")


def get_many(
    scope: Scope, entity: type[EntityT], given: Sequence[Mapping[str, Any]], *, consistent: bool
) -> Flow[list[EntityT | None]]:
    """Return the entities with these keys in the same order; None for missing ones."""
    plan = entity.plan()
    keys = [plan.key_from(scope.bind(plan, each)) for each in given]
    found = yield from fetch(scope, plan, keys, consistent=consistent)
    return [None if item is None else scope.admit(plan, item) for item in found]


def fetch(scope: Scope, plan: Plan, keys: Sequence[Item], *, consistent: bool) -> Flow[list[Item | None]]:
    """Return the items of an entity with these keys in the same order."""
    return get_items(scope, plan.table, keys, consistent=consistent, title=plan.name)


def get_items(
    scope: Scope, table: Table, keys: Sequence[Item], *, consistent: bool, title: str = "item"
) -> Flow[list[Item | None]]:
    """Return the items with these keys in the same order; request unprocessed keys again."""
    names = table.key_names
    found: dict[tuple[str, ...], Item] = {}
    wanted = list({_identity(key, names): key for key in keys}.values())
    name = scope.table(table)
    for start in range(0, len(wanted), MOST_BATCH_GETS):
        left: Iterable[Item] = wanted[start : start + MOST_BATCH_GETS]
        for attempt in range(_ROUNDS):
            if attempt:
                yield scope.retries.wait(attempt)
            part = TableKeys(table=name, keys=tuple(left), consistent=consistent, wire=_wire(consistent))
            reply: BatchGot = yield from send(BatchGetItem(tables=(part,)), scope.retries)
            for item in decode_items(reply.responses.get(name, ())):
                found[_identity(item, names)] = item
            left = reply.unprocessed.get(name, {}).get("Keys", [])
            if not left:
                break
        else:
            raise BatchIncomplete(
                f"{len(list(left))} of {len(keys)} {title} keys were unprocessed after {_ROUNDS} attempts; "
                f"the table is throttled: request fewer keys, or try again later.",
                leftovers=list(left),
            )
    return [found.get(_identity(key, names)) for key in keys]


def _wire(consistent: bool) -> dict[str, Any]:
    return {"ConsistentRead": True} if consistent else {}


def _identity(item: Item, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{kind}{value}" for name in names for kind, value in item[name].items())
