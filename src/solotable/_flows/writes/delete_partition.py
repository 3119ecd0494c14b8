"""Delete the rows of a query: a whole partition, or a range of one, with a budget and a cursor.

Entities with traits, versions or conditions are deleted one by one as `delete` does it, others in batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.query import Query, mixed
from solotable._entities.traits.counters import Counted
from solotable._expressions.ast import Condition
from solotable._flows.consumption import Consumed, measured
from solotable._flows.reads.query import PreparedQuery, prepare, rows
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.transactions.write import ANY, all_of, attributes_unchanged
from solotable._protocol.replies import decode_items
from solotable._values import Item
from solotable.errors import ConditionFailed, DataError, TenantViolation

from .batch import delete_items
from .put import delete_entity

_AT_ONCE = 500
#: Added to the identity of a query in the cursors of deletions.
_DELETE = b" delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDeletion:
    """What `delete_partition` did so far; with `dry_run`, what it would do."""

    #: Deleted items by entity; `item` for those of a raw deletion. A batch also counts what another writer
    #: deletes at the same time.
    deleted: Mapping[str, int] = field(default_factory=dict)
    read: int = 0
    #: Items that no entity matches; they are kept.
    unknown: int = 0
    #: Items that another writer changed after they were read, so that the query no longer has them.
    changed: int = 0
    dry_run: bool = False
    done: bool = False
    #: Continues the deletion behind the items that were read; None when it is done.
    cursor: str | None = None
    #: As in `Page.consumed`; only in the result, not in reports of progress.
    consumed: Consumed | None = field(default=None, compare=False)

    @property
    def total(self) -> int:
        """The number of deleted items."""
        return sum(self.deleted.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionOptions:
    """The options of a deletion."""

    budget: int | None = None
    cursor: str | None = None
    dry_run: bool = False
    raw: bool = False
    progress: Callable[[PartitionDeletion], None] | None = None


@measured
def delete_partition(scope: Scope, query: Query[Any], options: DeletionOptions) -> Flow[PartitionDeletion]:
    """Delete the rows of a query; read at most `budget` items, and return a cursor for the rest."""
    if options.budget is not None and options.budget < 1:
        raise DataError(f"delete_partition(budget=...) must be at least 1, got {options.budget}.")
    if query.view is not None:
        raise DataError(f"delete_partition() takes a query without select(), got {query!r}.")
    if options.raw:
        _check_raw(scope, query)
    if query.path.index is None:
        query = query.consistent()
    scope = scope.reading("skip")
    phases = [prepare(scope, phase) for phase in _phases(query)]
    bounds = [phase.bound_to + _DELETE for phase in phases]
    start: Item | None = None
    at = 0
    if options.cursor is not None:
        start, at = scope.cursor_signer.verify_any(options.cursor, bounds)
    state = PartitionDeletion(dry_run=options.dry_run)
    step = _delete_raw if options.raw else _delete_rows
    while True:
        left = _AT_ONCE if options.budget is None else options.budget - state.read
        state, start = yield from step(scope, phases[at], state, start, min(_AT_ONCE, left))
        at += start is None
        if at == len(phases):
            state = replace(state, done=True)
        elif options.budget is not None and state.read >= options.budget:
            state = replace(state, cursor=scope.cursor_signer.sign(start, bounds[at]))
        if options.progress is not None:
            options.progress(state)
        if state.done or state.cursor is not None:
            return state


def _phases(query: Query[Any]) -> list[Query[Any]]:
    """Return the queries to delete in turn: the parents that count other entities come after those."""
    phases: list[Query[Any]] = []
    left = list(query.parts)
    while left:
        parents = {
            trait.of.tag
            for part in left
            for trait in part.plan.traits
            if isinstance(trait, Counted) and trait.of.tag != part.plan.tag
        }
        now = [part for part in left if part.plan.tag not in parents] or left
        phases.append(mixed(now) if len(now) > 1 else now[0])
        left = [part for part in left if part not in now]
    return phases if len(phases) > 1 else [query]


def _check_raw(scope: Scope, query: Query[Any]) -> None:
    if (
        len(query.parts) > 1
        or query.filter is not None
        or query.path.index is not None
        or query.path.is_split
    ):
        raise DataError(
            f"delete_partition(raw=True) deletes every item of one range of the table, so it takes a query "
            f"of one primary key without a filter, shards or time buckets, got {query!r}."
        )
    synced = [plan.name for plan in query.plan.table.plans.values() if plan.synced is not None]
    if synced:
        raise DataError(
            f"delete_partition(raw=True) logs no changes, and table {query.plan.table.name!r} has the synced "
            f"{', '.join(synced)}; clients would keep the items. Leave raw=True out."
        )
    if query.plan.tenant is not None and not scope.admin:
        raise TenantViolation(
            "delete_partition(raw=True) does not check the tenant of the items; use db.admin()."
        )


def _delete_raw(
    scope: Scope, prepared: PreparedQuery, state: PartitionDeletion, start: Item | None, limit: int
) -> Flow[tuple[PartitionDeletion, Item | None]]:
    """Delete the next items of a range, whatever they are."""
    if prepared.request is None:
        return state, None
    names = prepared.plan.primary.names
    request = replace(
        prepared.request,
        filter=None,
        projection=tuple((name,) for name in names),
        start=start,
        limit=limit,
    )
    reply = yield from send(request, scope.retries)
    keys = decode_items(reply.items or ())
    if keys and not state.dry_run:
        yield from delete_items(scope, prepared.plan.table, keys)
    deleted = Counter(state.deleted) + Counter({"item": len(keys)})
    return replace(state, deleted=dict(deleted), read=state.read + reply.scanned), reply.last_key or None


def _delete_rows(
    scope: Scope, prepared: PreparedQuery, state: PartitionDeletion, start: Item | None, limit: int
) -> Flow[tuple[PartitionDeletion, Item | None]]:
    """Delete the entities among the next items."""
    batch = yield from rows(scope, prepared, start, limit)
    deleted, changed = Counter(state.deleted), state.changed
    together: list[Item] = []
    for entity, item in zip(batch.rows, batch.items, strict=True):
        plan: Plan = entity.plan()
        condition = _unchanged(prepared, plan, entity, item)
        if state.dry_run:
            deleted[plan.name] += 1
        elif condition is None and _is_plain(plan):
            together.append({name: item[name] for name in plan.primary.names})
            deleted[plan.name] += 1
        else:
            outcome = yield from _delete_one(scope, plan, entity, condition)
            if outcome == "deleted":
                deleted[plan.name] += 1
            changed += outcome == "changed"
    if together:
        yield from delete_items(scope, prepared.plan.table, together)
    state = replace(
        state,
        deleted=dict(deleted),
        changed=changed,
        read=state.read + batch.scanned,
        unknown=state.unknown + batch.skipped,
    )
    return state, batch.last_key


def _delete_one(
    scope: Scope, plan: Plan, entity: Entity, condition: Condition | None
) -> Flow[Literal["deleted", "changed", "gone"]]:
    """Delete an entity with its derived writes, unless another writer has changed or deleted it."""
    given = {name: getattr(entity, name) for name in plan.primary.parts}
    version = None if plan.version is None else ANY
    try:
        former = yield from delete_entity(scope, plan, given, version=version, mine=entity, where=condition)
    except ConditionFailed:
        return "changed"
    return "gone" if former is None else "deleted"


def _is_plain(plan: Plan) -> bool:
    """Return whether an entity can be deleted in a batch, which has no conditions and no derived writes."""
    return not (
        plan.traits
        or plan.counters
        or plan.deletion is not None
        or plan.version is not None
        or plan.schema_versions.declared
    )


def _unchanged(prepared: PreparedQuery, plan: Plan, entity: Entity, item: Item) -> Condition | None:
    """Return the condition that an item is still a row of the query; None if only its key decides that."""
    query, conditions = prepared.query, []
    if query.path.index is not None:
        # An index is read with a delay: the item may have moved.
        names = [name for name in query.path.names if name not in plan.primary.names]
        conditions += attributes_unchanged({name: item.get(name) for name in names})
    parts = (
        [query]
        if prepared.mixed_read is None
        else [part.query for part in prepared.mixed_read.parts if part.has(item)]
    )
    matching = next(part for part in parts if isinstance(entity, part.plan.entity))
    if matching.filter is not None:
        conditions.append(matching.filter)
    return all_of(conditions) if conditions else None
