"""Run queries: filled pages, counts, and rows of indexes that project only keys."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.bounds import cover
from solotable._entities.keys.layout import is_empty
from solotable._entities.patterns.conditions import check_joined
from solotable._entities.patterns.query import MixedQuery, Query
from solotable._entities.patterns.query_partitions import QueryPartitions, partitions_of
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Condition, KeyCondition, KeyTerm, Not, Or
from solotable._flows.consumption import Consumed, measured
from solotable._flows.hooks import after_read, check_readers
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import load_keys
from solotable._protocol import requests
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.replies import Page as Reply
from solotable._protocol.replies import decode_items
from solotable._values import Item
from solotable.errors import DataError, DeclarationError

from .get import fetch
from .mixed_query import MixedPart, MixedRead
from .projection import (
    check_projection,
    has_attribute,
    key_names,
    may_hide_more,
    may_meet_deleted,
    projection_of,
)
from .sharded_query import Rows, ShardedRead, count_rows, read_merged
from .views import admit_view

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
    #: The parts of a mixed query; None for a query of one entity.
    mixed_read: MixedRead | None = field(default=None, repr=False)

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

    @property
    def hooked(self) -> list[Plan]:
        """The plans of the rows that have hooks after reads; the rows of a view have none."""
        if self.query.view is not None:
            return []
        return [part.plan for part in self.query.parts if part.plan.hooks_reads]

    def reversed(self) -> PreparedQuery:
        """Return the same query in the opposite direction."""
        if self.request is None:
            return self
        sharded_read = None if self.sharded_read is None else self.sharded_read.reversed()
        return replace(
            self, request=replace(self.request, forward=not self.request.forward), sharded_read=sharded_read
        )

    def __str__(self) -> str:
        if self.request is None:
            return f"{self.query!r} sends no request: no key is in its range"
        operation, members = encode_request(self.request)
        return f"{operation} {json.dumps(members, indent=2, ensure_ascii=False)}"


def prepare(scope: Scope, query: Query[Any]) -> PreparedQuery:
    """Return a query bound to a scope; nothing is sent."""
    if isinstance(query, MixedQuery):
        return _prepare_mixed(scope, query)
    plan, path = query.plan, query.path
    arguments = scope.bind(plan, query.arguments)
    if path.computed:
        arguments = path.complete(arguments)
    partitions: QueryPartitions | None = None
    if path.is_split:
        partitions = partitions_of(path, arguments, query.sort_range, scope.now())
        terms = partitions.within
    else:
        terms = path.terms(arguments, query.sort_range)
    if is_empty(terms) or (partitions is not None and not partitions.buckets):
        return PreparedQuery(query, None, (), hydrates=False)
    hydrates = check_projection(query)
    request = requests.Query(
        table=scope.table(plan.table),
        key=terms,
        index=None if path.index is None else path.index.name,
        filter=query.filter,
        projection=projection_of(query) if not hydrates else None,
        forward=query.forward,
        consistent=query.consistently,
    )
    identity: tuple[Any, ...] = (plan.table.name, request, scope.tenant, scope.admin, plan.tag, query.view)
    if partitions is not None:
        identity += (partitions.identity,)
    visible = _visible(scope, query)
    if visible is not query.filter:
        request = replace(request, filter=visible)
    if query.filter is not None:
        check_joined(plan, query.filter, request.filter)
    if partitions is None:
        return PreparedQuery(query, request, identity, hydrates)
    sharded_read = ShardedRead(partitions, request, key_names(path, plan))
    return PreparedQuery(query, sharded_read.requests()[0], identity, hydrates, sharded_read)


def _prepare_mixed(scope: Scope, query: MixedQuery[Any]) -> PreparedQuery:
    """Return the one request for all parts of a mixed query."""
    partitions, parts = [], []
    for part in query.parts:
        partition, within = _single_partition(scope, part)
        if not is_empty(within):
            partitions.append(partition)
            parts.append(MixedPart(part, within))
    if any(partition != partitions[0] for partition in partitions):
        shown = " and ".join(dict.fromkeys("/".join(map(_shown, partition)) for partition in partitions))
        raise DeclarationError(
            f"The entities of a mixed query or collection must share a partition; got {shown}."
        )
    if not parts:
        return PreparedQuery(query, None, (), hydrates=False)
    # Check every part, also after one that must be fetched.
    hydrates = True in [check_projection(part) for part in query.parts]
    path = query.path
    request = requests.Query(
        table=scope.table(query.plan.table),
        key=partitions[0] + cover([part.within for part in parts]),
        index=None if path.index is None else path.index.name,
        forward=query.forward,
        consistent=query.consistently,
    )
    read = tuple((part.query.plan.tag, part.within, part.query.filter) for part in parts)
    identity = (query.plan.table.name, request, scope.tenant, scope.admin, read)
    condition = _mixed_filter(scope, [part.query for part in parts])
    for part in query.parts:
        if part.filter is not None:
            check_joined(part.plan, part.filter, condition)
    request = replace(request, filter=condition)
    return PreparedQuery(query, request, identity, hydrates, mixed_read=MixedRead(tuple(parts)))


def _single_partition(scope: Scope, query: Query[Any]) -> tuple[KeyCondition, KeyCondition]:
    """Return the conditions on the partition key and on the sort key of a part of a mixed query."""
    path, arguments = query.path, query.path.complete(scope.bind(query.plan, query.arguments))
    if not path.is_split:
        within = () if path.sort is None else path.sort.within(arguments, query.sort_range)
        return path.partition.equals(arguments), within
    partitions = partitions_of(path, arguments, query.sort_range, scope.now())
    if partitions.queries > 1:
        raise DataError(
            f"{query.described} is stored in {partitions.queries} partitions (shards or time buckets), but a "
            f"mixed query or collection reads one; pass the parts that choose the partition, declare "
            f"shard_by= with fields that you pass, or read the entities one by one."
        )
    text = partitions.buckets[0][0] if partitions.buckets else ""
    return partitions.terms(text, ()), partitions.within


def _shown(term: KeyTerm) -> str:
    return str(next(iter(term.values[0].values())))


def _mixed_filter(scope: Scope, parts: Sequence[Query[Any]]) -> Condition | None:
    """Return the filter of a mixed query, which drops items of an entity that meet no part's conditions.

    Items of other entities pass, so that an item of an unknown type is noticed.
    """
    table, path = parts[0].plan.table, parts[0].path
    if not table.tag_required or not has_attribute(parts[0].plan, path, table.internal_tag):
        # DynamoDB cannot tell the entities apart; the store does, after it has read the items.
        return None
    terms: list[Condition] = []
    for plan in {part.plan.tag: part.plan for part in parts}.values():
        # An item of a subclass may also be a row of a part of its base class.
        conditions = [_visible(scope, part) for part in parts if _tags(part.plan) & _tags(plan)]
        stated = tuple(condition for condition in conditions if condition is not None)
        if len(stated) == len(conditions):
            assert plan.entity_filter is not None
            terms.append(Or((Not(plan.entity_filter), *stated)))
    return And(tuple(terms)) if len(terms) > 1 else next(iter(terms), None)


def _tags(plan: Plan) -> set[str]:
    """Return the tags of the items that reads of an entity return."""
    return {plan.tag, *plan.subclasses}


def _visible(scope: Scope, query: Query[Any]) -> Condition | None:
    """Return the filter of a query, with the conditions that an item is neither expired nor deleted."""
    plan, path, condition = query.plan, query.path, query.filter
    alive = scope.alive(plan)
    if alive is not None and has_attribute(plan, path, plan.attributes[plan.ttl or ""].wire):
        condition = _both(condition, alive)
    undeleted = scope.undeleted(plan)
    if undeleted is not None and may_meet_deleted(plan, path) and has_attribute(plan, path, DELETED_AT):
        condition = _both(condition, undeleted)
    return condition


def rows(scope: Scope, prepared: PreparedQuery, start: Item | None, limit: int | None) -> Flow[Rows]:
    """Return the rows of one request, or of one request to each shard."""
    if prepared.request is None:
        return Rows([], None, 0)
    if prepared.sharded_read is not None:
        batch = yield from read_merged(scope, prepared.sharded_read, start, limit)
        found, items, skipped = yield from _decode_rows(scope, prepared, batch.items)
        return Rows(found, batch.last_key, batch.scanned, items, skipped)
    request = prepared.request.page(start, limit)
    reply: Reply = yield from send(request, scope.retries)
    found, items, skipped = yield from _decode_rows(scope, prepared, decode_items(reply.items or ()))
    return Rows(found, reply.last_key or None, reply.scanned, items, skipped)


def read(scope: Scope, prepared: PreparedQuery, start: Item | None) -> Flow[Rows]:
    """Return the next rows as a caller gets them, after the hooks of their entities."""
    hooked = prepared.hooked
    if not hooked:
        return (yield from rows(scope, prepared, start, None))
    yield from check_readers(hooked)
    found = yield from rows(scope, prepared, start, None)
    return replace(found, rows=(yield from after_read(found.rows)))


def _decode_rows(
    scope: Scope, prepared: PreparedQuery, items: Sequence[Item]
) -> Flow[tuple[list[Any], Sequence[Item], int]]:
    """Decode items, fetched whole if needed; return visible rows, their items, and how many are unknown."""
    query, plan = prepared.query, prepared.plan
    whole: Sequence[Item | None] = items
    if prepared.hydrates:
        keys = [{name: item[name] for name in plan.primary.names} for item in items]
        whole = yield from fetch(scope, plan, keys, consistent=False)
    for part in query.parts:
        if part.plan.loads_keys:
            yield from load_keys(part.plan, whole)
    if prepared.mixed_read is not None:
        entity_of = prepared.mixed_read.admit_page(scope)
        pairs = zip(items, whole, strict=True)
        found = [None if item is None else entity_of(row, item) for row, item in pairs]
    else:
        row_of = (
            scope.admit_page(plan, whole[0] if whole else None)
            if query.view is None
            else partial(admit_view, scope, query.view, plan)
        )
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
    #: The cursor of the page before.
    previous: str | None = None
    consumed: Consumed | None = None


@measured
def page(
    scope: Scope, query: Query[Any], *, limit: int, cursor: str | None, work: int = DEFAULT_WORK
) -> Flow[FilledPage]:
    """Return up to `limit` rows; read on behind a filter until the page is full or `work` items were read.

    A `previous` cursor reads against the query's direction; the rows are returned in the query's order.
    """
    if limit < 1:
        raise DataError(f"limit= must be at least 1, got {limit}.")
    prepared = prepare(scope, query)
    if cursor is None:
        found = yield from _read_page(scope, prepared, None, limit, work)
        following = None if found.end is None else scope.cursor_signer.sign(found.end, prepared.bound_to)
        return FilledPage(found.rows, following, found.scanned, found.skipped)
    bound_to = prepared.bound_to
    forward, backward = bound_to, bound_to + _BACKWARD
    start, at = scope.cursor_signer.verify_any(cursor, (forward, backward))
    sign = scope.cursor_signer.sign
    if at == 0:
        found = yield from _read_page(scope, prepared, start, limit, work)
        # Without rows, the page before ends where this one does.
        return FilledPage(
            found.rows,
            None if found.end is None else sign(found.end, forward),
            found.scanned,
            found.skipped,
            sign(found.first or found.end, backward),
        )
    found = yield from _read_page(scope, prepared.reversed(), start, limit, work)
    found.rows.reverse()
    return FilledPage(
        found.rows,
        sign(found.first or found.end, forward),
        found.scanned,
        found.skipped,
        None if found.end is None else sign(found.end, backward),
    )


#: Added to the identity of a query in cursors that read against its direction.
_BACKWARD = b" backward"


@dataclass(frozen=True, slots=True)
class _PageRead:
    """The rows of a page in the order they were read, the keys of its ends, and the number of items read."""

    rows: list[Any]
    #: The key of the first row; None without rows.
    first: Item | None
    #: The key after which to continue; None at the end of the range.
    end: Item | None
    scanned: int
    skipped: int


def _read_page(
    scope: Scope, prepared: PreparedQuery, start: Item | None, limit: int, work: int
) -> Flow[_PageRead]:
    found: list[Any] = []
    first: Item | None = None
    scanned = skipped = 0
    names = key_names(prepared.query.path, prepared.plan)
    hooked = prepared.hooked
    yield from check_readers(hooked)
    while True:
        missing = limit - len(found)
        batch = yield from rows(scope, prepared, start, _at_once(missing, scanned, len(found), work))
        scanned, skipped = scanned + batch.scanned, skipped + batch.skipped
        found += batch.rows[:missing]
        if first is None and batch.rows:
            first = batch.items[0]
        if len(batch.rows) > missing:
            last = batch.items[missing - 1]
            start = {name: last[name] for name in names}
            break
        start = batch.last_key
        if start is None or len(found) == limit or scanned >= work:
            break
    if hooked:
        found = yield from after_read(found)
    return _PageRead(found, first and {name: first[name] for name in names}, start, scanned, skipped)


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
    if prepared.mixed_read is None and _countable(scope, plan, query.path):
        assert plan.entity_filter is not None
        condition = _both(prepared.request.filter, plan.entity_filter)
        is_tenant = scope.is_tenant(plan)
        if is_tenant is not None and plan.attributes[plan.tenant or ""].wire not in query.path.names:
            condition = _both(condition, is_tenant)
        undeleted = None if may_meet_deleted(plan, query.path) else scope.undeleted(plan)
        if undeleted is not None and has_attribute(plan, query.path, DELETED_AT):
            # A delete by an older release leaves an item in an index that it does not know.
            condition = _both(condition, undeleted)
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


def _countable(scope: Scope, plan: Plan, path: AccessPath) -> bool:
    """Return whether DynamoDB can count the visible rows of a path; it cannot recognise items by keys."""
    if not plan.table.tag_required or may_hide_more(plan):
        return False
    if plan.tenant is not None:
        tenant = plan.attributes[plan.tenant]
        if not tenant.stored or (scope.tenant is not None and not has_attribute(plan, path, tenant.wire)):
            return False
    sees_deleted = not may_meet_deleted(plan, path) or has_attribute(plan, path, DELETED_AT)
    return sees_deleted and has_attribute(plan, path, plan.table.internal_tag)


def _both(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else And((one, other))
