"""Running queries: pages that fill, counts, collections, and rows from indexes that hold only keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout, highest_with_prefix, is_empty
from solotable._entities.patterns.query import Query
from solotable._entities.patterns.query_partitions import QueryPartitions, partitions_of
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, KeyTerm
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
from .sharded_query import Rows, ShardedRead, gather, tally

#: How many items one page may read before it is handed out unfilled.
DEFAULT_WORK = 10_000
_MOST_AT_ONCE = 1_000
#: Larger than any page that DynamoDB gives.
_MOST_IN_COLLECTION = 10_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query bound to a scope: the request, what cursors are bound to, and what rows need."""

    query: Query[Any]
    request: requests.Query | None
    #: Everything that says which rows there are and in what order; the clock is not among it.
    identity: tuple[Any, ...] = field(repr=False)
    hydrates: bool
    #: The walk over shards and buckets, of which `request` is the first; None where one partition is read.
    walk: ShardedRead | None = field(default=None, repr=False)

    @property
    def bound_to(self) -> bytes:
        """The bytes that a cursor of this query is signed with; most pages need none."""
        return repr(self.identity).encode()

    @property
    def queries(self) -> int:
        """How many partitions are read, each by its own query."""
        if self.walk is not None:
            return self.walk.lanes.queries
        return 0 if self.request is None else 1

    @property
    def plan(self) -> Plan:
        """The plan of the entity that is asked for."""
        return self.query.plan

    def __str__(self) -> str:
        if self.request is None:
            return f"{self.query!r} reads nothing: no key is in its range"
        operation, members = encode_request(self.request)
        return f"{operation} {json.dumps(members, indent=2, ensure_ascii=False)}"


def prepare(scope: Scope, query: Query[Any]) -> Prepared:
    """Return a query as the scope would send it; nothing is sent."""
    plan, path = query.plan, query.path
    arguments = scope.bind(plan, query.arguments)
    lanes: QueryPartitions | None = None
    if path.is_split:
        lanes = partitions_of(path, arguments, query.sort_range, scope.now())
        terms = lanes.within
    else:
        terms = path.terms(arguments, query.sort_range)
    if is_empty(terms) or (lanes is not None and not lanes.buckets):
        return Prepared(query, None, (), hydrates=False)
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
    if lanes is not None:
        identity += (lanes.identity,)
    alive = scope.alive(plan)
    if alive is not None and _has(plan, path, plan.attributes[plan.ttl or ""].wire):
        request = replace(request, filter=_both(request.filter, alive))
    undeleted = scope.undeleted(plan)
    if undeleted is not None and _may_meet_deleted(plan, path) and _has(plan, path, DELETED_AT):
        request = replace(request, filter=_both(request.filter, undeleted))
    if lanes is None:
        return Prepared(query, request, identity, hydrates)
    walk = ShardedRead(lanes, request, _key_names(path, plan))
    return Prepared(query, walk.requests()[0], identity, hydrates, walk)


def rows(scope: Scope, prepared: Prepared, start: Item | None, limit: int | None) -> Flow[Rows]:
    """Return the rows of one request, or of one to each shard."""
    if prepared.request is None:
        return Rows([], None, 0)
    if prepared.walk is not None:
        some = yield from gather(scope, prepared.walk, start, limit)
        found, items = yield from _shown(scope, prepared, some.items)
        return Rows(found, some.last_key, some.scanned, items)
    request = replace(prepared.request, start=start, limit=limit)
    reply: Reply = yield from send(request, scope.retries)
    found, items = yield from _shown(scope, prepared, decode_items(reply.items or ()))
    return Rows(found, reply.last_key or None, reply.scanned, items)


def _shown(scope: Scope, prepared: Prepared, items: Sequence[Item]) -> Flow[tuple[list[Any], Sequence[Item]]]:
    """Return items as rows, whole, and the items of those that are shown in the scope."""
    query, plan = prepared.query, prepared.plan
    whole: Sequence[Item | None] = items
    if prepared.hydrates:
        keys = [{name: item[name] for name in plan.primary.names} for item in items]
        whole = yield from fetch(scope, plan, keys, consistent=False)
    row_of = scope.admit_page(plan) if query.view is None else partial(_view, scope, query.view, plan)
    found = [None if item is None else row_of(item) for item in whole]
    if any(row is None for row in found):
        kept = [(row, item) for row, item in zip(found, items, strict=True) if row is not None]
        found, items = [row for row, _ in kept], [item for _, item in kept]
    return found, items


@dataclass(frozen=True, slots=True)
class FilledPage:
    """A page: its rows, the cursor of the next one, and how many items were read for it."""

    rows: list[Any]
    cursor: str | None
    scanned: int


def page(
    scope: Scope, query: Query[Any], *, limit: int, cursor: str | None, work: int = DEFAULT_WORK
) -> Flow[FilledPage]:
    """Return up to `limit` rows, reading on under filters until they are found or the work is done."""
    if limit < 1:
        raise DataError(f"A page has at least one row; limit={limit} was given.")
    prepared = prepare(scope, query)
    start = None if cursor is None else scope.sealer.open(cursor, prepared.bound_to)
    found: list[Any] = []
    scanned = 0
    while True:
        missing = limit - len(found)
        some = yield from rows(scope, prepared, start, _at_once(missing, scanned, len(found), work))
        scanned += some.scanned
        found += some.rows[:missing]
        if len(some.rows) > missing:
            last = some.items[missing - 1]
            start = {name: last[name] for name in _key_names(query.path, query.plan)}
            break
        start = some.last_key
        if start is None or len(found) == limit or scanned >= work:
            break
    sealed = None if start is None else scope.sealer.seal(start, prepared.bound_to)
    return FilledPage(found, sealed, scanned)


def _at_once(missing: int, scanned: int, found: int, work: int) -> int:
    """Return how many items to read next: as many as rows are missing, by the yield so far."""
    if not scanned:
        return min(missing, work)
    wanted = missing * (scanned // max(found, 1) + 1)
    return max(1, min(max(wanted, missing), _MOST_AT_ONCE, work - scanned))


def count(scope: Scope, query: Query[Any]) -> Flow[int]:
    """Return how many rows there are; the rows themselves are read and paid for, but not sent."""
    prepared = prepare(scope, query)
    if prepared.request is None:
        return 0
    plan = prepared.plan
    if _countable(plan, query.path):
        is_ours = Compare("=", Attr((plan.table.tag,)), Const(plan.tag_value))
        kept = _both(prepared.request.filter, is_ours)
        asked = [prepared.request] if prepared.walk is None else prepared.walk.requests()
        counting = [replace(each, filter=kept, projection=None, select="COUNT") for each in asked]
        return (yield from tally(scope, counting))
    total, start = 0, None
    while True:
        some = yield from rows(scope, prepared, start, None)
        total, start = total + len(some.rows), some.last_key
        if not start:
            return total


def _countable(plan: Plan, path: AccessPath) -> bool:
    """Whether a count on a path can tell what is shown of the entity."""
    sees_deleted = not _may_meet_deleted(plan, path) or _has(plan, path, DELETED_AT)
    return sees_deleted and _has(plan, path, plan.table.tag)


def collection(
    scope: Scope, members: Sequence[tuple[Plan, AccessPath]], given: Mapping[str, Any], *, most: int
) -> Flow[list[list[Any]]]:
    """Return the items of several entities that lie together, a list for each entity, by one query."""
    table, terms = _span(scope, members, given)
    first = members[0][1]
    for _, path in members:
        if path.index is not None and path.index.projection != "ALL":
            raise DeclarationError(
                f"A collection needs whole items; {path.index.name} projects only some of each."
            )
    request = requests.Query(table=table, key=terms, index=None if first.index is None else first.index.name)
    found: dict[str, list[Any]] = {plan.tag: [] for plan, _ in members}
    total, start = 0, None
    while True:
        reply: Reply = yield from send(replace(request, start=start), scope.retries)
        for item in decode_items(reply.items or ()):
            plan = scope.known(members[0][0].table, item)
            if plan is not None and plan.tag in found and (entity := scope.admit(plan, item)) is not None:
                found[plan.tag].append(entity)
                total += 1
        if total > most:
            raise DataError(f"The collection has more than {most:,} items; page through one entity of it.")
        start = reply.last_key
        if not start:
            return [found[plan.tag] for plan, _ in members]


def rooted(root: object, found: list[list[Any]]) -> tuple[Any, ...]:
    """Return a collection with its first entity alone, as there is one of it."""
    if len(found[0]) > 1:
        raise DataError(
            f"{root!r} is the first of a collection, which is one item; {len(found[0])} lie in its range."
        )
    return (found[0][0] if found[0] else None, *found[1:])


def _span(
    scope: Scope, members: Sequence[tuple[Plan, AccessPath]], given: Mapping[str, Any]
) -> tuple[str, tuple[KeyTerm, ...]]:
    """Return the table and the one key condition that covers all members."""
    names = {(plan.table.name, path.index.name if path.index else None) for plan, path in members}
    if len(names) > 1:
        raise DeclarationError("The entities of a collection lie in one table or one index; these do not.")
    partitions, ends = [], []
    for plan, path in members:
        arguments = scope.bind(plan, given)
        mine = {name: value for name, value in arguments.items() if name in path.fields}
        partitions.append(path.partition.equals(mine))
        if path.sort is None:
            continue
        if not isinstance(path.sort, TemplateLayout):
            raise DeclarationError(
                f"{plan.name}.{path.name} has a native sort key; a collection needs a template."
            )
        ends.append(_ends(path.sort, mine))
    unused = set(given) - {name for _, path in members for name in path.fields}
    if unused:
        raise DataError(f"No entity of the collection has the key part {', '.join(sorted(unused))}.")
    if any(partition != partitions[0] for partition in partitions):
        shown = " and ".join(str(partition[0].values[0]) for partition in partitions)
        raise DeclarationError(f"The entities of a collection share a partition; these have {shown}.")
    table = scope.table(members[0][0].table)
    if not ends:
        return table, partitions[0]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    sort = members[0][1].sort
    assert isinstance(sort, TemplateLayout)
    return table, (*partitions[0], KeyTerm(sort.attribute, "BETWEEN", ({"S": low}, {"S": high})))


def _ends(sort: TemplateLayout, arguments: Mapping[str, Any]) -> tuple[str, str]:
    prefix = sort.template.prefix(arguments)
    if sort.template.next_field(arguments) is None:
        return prefix, prefix
    # Nothing of the sort key may be fixed at all: then the whole partition is the collection.
    return prefix or "\x00", highest_with_prefix(prefix) or highest_with_prefix("\U0010ffff") or ""


def _view(scope: Scope, view: type[BaseModel], plan: Plan, item: Item) -> Any:
    if item.get(plan.table.tag) != plan.tag_value:
        scope.known(plan.table, item)
        return None
    return None if scope.is_hidden(plan, item) else view_of(view, plan, item)


def view_of(view: type[BaseModel], plan: Plan, item: Item) -> Any:
    """Decode a stored item as a view of its entity."""
    item = plan.schema_versions.upgrade(item)
    values = {
        name: plan.attributes[name].decode(item[plan.attributes[name].wire])
        for name in view.model_fields
        if plan.attributes[name].wire in item
    }
    try:
        return view.model_validate(values)
    except ValidationError as refused:
        first = refused.errors(include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoredDataError(
            f"A stored {plan.name} does not fit the view {view.__name__}: {where}: {first['msg']}."
        ) from refused


def _projection(query: Query[Any]) -> tuple[tuple[str, ...], ...] | None:
    plan = query.plan
    # Only upgraders know which attributes they need, so items that may be old are read whole.
    if query.view is None or plan.schema_versions.upgrades:
        return None
    wanted = [plan.attributes[name].wire for name in query.view.model_fields]
    wanted += [plan.table.tag, *_key_names(query.path, plan)]
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
    """Return whether rows must be fetched from the table; reject filters on attributes it lacks."""
    plan, path = query.plan, query.path
    keys = set(path.names)
    used = {place[0] for place in paths_of(query.filter)} if query.filter is not None else set()
    for name in used:
        if name in keys:
            raise DeclarationError(
                f"{query.described}: DynamoDB takes no condition on the key attribute {name!r} in a query; "
                f"put it into the key, or use a range."
            )
        if not _has(plan, path, name):
            assert path.index is not None
            raise DeclarationError(
                f"{query.described}: index {path.index.name!r} does not hold {name!r}, so the condition "
                f"cannot be evaluated there; project it, or filter what you get."
            )
    if path.index is None or path.index.projection == "ALL":
        return False
    if plan.schema_versions.upgrades:
        # Only upgraders know which attributes they need.
        return True
    names = plan.attributes if query.view is None else query.view.model_fields
    needed = {plan.attributes[name].wire for name in names} | {plan.table.tag}
    if _may_meet_deleted(plan, path):
        needed.add(DELETED_AT)
    return not all(_has(plan, path, name) for name in needed)


def _may_meet_deleted(plan: Plan, path: AccessPath) -> bool:
    """Whether deleted items lie on a path: a delete takes away the attributes that are kept for a key."""
    return plan.deletion is not None and (path.index is None or not path.derived)


def _has(plan: Plan, path: AccessPath, name: object) -> bool:
    """Whether the items of the path's index carry an attribute."""
    index = path.index
    if index is None or index.projection == "ALL":
        return True
    included = plan.table.projection(index).get("NonKeyAttributes", ())
    return name in included or name in path.names or name in plan.primary.names


def _key_names(path: AccessPath, plan: Plan) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*plan.primary.names, *path.names)))


def _both(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else And((one, other))
