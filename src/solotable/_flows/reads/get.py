"""Read entities by key: one, or many in the caller's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.keys.key import EntityKey
from solotable._flows.hooks import after_read, check_readers
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.subject_keys import load_keys
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
    if plan.hooks_reads:
        yield from check_readers([plan])
    key = plan.key_from(scope.bind(plan, given))
    request = GetItem(table=scope.table(plan.table), key=key, consistent=consistent)
    reply = yield from send(request, scope.retries)
    item = None if reply.item is None else decode_item(reply.item)
    if plan.loads_keys:
        yield from load_keys(plan, [item])
    found = None if item is None else scope.admit(plan, item)
    return (yield from after_read([found]))[0] if plan.hooks_reads else found


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
    yield from check_readers([plan])
    keys = [plan.key_from(scope.bind(plan, each)) for each in given]
    items = yield from fetch(scope, plan, keys, consistent=consistent)
    if plan.loads_keys:
        yield from load_keys(plan, items)
    found = [None if item is None else scope.admit(plan, item) for item in items]
    return (yield from after_read(found)) if plan.hooks_reads else found


def get_keys(scope: Scope, keys: Sequence[EntityKey[Any]], *, consistent: bool) -> Flow[tuple[Any, ...]]:
    """Return the entities with these keys of any classes in the same order; None for missing ones."""
    yield from check_readers(key.entity.plan() for key in keys)
    located = [locate(scope, key) for key in keys]
    items = yield from _get_located(scope, located, consistent=consistent, title="entity")
    return (yield from admit_all(scope, keys, items))


def admit_all(
    scope: Scope, keys: Sequence[EntityKey[Any]], items: Sequence[Item | None]
) -> Flow[tuple[Any, ...]]:
    """Decode the items of these keys, and call the hooks after the read."""
    for plan in {key.entity.plan() for key in keys if key.entity.plan().loads_keys}:
        of_plan = zip(keys, items, strict=True)
        yield from load_keys(plan, [item for key, item in of_plan if key.entity.plan() is plan])
    found = [
        None if item is None else scope.admit(key.entity.plan(), item)
        for key, item in zip(keys, items, strict=True)
    ]
    return tuple((yield from after_read(found)))


def locate(scope: Scope, key: EntityKey[Any]) -> tuple[Table, Item]:
    """Return the table and the primary key of an entity."""
    plan = key.entity.plan()
    return plan.table, plan.key_from(scope.bind(plan, key.parts))


def fetch(scope: Scope, plan: Plan, keys: Sequence[Item], *, consistent: bool) -> Flow[list[Item | None]]:
    """Return the items of an entity with these keys in the same order."""
    return get_items(scope, plan.table, keys, consistent=consistent, title=plan.name)


def get_items(
    scope: Scope, table: Table, keys: Sequence[Item], *, consistent: bool, title: str = "item"
) -> Flow[list[Item | None]]:
    """Return the items with these keys in the same order; request unprocessed keys again."""
    return _get_located(scope, [(table, key) for key in keys], consistent=consistent, title=title)


def _get_located(
    scope: Scope, located: Sequence[tuple[Table, Item]], *, consistent: bool, title: str
) -> Flow[list[Item | None]]:
    key_names = {scope.table(table): table.key_names for table, _ in located}
    placed = [(scope.table(table), key) for table, key in located]
    identities = [identity(name, key, key_names[name]) for name, key in placed]
    found: dict[tuple[str, ...], Item] = {}
    wanted = list(dict(zip(identities, placed, strict=True)).values())
    for start in range(0, len(wanted), MOST_BATCH_GETS):
        left = wanted[start : start + MOST_BATCH_GETS]
        for attempt in range(_ROUNDS):
            if attempt:
                yield scope.retries.wait(attempt)
            reply: BatchGot = yield from send(_batch(left, consistent=consistent), scope.retries)
            for name, items in reply.responses.items():
                for item in decode_items(items):
                    found[identity(name, item, key_names[name])] = item
            left = [(name, key) for name, rest in reply.unprocessed.items() for key in rest.get("Keys", ())]
            if not left:
                break
        else:
            raise BatchIncomplete(
                f"{len(left)} of {len(located)} {title} keys were unprocessed after {_ROUNDS} attempts; "
                f"the table is throttled: request fewer keys, or try again later.",
                leftovers=[key for _, key in left],
            )
    return [found.get(each) for each in identities]


def _batch(left: Sequence[tuple[str, Item]], *, consistent: bool) -> BatchGetItem:
    by_table: dict[str, list[Item]] = {}
    for name, key in left:
        by_table.setdefault(name, []).append(key)
    return BatchGetItem(
        tables=tuple(
            TableKeys(table=name, keys=tuple(keys), consistent=consistent, wire=_wire(consistent))
            for name, keys in by_table.items()
        )
    )


def _wire(consistent: bool) -> dict[str, Any]:
    return {"ConsistentRead": True} if consistent else {}


def identity(table: str, item: Item, key_names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what tells an item apart from every other: its table and its primary key."""
    return (table, *(f"{kind}{value}" for name in key_names for kind, value in item[name].items()))
