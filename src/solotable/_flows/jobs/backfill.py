"""Rewrite stored items in the current schema version and index keys, one page of a scan at a time.

An item is rewritten if its schema version is not the current one, or if its index keys differ from those
that its model computes. A concurrent write is never lost: the rewrite requires that its source attributes
are unchanged, and is repeated with the new item otherwise. A rewrite does not change the entity, so it has
no new version, no timestamp and no derived writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

from solotable._entities.declare.plan import Plan
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._flows.reads.scan import ScanPart
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._flows.transactions.write import all_of, attributes_unchanged
from solotable._protocol.replies import Capacity, decode_items
from solotable._protocol.requests import GetItem, Scan, TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.errors import (
    ConditionFailed,
    DataError,
    NewerSchemaVersion,
    OutcomeUnknown,
    ServiceError,
    TransactionCancelled,
)

from .reencode import Attributes, difference, origins, outdated_fields, reencoded, stale_keys, update_of

_AT_ONCE = 1_000
_FEWEST_AT_ONCE = 10
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillCounts:
    """The counts of a backfill."""

    #: Items of the table that were read, and those of the entity among them.
    seen: int = 0
    items: int = 0
    #: Items upgraded to the current schema version, and items of that version whose index keys were repaired.
    upgraded: int = 0
    reindexed: int = 0
    #: Items of that version whose fields were compressed, or encrypted with the first key.
    recoded: int = 0
    #: Rewrites that were repeated because another writer was first.
    conflicts: int = 0
    #: Items of a newer schema version, which stay unchanged; and items that could not be rewritten.
    newer: int = 0
    failed: int = 0
    units: float = 0.0

    def __add__(self, other: BackfillCounts) -> BackfillCounts:
        return BackfillCounts(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )


class Pace:
    """A token bucket of capacity units with a capacity of one second."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self.rate = rate
        self._clock = clock
        self._units = rate
        self._filled = clock()

    def spend(self, units: float) -> float:
        """Spend units, and return the seconds to wait before the next request."""
        now = self._clock()
        self._units = min(self.rate, self._units + (now - self._filled) * self.rate) - units
        self._filled = now
        return max(0.0, -self._units / self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The entity and the options of a backfill."""

    scope: Scope
    plan: Plan
    #: The number of rewrites in one transaction; 1: no transactions.
    together: int = 1
    dry_run: bool = False
    pace: Pace | None = None

    @property
    def at_once(self) -> int:
        """The largest number of items in a page."""
        if self.pace is None:
            return _AT_ONCE
        return min(_AT_ONCE, max(_FEWEST_AT_ONCE, int(self.pace.rate)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The update that brings one stored item up to date."""

    kind: Literal["schema", "keys", "fields"]
    action: UpdateItem

    @property
    def changes(self) -> Iterator[str]:
        """The names of the attributes that change."""
        return (str(each.path[0]) for each in self.action.update.actions)


@dataclass(frozen=True, slots=True)
class BackfillPage:
    """The counts of one page, and the key after which the next page begins."""

    tally: BackfillCounts
    last_key: Item | None
    problems: tuple[str, ...]


def assess(work: Work, item: Item) -> Rewrite | None:
    """Return the rewrite of an item, or None if it is up to date; raise DataError for an invalid item."""
    plan, versions = work.plan, work.plan.schema_versions
    if versions.version_of(item) > versions.current:
        raise versions.newer_error(item)
    if versions.differs(item):
        found = reencoded(plan, item)
        changed = difference(item, found.item)
        return _rewrite(work, item, changed, origins(plan, item, changed), "schema")
    entity = plan.decode(item)
    stale = stale_keys(plan, item, entity)
    outdated = outdated_fields(plan, item, entity)
    if not stale and not outdated:
        return None
    affected = [path for path in plan.indexes if set(path.derived) & stale.keys()]
    sources = {plan.attributes[name].wire for path in affected for name in path.sources}
    names = sorted({versions.attribute, *sources, *outdated} - versions.implied)
    origin = {name: item.get(name) for name in names}
    return _rewrite(work, item, {**stale, **outdated}, origin, "keys" if stale else "fields")


def _rewrite(
    work: Work, item: Item, changed: Attributes, origin: Attributes, kind: Literal["schema", "keys", "fields"]
) -> Rewrite:
    plan = work.plan
    required = dict(origin)
    if plan.deletion is not None:
        # Require the same deletion: a soft delete removes the item from its indexes.
        required[DELETED_AT] = item.get(DELETED_AT)
    action = UpdateItem(
        table=work.scope.table(plan.table),
        key={name: item[name] for name in plan.schema_versions.key_names},
        update=update_of(changed),
        # Without the first term, the update would create an item that was deleted since the read.
        condition=all_of([plan.is_entity, *attributes_unchanged(required)]),
        returns_on_failure=True,
        capacity="NONE" if work.pace is None else "TOTAL",
    )
    return Rewrite(kind=kind, action=action)


def scan(work: Work, part: ScanPart) -> Flow[tuple[list[Item], Item | None, BackfillCounts]]:
    """Return the entity's items in the next page of a scan, and the key after which the next begins."""
    plan, scope = work.plan, work.scope
    if part.budget < 1:
        raise DataError(f"The scan of {plan.name} has reached its budget of items; raise budget=.")
    request = Scan(
        table=scope.table(plan.table),
        filter=plan.scan_filter,
        start=part.start,
        limit=min(work.at_once, part.budget),
        segment=part.segment if part.segments > 1 else None,
        segments=part.segments if part.segments > 1 else None,
        capacity="NONE" if work.pace is None else "TOTAL",
    )
    reply = yield from send(request, scope.retries)
    units = yield from paced(work.pace, reply.capacity)
    found = [
        item
        for item in decode_items(reply.items or ())
        if plan.recognises(item) and (plan.ttl is None or not scope.has_passed(plan, item))
    ]
    return found, reply.last_key or None, BackfillCounts(seen=reply.scanned, items=len(found), units=units)


def page(work: Work, part: ScanPart) -> Flow[BackfillPage]:
    """Rewrite the outdated items in the next page of a scan."""
    found, last_key, tally = yield from scan(work, part)
    problems: list[str] = []
    group: list[Rewrite] = []
    for item in found:
        try:
            rewrite = assess(work, item)
        except NewerSchemaVersion:
            tally += BackfillCounts(newer=1)
        except DataError as error:
            tally += BackfillCounts(failed=1)
            problems.append(_problem(work.plan, item, error))
        else:
            if rewrite is not None:
                group.append(rewrite)
        if len(group) >= work.together:
            tally += yield from _write(work, group, problems)
            group = []
    tally += yield from _write(work, group, problems)
    return BackfillPage(tally, last_key, tuple(problems[:_MOST_PROBLEMS]))


def _write(work: Work, group: list[Rewrite], problems: list[str]) -> Flow[BackfillCounts]:
    """Write a group as one transaction, and rewrites with a conflict one by one."""
    tally = BackfillCounts()
    if work.dry_run:
        return tally + _done(group)
    for attempt in range(CONFLICT_ATTEMPTS):
        if len(group) < 2:
            break
        capacity = group[0].action.capacity
        actions = tuple(rewrite.action for rewrite in group)
        if capacity != "NONE":
            actions = tuple(replace(action, capacity="NONE") for action in actions)
        yield from _save_blobs(work, group)
        try:
            reply = yield from send(
                TransactWriteItems(actions=actions, capacity=capacity), work.scope.retries
            )
        except TransactionCancelled as error:
            if error.is_transient:
                yield work.scope.retries.wait(attempt)
                continue
            met = list(zip(group, error.reasons, strict=True))
            group = [rewrite for rewrite, why in met if why["Code"] != "ConditionalCheckFailed"]
            for rewrite, why in met:
                if why["Code"] == "ConditionalCheckFailed":
                    tally += yield from _write_again(work, rewrite, why.get("Item"), problems)
        except (OutcomeUnknown, ServiceError):
            # Upgraded items may exceed a transaction; a write alone shows which item fails.
            break
        else:
            units = 0.0
            for each in reply.capacity or ():
                units += yield from paced(work.pace, each)
            return tally + _done(group) + BackfillCounts(units=units)
    for rewrite in group:
        tally += yield from _write_one(work, rewrite, problems)
    return tally


def _write_one(work: Work, rewrite: Rewrite, problems: list[str]) -> Flow[BackfillCounts]:
    yield from _save_blobs(work, [rewrite])
    try:
        reply = yield from send(rewrite.action, work.scope.retries)
    except ConditionFailed as error:
        return (yield from _write_again(work, rewrite, error.item, problems))
    except OutcomeUnknown:
        current = yield from _read_item(work, rewrite)
        return (yield from _write_again(work, rewrite, current, problems))
    units = yield from paced(work.pace, reply.capacity)
    return _done([rewrite]) + BackfillCounts(units=units)


def _write_again(work: Work, rewrite: Rewrite, met: Item | None, problems: list[str]) -> Flow[BackfillCounts]:
    """Rewrite an item from its current state, until a rewrite succeeds or the item is up to date."""
    plan = work.plan
    tally = BackfillCounts()
    for attempt in range(CONFLICT_ATTEMPTS):
        tally += BackfillCounts(conflicts=1)
        if met is None or not plan.recognises(met):
            return tally
        try:
            again = assess(work, met)
        except NewerSchemaVersion:
            return tally + BackfillCounts(newer=1)
        except DataError as error:
            problems.append(_problem(plan, met, error))
            return tally + BackfillCounts(failed=1)
        if again is None:
            return tally
        if attempt:
            yield work.scope.retries.wait(attempt)
        yield from _save_blobs(work, [again])
        try:
            reply = yield from send(again.action, work.scope.retries)
        except ConditionFailed as error:
            met = error.item
        except OutcomeUnknown:
            met = yield from _read_item(work, rewrite)
        else:
            units = yield from paced(work.pace, reply.capacity)
            return tally + _done([again]) + BackfillCounts(units=units)
    problems.append(
        f"{plan.name} {rewrite.action.key}: conflict with another writer in {CONFLICT_ATTEMPTS} attempts."
    )
    return tally + BackfillCounts(failed=1)


def _save_blobs(work: Work, rewrites: Sequence[Rewrite]) -> Flow[None]:
    if work.plan.blobs is not None:
        from solotable._flows.transactions.blobs import save_blobs_of

        for each in rewrites:
            yield from save_blobs_of(work.plan, each.action)


def _read_item(work: Work, rewrite: Rewrite) -> Flow[Item | None]:
    request = GetItem(table=rewrite.action.table, key=rewrite.action.key, consistent=True)
    reply = yield from send(request, work.scope.retries)
    return None if reply.item is None else decode_item(reply.item)


def paced(pace: Pace | None, capacity: Capacity | None) -> Flow[float]:
    """Wait until the rate allows the consumed capacity; return the consumed capacity."""
    if pace is None or capacity is None:
        return 0.0
    units = float(capacity["CapacityUnits"])
    seconds = pace.spend(units)
    if seconds > 0:
        yield Sleep(seconds)
    return units


def _done(rewrites: list[Rewrite]) -> BackfillCounts:
    kinds = [rewrite.kind for rewrite in rewrites]
    return BackfillCounts(
        upgraded=kinds.count("schema"), reindexed=kinds.count("keys"), recoded=kinds.count("fields")
    )


def _problem(plan: Plan, item: Item, error: DataError) -> str:
    return f"{plan.name} { {name: item.get(name) for name in plan.primary.names} }: {error}"
