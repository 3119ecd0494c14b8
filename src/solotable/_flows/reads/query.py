"""Run queries: filled pages, counts, and rows of indexes that project only keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import is_empty
from solotable._entities.patterns.conditions import check_joined
from solotable._entities.patterns.query import Query
from solotable._entities.patterns.query_partitions import QueryPartitions, partitions_of
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Condition
from solotable._expressions.evaluate import paths_of
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._protocol import requests
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.replies import Page as Reply
from solotable._protocol.replies import decode_items
from solotable._values import Item
from solotable.errors import DataError, DeclarationError, StoredDataError

from .get import fetch
from .sharded_query import Rows, ShardedRead, count_rows, read_merged

#: The number of items that one page may read before it is returned unfilled.
DEFAULT_WORK = 10_000
_MOST_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query bound to a scope: its request, and the identity that its cursors are bound to."""

    query: Query[Any]
    request: requests.Query | None
    #: The parts that determine the rows and their order, without the clock.
    identity: tuple[Any, ...] = field(repr=False)
    hydrates: bool
    #: The read over shards and buckets, which begins with `request`; None for a single partition.
    sharded_read: ShardedRead | None = field(default=None, repr=False)

    @property
    def bound_to(self) -> bytes:
        """The bytes that the cursors of this query are bound to; computed on use, as most pages need none."""
        return repr(self.identity).encode()

    @property
    def queries(self) -> int:
        """The number of partitions, each of which takes one Query."""
        if self.sharded_read is not None:
            return self.sharded_read.partitions.queries
        return 0 if self.request is None else 1

    @property
    def plan(self) -> Plan:
        """The plan of the query's entity."""
        return self.query.plan

    def __str__(self) -> str:
        if self.request is None:
            return f"{self.query!r} sends no request: no key is in its range"
        operation, members = encode_request(self.request)
        return f"{operation} {json.dumps(members, indent=2, ensure_ascii=False)}"


def prepare(scope: Scope, query: Query[Any]) -> PreparedQuery:
    """Return a query bound to a scope; nothing is sent."""
    plan, path = query.plan, query.path
    arguments = scope.bind(plan, query.arguments)
    partitions: QueryPartitions | None = None
    if path.is_split:
        partitions = partitions_of(path, arguments, query.sort_range, scope.now())
        terms = partitions.within
    else:
        terms = path.terms(arguments, query.sort_range)
    if is_empty(terms) or (partitions is not None and not partitions.buckets):
        return PreparedQuery(query, None, (), hydrates=False)
    hydrates = _check_projection(query)
    request = requests.Query(
        table=scope.table(plan.table),
        key=terms,
        index=None if path.index is None else path.index.name,
        filter=query.filter,
        projection=_projection(query) if not hydrates else None,
        forward=query.forward,
        consistent=query.consistently,
    )
    identity: tuple[Any, ...] = (plan.table.name, request, scope.tenant, scope.admin, plan.tag, query.view)
    if partitions is not None:
        identity += (partitions.identity,)
    alive = scope.alive(plan)
    if alive is not None and _has(plan, path, plan.attributes[plan.ttl or ""].wire):
        request = replace(request, filter=_both(request.filter, alive))
    undeleted = scope.undeleted(plan)
    if undeleted is not None and _may_meet_deleted(plan, path) and _has(plan, path, DELETED_AT):
        request = replace(request, filter=_both(request.filter, undeleted))
    if query.filter is not None:
        check_joined(plan, query.filter, request.filter)
    if partitions is None:
        return PreparedQuery(query, request, identity, hydrates)
    sharded_read = ShardedRead(partitions, request, _key_names(path, plan))
    return PreparedQuery(query, sharded_read.requests()[0], identity, hydrates, sharded_read)


def rows(scope: Scope, prepared: PreparedQuery, start: Item | None, limit: int | None) -> Flow[Rows]:
    """Return the rows of one request, or of one request to each shard."""
    if prepared.request is None:
        return Rows([], None, 0)
    if prepared.sharded_read is not None:
        batch = yield from read_merged(scope, prepared.sharded_read, start, limit)
        found, items, skipped = yield from _decode_rows(scope, prepared, batch.items)
        return Rows(found, batch.last_key, batch.scanned, items, skipped)
    request = replace(prepared.request, start=start, limit=limit)
    reply: Reply = yield from send(request, scope.retries)
    found, items, skipped = yield from _decode_rows(scope, prepared, decode_items(reply.items or ()))
    return Rows(found, reply.last_key or None, reply.scanned, items, skipped)


def _decode_rows(
    scope: Scope, prepared: PreparedQuery, items: Sequence[Item]
) -> Flow[tuple[list[Any], Sequence[Item], int]]:
    """Decode items, fetched whole if needed; return visible rows, their items, and how many are unknown."""
    query, plan = prepared.query, prepared.plan
    whole: Sequence[Item | None] = items
    if prepared.hydrates:
        keys = [{name: item[name] for name in plan.primary.names} for item in items]
        whole = yield from fetch(scope, plan, keys, consistent=False)
    row_of = scope.admit_page(plan) if query.view is None else partial(_view, scope, query.view, plan)
    found = [None if item is None else row_of(item) for item in whole]
    skipped = 0
    if any(row is None for row in found):
        skipped = sum(
            row is None and scope.is_unknown(plan.table, item) for row, item in zip(found, whole, strict=True)
        )
        visible = [(row, item) for row, item in zip(found, items, strict=True) if row is not None]
        found, items = [row for row, _ in visible], [item for _, item in visible]
    return found, items, skipped


@dataclass(frozen=True, slots=True)
class FilledPage:
    """A page: its rows, the cursor of the next page, and the number of items read."""

    rows: list[Any]
    cursor: str | None
    scanned: int
    #: The number of items that no entity matches, which were skipped.
    skipped: int = 0


def page(
    scope: Scope, query: Query[Any], *, limit: int, cursor: str | None, work: int = DEFAULT_WORK
) -> Flow[FilledPage]:
    """Return up to `limit` rows; read on behind a filter until the page is full or `work` items were read."""
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    prepared = prepare(scope, query)
    start = None if cursor is None else scope.cursor_signer.verify(cursor, prepared.bound_to)
    found: list[Any] = []
    scanned = skipped = 0
    while True:
        missing = limit - len(found)
        batch = yield from rows(scope, prepared, start, _at_once(missing, scanned, len(found), work))
        scanned, skipped = scanned + batch.scanned, skipped + batch.skipped
        found += batch.rows[:missing]
        if len(batch.rows) > missing:
            last = batch.items[missing - 1]
            start = {name: last[name] for name in _key_names(query.path, query.plan)}
            break
        start = batch.last_key
        if start is None or len(found) == limit or scanned >= work:
            break
    next_cursor = None if start is None else scope.cursor_signer.sign(start, prepared.bound_to)
    return FilledPage(found, next_cursor, scanned, skipped)


def _at_once(missing: int, scanned: int, found: int, work: int) -> int:
    """Return the number of items to read next, estimated from the rows per item so far."""
    if not scanned:
        return min(missing, work)
    wanted = missing * (scanned // max(found, 1) + 1)
    return max(1, min(max(wanted, missing), _MOST_AT_ONCE, work - scanned))


def count(scope: Scope, query: Query[Any]) -> Flow[int]:
    """Return the number of rows; DynamoDB charges for reading them, but does not return them."""
    prepared = prepare(scope, query)
    if prepared.request is None:
        return 0
    plan = prepared.plan
    if _countable(plan, query.path):
        assert plan.entity_filter is not None
        condition = _both(prepared.request.filter, plan.entity_filter)
        if query.filter is not None:
            check_joined(plan, query.filter, condition)
        reads = [prepared.request] if prepared.sharded_read is None else prepared.sharded_read.requests()
        counts = [replace(each, filter=condition, projection=None, select="COUNT") for each in reads]
        return (yield from count_rows(scope, counts))
    total, start = 0, None
    while True:
        batch = yield from rows(scope, prepared, start, None)
        total, start = total + len(batch.rows), batch.last_key
        if not start:
            return total


def _countable(plan: Plan, path: AccessPath) -> bool:
    """Return whether DynamoDB can count the visible rows of a path; it cannot recognise items by keys."""
    if not plan.table.tag_required:
        return False
    sees_deleted = not _may_meet_deleted(plan, path) or _has(plan, path, DELETED_AT)
    return sees_deleted and _has(plan, path, plan.table.internal_tag)


def _view(scope: Scope, view: type[BaseModel], plan: Plan, item: Item) -> Any:
    if scope.known(plan.table, item) is not plan:
        return None
    return None if scope.is_hidden(plan, item) else view_of(view, plan, item)


def view_of(view: type[BaseModel], plan: Plan, item: Item) -> Any:
    """Decode a stored item as a view of its entity."""
    item = plan.schema_versions.upgrade(item)
    if plan.cipher is not None:
        item = plan.cipher.decrypt(item)
    values = {
        name: plan.attributes[name].decode(item[plan.attributes[name].wire])
        for name in view.model_fields
        if plan.attributes[name].wire in item
    }
    try:
        return view.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoredDataError(
            f"A stored {plan.name} is invalid in the view {view.__name__}: {where}: {first['msg']}."
        ) from error


def _projection(query: Query[Any]) -> tuple[tuple[str, ...], ...] | None:
    plan = query.plan
    # Only upgrades know which attributes they need, so read items that may be old whole.
    if query.view is None or plan.schema_versions.upgrades:
        return None
    wanted = [plan.attributes[name].wire for name in query.view.model_fields]
    wanted += [plan.table.internal_tag, *_key_names(query.path, plan)]
    if plan.ttl is not None:
        wanted.append(plan.attributes[plan.ttl].wire)
    if plan.deletion is not None:
        wanted.append(DELETED_AT)
    wanted += (
        [plan.schema_versions.attribute, plan.schema_versions.oldest_attribute]
        if plan.schema_versions.declared
        else []
    )
    return tuple((name,) for name in dict.fromkeys(wanted))


def _check_projection(query: Query[Any]) -> bool:
    """Return whether rows must be fetched from the table; reject filters on attributes the index lacks."""
    plan, path = query.plan, query.path
    keys = set(path.names)
    used = {attribute[0] for attribute in paths_of(query.filter)} if query.filter is not None else set()
    for name in used:
        if name in keys:
            raise DeclarationError(
                f"{query.described}: DynamoDB rejects a filter on the key attribute {name!r}; "
                f"use an argument or a range of the key instead."
            )
        if not _has(plan, path, name):
            assert path.index is not None
            raise DeclarationError(
                f"{query.described}: index {path.index.name!r} does not project {name!r}, so DynamoDB cannot "
                f"filter by it; project the attribute, or filter the rows in Python."
            )
    if path.index is None or path.index.projection == "ALL":
        return False
    if plan.schema_versions.upgrades:
        # Only upgrades know which attributes they need.
        return True
    names = plan.attributes if query.view is None else query.view.model_fields
    needed = {plan.attributes[name].wire for name in names} | plan.identity.keys()
    if _may_meet_deleted(plan, path):
        needed.add(DELETED_AT)
    return not all(_has(plan, path, name) for name in needed)


def _may_meet_deleted(plan: Plan, path: AccessPath) -> bool:
    """Return whether a path has soft-deleted items; a delete removes them from derived indexes."""
    return plan.deletion is not None and (path.index is None or not path.derived)


def _has(plan: Plan, path: AccessPath, name: object) -> bool:
    """Return whether the path's index projects an attribute."""
    index = path.index
    if index is None or index.projection == "ALL":
        return True
    included = plan.table.projection(index).get("NonKeyAttributes", ())
    return name in included or name in path.names or name in plan.primary.names


def _key_names(path: AccessPath, plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*plan.primary.names, *path.names)))


def _both(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else And((one, other))
