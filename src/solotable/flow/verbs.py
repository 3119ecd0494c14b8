"""The verbs of a store as flows: each takes a scope and is run with `yield from`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, Unpack, overload

from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._entities.keys.key import EntityKey
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import Condition
from solotable._flows import retry
from solotable._flows.reads import get as get_flows
from solotable._flows.reads import query as query_flows
from solotable._flows.reads import scan as scan_flows
from solotable._flows.reads import transact_get as transact_get_flows
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope, Unknown
from solotable._flows.transactions.write import ExpectedVersion
from solotable._flows.writes import batch as batch_flows
from solotable._flows.writes import hooked
from solotable._flows.writes import modify as modify_flows
from solotable._flows.writes.changes import Changes
from solotable._flows.writes.delete_partition import DeletionOptions, PartitionDeletion
from solotable._flows.writes.delete_partition import delete_partition as partition_flow
from solotable._protocol.requests import Request
from solotable._store.arguments import (
    PartitionDeletionOptions,
    Where,
    check_class,
    check_instance,
    check_query,
    condition_of,
    entity_keys,
    filtered,
    target_of,
)
from solotable._store.page import Page
from solotable._store.unit_of_work import BatchWork, TransactionWork
from solotable._values import Item

E = TypeVar("E", bound=Entity)
RowT = TypeVar("RowT", bound=BaseModel)
ReplyT = TypeVar("ReplyT")


def send(scope: Scope, request: Request[ReplyT]) -> Flow[ReplyT]:
    """Send a request and return its reply; retry transient errors while a retry is safe.

    A write with an unknown outcome is retried only in a transaction with a token.
    """
    return retry.send(request, scope.retries)


def send_all(scope: Scope, requests: Sequence[Request[ReplyT]]) -> Flow[list[ReplyT]]:
    """Send several reads and return their replies in order; an async store sends them concurrently."""
    return retry.send_all(requests, scope.retries)


def get(scope: Scope, entity: type[E], /, *, consistent: bool = False, **key: Any) -> Flow[E | None]:
    """Return the entity with this key, or None."""
    return get_flows.get(scope, check_class("get", entity), key, consistent=consistent)


def require(scope: Scope, entity: type[E], /, *, consistent: bool = False, **key: Any) -> Flow[E]:
    """Return the entity with this key, or raise NotFound."""
    return get_flows.require(scope, check_class("require", entity), key, consistent=consistent)


@overload
def get_many(
    scope: Scope, entity: type[E], keys: Sequence[Mapping[str, Any]], *, consistent: bool = False
) -> Flow[list[E | None]]: ...
@overload
def get_many(
    scope: Scope, /, *keys: EntityKey[E], consistent: bool = False
) -> Flow[tuple[E | None, ...]]: ...
def get_many(
    scope: Scope, entity: Any = None, keys: Any = None, *more: Any, consistent: bool = False
) -> Flow[Any]:
    """Return the entities with these keys in the same order; None for missing ones.

    It takes a class and its keys, or keys of any classes: `get_many(scope, User.key(...), Order.key(...))`.
    """
    if isinstance(entity, EntityKey) or entity is keys is None:
        given = entity_keys("get_many", [each for each in (entity, keys) if each is not None] + [*more])
        return get_flows.get_keys(scope, given, consistent=consistent)
    check_class("get_many", entity)
    return get_flows.get_many(scope, entity, keys, consistent=consistent)


def transact_get(scope: Scope, /, *keys: EntityKey[E]) -> Flow[tuple[E | None, ...]]:
    """Return up to 100 entities by key as they were at one moment; None for missing ones."""
    return transact_get_flows.transact_get(scope, entity_keys("transact_get", keys))


def get_items(
    scope: Scope, table: Table, keys: Sequence[Item], *, consistent: bool = False
) -> Flow[list[Item | None]]:
    """Return the items of any entity with these primary keys in the same order; None for missing ones."""
    return get_flows.get_items(scope, table, keys, consistent=consistent)


def put(scope: Scope, entity: E, *, where: Where[E] = None) -> Flow[E]:
    """Create an entity or replace the stored one, and return the stored entity."""
    check_instance("put", entity)
    return hooked.put(scope, entity, where=condition_of(entity, where))


def create(scope: Scope, entity: E, *, where: Where[E] = None) -> Flow[E]:
    """Create an entity and return the stored one, or raise AlreadyExists."""
    check_instance("create", entity)
    return hooked.put(scope, entity, create=True, where=condition_of(entity, where))


def update(  # noqa: PLR0913 - the kinds of change, each by name
    scope: Scope,
    entity: type[E] | E,
    /,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
    remove: Iterable[str] = (),
    add: Mapping[str, Any] | None = None,
    append: Mapping[str, Any] | None = None,
    delete: Mapping[str, Any] | None = None,
    set_if_missing: Mapping[str, Any] | None = None,
    prepend: Mapping[str, Any] | None = None,
    where: Where[E] = None,
    version: ExpectedVersion = None,
    **key: Any,
) -> Flow[E]:
    """Change fields of a stored entity and return the stored result; raise NotFound if it does not exist."""
    plan, given, mine, expected = target_of("update", entity, key, version)
    changes = Changes.of(
        set=set,
        remove=remove,
        add=add,
        append=append,
        delete=delete,
        set_if_missing=set_if_missing,
        prepend=prepend,
    )
    condition_ = condition_of(plan, where)
    return hooked.update(scope, plan, given, changes, version=expected, mine=mine, where=condition_)


def upsert(  # noqa: PLR0913 - the kinds of change, each by name
    scope: Scope,
    entity: type[E],
    /,
    *,
    set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
    set_if_missing: Mapping[str, Any] | None = None,
    remove: Iterable[str] = (),
    add: Mapping[str, Any] | None = None,
    append: Mapping[str, Any] | None = None,
    prepend: Mapping[str, Any] | None = None,
    delete: Mapping[str, Any] | None = None,
    **key: Any,
) -> Flow[E]:
    """Change fields of a stored entity, or create it with these changes; return the stored result.

    See `Store.upsert`.
    """
    plan = check_class("upsert", entity).plan()
    changes = Changes.of(
        set=set,
        remove=remove,
        add=add,
        append=append,
        delete=delete,
        set_if_missing=set_if_missing,
        prepend=prepend,
    )
    return hooked.upsert(scope, plan, key, changes)


def delete(
    scope: Scope,
    entity: type[E] | E,
    /,
    *,
    where: Where[E] = None,
    version: ExpectedVersion = None,
    **key: Any,
) -> Flow[E | None]:
    """Delete an entity and return it; None if it did not exist."""
    plan, given, mine, expected = target_of("delete", entity, key, version)
    condition_ = condition_of(plan, where)
    return hooked.delete(scope, plan, given, version=expected, mine=mine, where=condition_)


def delete_items(scope: Scope, table: Table, keys: Iterable[Item]) -> Flow[int]:
    """Delete the items of any entity with these primary keys, without conditions; return their number."""
    return batch_flows.delete_items(scope, table, keys)


def delete_partition(
    scope: Scope, pattern: Query[Any], **options: Unpack[PartitionDeletionOptions]
) -> Flow[PartitionDeletion]:
    """Delete the rows of a query with a budget and a cursor; see `Store.delete_partition`."""
    chosen = DeletionOptions(**options)
    return partition_flow(scope, check_query("delete_partition", pattern), chosen)


def modify(
    scope: Scope,
    entity: type[E],
    change: modify_flows.Change[E],
    /,
    *,
    default: E | None = None,
    **key: Any,
) -> Flow[E]:
    """Read an entity, change it with a function and put it; retry after a conflict.

    See `Store.modify`.
    """
    return modify_flows.modify(scope, check_class("modify", entity), change, key, default=default)


def page(
    scope: Scope,
    pattern: Query[RowT],
    *,
    limit: int = 50,
    cursor: str | None = None,
    where: Where[RowT] = None,
    work: int = query_flows.DEFAULT_WORK,
    unknown: Unknown = "raise",
) -> Flow[Page[RowT]]:
    """Return a page of up to `limit` rows and the cursor of the next page."""
    found = yield from query_flows.page(
        scope.reading(unknown), filtered("page", pattern, where), limit=limit, cursor=cursor, work=work
    )
    return Page.of(found)


def query(
    scope: Scope, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
) -> Flow[list[RowT]]:
    """Return all rows of a query, for results that fit in memory."""
    scope = scope.reading(unknown)
    prepared = query_flows.prepare(scope, filtered("query", pattern, where))
    found: list[RowT] = []
    start = None
    while True:
        some = yield from query_flows.read(scope, prepared, start)
        found += some.rows
        start = some.last_key
        if start is None:
            return found


def count(
    scope: Scope, pattern: Query[RowT], *, where: Where[RowT] = None, unknown: Unknown = "raise"
) -> Flow[int]:
    """Return the number of rows; DynamoDB charges for reading them, but does not return them."""
    return query_flows.count(scope.reading(unknown), filtered("count", pattern, where))


def scan(
    scope: Scope, entity: type[E], *, where: Where[E] = None, budget: int, unknown: Unknown = "raise"
) -> Flow[list[E]]:
    """Return all items of an entity by reading its whole table; reads at most `budget` items.

    Requires the scope of an admin store.
    """
    condition_ = condition_of(check_class("scan", entity), where)
    found: list[E] = []
    start = None
    while True:
        part = scan_flows.ScanPart(segment=0, segments=1, start=start, budget=budget)
        some = yield from scan_flows.rows(scope.reading(unknown), entity.plan(), condition_, part)
        found += some.rows
        budget, start = budget - some.scanned, some.last_key
        if start is None:
            return found


def condition(entity: type[E], where: Where[E]) -> Condition | None:
    """Return the condition of a lambda over an entity's fields, for use in a request."""
    return condition_of(entity, where)


class Transaction(TransactionWork):
    """The writes of one transaction: `tx.put(...)`, then `yield from tx.commit()`.

    With a `token`, a transaction that is sent again within a day is executed once.
    """

    def commit(self) -> Flow[None]:
        """Send the writes as one transaction; raise TransactionFailed and write nothing if one fails."""
        return self._commit()


class Batch(BatchWork):
    """Puts and deletes without conditions: `batch.put(...)`, then `yield from batch.write()`.

    A batch checks no versions, so versioned entities need `overwrite=True`.
    """

    def __init__(self, scope: Scope, *, overwrite: bool = False) -> None:
        super().__init__(scope, overwrite=overwrite)

    def write(self) -> Flow[int]:
        """Send the writes in chunks and return the number of written items."""
        return self._write()
