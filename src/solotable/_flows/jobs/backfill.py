"""Rewrite stored items in the current schema version and index keys, one page of a scan at a time.

An item is rewritten when its schema version is not the current one, or its index keys are not those that its
model derives. A concurrent write is never lost: the rewrite requires what it was made from, and is made
again from what it met. No version is raised, nothing is stamped and nothing is derived, because
the entity itself does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Literal

from solotable._entities.declare.plan import Plan
from solotable._entities.traits.soft_delete import DELETED_AT
from solotable._expressions.ast import Attr, Compare, Const
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._flows.transactions.write import all_of, as_stored
from solotable._flows.verbs.scan import ScanPart
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

from .reencode import Facts, difference, origins, reencoded, stale_keys, update_of

_AT_ONCE = 1_000
_FEWEST_AT_ONCE = 10
_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillCounts:
    """What was found and done."""

    #: Items of the table that were read, and those of the entity among them.
    seen: int = 0
    items: int = 0
    #: Items upgraded to the current schema version, and items of that version whose index keys were repaired.
    upgraded: int = 0
    reindexed: int = 0
    #: Rewrites that were repeated because another writer was first.
    conflicts: int = 0
    #: Items that newer code wrote, left alone; and items that could not be rewritten.
    newer: int = 0
    failed: int = 0
    units: float = 0.0

    def __add__(self, other: BackfillCounts) -> BackfillCounts:
        return BackfillCounts(
            **{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        )


class Pace:
    """A bucket of capacity units that fills at a rate; it holds those of one second."""

    def __init__(self, rate: float, clock: Callable[[], float]) -> None:
        self.rate = rate
        self._clock = clock
        self._units = rate
        self._filled = clock()

    def spend(self, units: float) -> float:
        """Take units out, and return for how many seconds to wait before the next request."""
        now = self._clock()
        self._units = min(self.rate, self._units + (now - self._filled) * self.rate) - units
        self._filled = now
        return max(0.0, -self._units / self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a backfill works on, and how."""

    scope: Scope
    plan: Plan
    #: How many rewrites go into one transaction; 1: none do.
    together: int = 1
    dry_run: bool = False
    pace: Pace | None = None

    @property
    def at_once(self) -> int:
        """How many items a page has at most."""
        if self.pace is None:
            return _AT_ONCE
        return min(_AT_ONCE, max(_FEWEST_AT_ONCE, int(self.pace.rate)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """How one stored item is brought up to date."""

    kind: Literal["schema", "keys"]
    action: UpdateItem

    @property
    def changes(self) -> Iterator[str]:
        """The names of the attributes that change."""
        return (str(each.path[0]) for each in self.action.update.actions)


@dataclass(frozen=True, slots=True)
class BackfillPage:
    """What came of one page, and where the next begins."""

    tally: BackfillCounts
    last_key: Item | None
    problems: tuple[str, ...]


def assess(work: Work, item: Item) -> Rewrite | None:
    """Return how an item is brought up to date, None if it is; raise what is wrong with it."""
    plan, versions = work.plan, work.plan.schema_versions
    if versions.version_of(item) > versions.current:
        raise versions.newer_error(item)
    if versions.differs(item):
        found = reencoded(plan, item)
        changed = difference(item, found.item)
        return _rewrite(work, item, changed, origins(plan, item, changed), "schema")
    entity = plan.decode(item)
    stale = stale_keys(plan, item, entity)
    if not stale:
        return None
    affected = [path for path in plan.indexes if set(path.derived) & stale.keys()]
    made_of = {plan.attributes[name].wire for path in affected for name in path.fields}
    names = sorted({versions.attribute, *made_of} - versions.implied)
    return _rewrite(work, item, stale, {name: item.get(name) for name in names}, "keys")


def _rewrite(
    work: Work, item: Item, changed: Facts, origin: Facts, kind: Literal["schema", "keys"]
) -> Rewrite:
    plan = work.plan
    # The tag, so that an item that was deleted since is not created again.
    required = {plan.table.tag: plan.tag_value, **origin}
    if plan.deletion is not None:
        # A soft delete since the read has removed the item from its indexes.
        required[DELETED_AT] = item.get(DELETED_AT)
    action = UpdateItem(
        table=work.scope.table(plan.table),
        key={name: item[name] for name in plan.schema_versions.key_names},
        update=update_of(changed),
        condition=all_of(as_stored(required)),
        returns_on_failure=True,
        capacity="NONE" if work.pace is None else "TOTAL",
    )
    return Rewrite(kind=kind, action=action)


def scan(work: Work, part: ScanPart) -> Flow[tuple[list[Item], Item | None, BackfillCounts]]:
    """Return the items of the entity among the next ones of a table, and where the next begin."""
    plan, scope = work.plan, work.scope
    if part.budget < 1:
        raise DataError(f"The scan of {plan.name} has used up its budget of items; raise it.")
    request = Scan(
        table=scope.table(plan.table),
        filter=Compare("=", Attr((plan.table.tag,)), Const(plan.tag_value)),
        start=part.start,
        limit=min(work.at_once, part.budget),
        segment=part.segment if part.segments > 1 else None,
        segments=part.segments if part.segments > 1 else None,
        capacity="NONE" if work.pace is None else "TOTAL",
    )
    reply = yield from send(request, scope.retries)
    units = yield from _paced(work, reply.capacity)
    found = [
        item
        for item in decode_items(reply.items or ())
        if plan.ttl is None or not scope.has_passed(plan, item)
    ]
    return found, reply.last_key or None, BackfillCounts(seen=reply.scanned, items=len(found), units=units)


def page(work: Work, part: ScanPart) -> Flow[BackfillPage]:
    """Rewrite the next items of a table that need it."""
    found, last_key, tally = yield from scan(work, part)
    problems: list[str] = []
    group: list[Rewrite] = []
    for item in found:
        try:
            rewrite = assess(work, item)
        except NewerSchemaVersion:
            tally += BackfillCounts(newer=1)
        except DataError as refused:
            tally += BackfillCounts(failed=1)
            problems.append(_problem(work.plan, item, refused))
        else:
            if rewrite is not None:
                group.append(rewrite)
        if len(group) >= work.together:
            tally += yield from _write(work, group, problems)
            group = []
    tally += yield from _write(work, group, problems)
    return BackfillPage(tally, last_key, tuple(problems[:_MOST_PROBLEMS]))


def _write(work: Work, group: list[Rewrite], problems: list[str]) -> Flow[BackfillCounts]:
    """Write a group as one transaction, and those with a conflict one by one."""
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
        try:
            reply = yield from send(
                TransactWriteItems(actions=actions, capacity=capacity), work.scope.retries
            )
        except TransactionCancelled as refused:
            if refused.is_transient:
                yield work.scope.retries.wait(attempt)
                continue
            met = list(zip(group, refused.reasons, strict=True))
            group = [rewrite for rewrite, why in met if why["Code"] != "ConditionalCheckFailed"]
            for rewrite, why in met:
                if why["Code"] == "ConditionalCheckFailed":
                    tally += yield from _write_again(work, rewrite, why.get("Item"), problems)
        except (OutcomeUnknown, ServiceError):
            # Upgrades may have made them too large for one transaction; alone each says what is wrong.
            break
        else:
            units = 0.0
            for each in reply.capacity or ():
                units += yield from _paced(work, each)
            return tally + _done(group) + BackfillCounts(units=units)
    for rewrite in group:
        tally += yield from _write_one(work, rewrite, problems)
    return tally


def _write_one(work: Work, rewrite: Rewrite, problems: list[str]) -> Flow[BackfillCounts]:
    try:
        reply = yield from send(rewrite.action, work.scope.retries)
    except ConditionFailed as refused:
        return (yield from _write_again(work, rewrite, refused.item, problems))
    except OutcomeUnknown:
        there = yield from _now(work, rewrite)
        return (yield from _write_again(work, rewrite, there, problems))
    units = yield from _paced(work, reply.capacity)
    return _done([rewrite]) + BackfillCounts(units=units)


def _write_again(work: Work, rewrite: Rewrite, met: Item | None, problems: list[str]) -> Flow[BackfillCounts]:
    """Rewrite an item from what is stored now, until a rewrite succeeds or nothing is left to do."""
    plan = work.plan
    tally = BackfillCounts()
    for attempt in range(CONFLICT_ATTEMPTS):
        tally += BackfillCounts(conflicts=1)
        if met is None or met.get(plan.table.tag) != plan.tag_value:
            return tally
        try:
            again = assess(work, met)
        except NewerSchemaVersion:
            return tally + BackfillCounts(newer=1)
        except DataError as refused:
            problems.append(_problem(plan, met, refused))
            return tally + BackfillCounts(failed=1)
        if again is None:
            return tally
        if attempt:
            yield work.scope.retries.wait(attempt)
        try:
            reply = yield from send(again.action, work.scope.retries)
        except ConditionFailed as refused:
            met = refused.item
        except OutcomeUnknown:
            met = yield from _now(work, rewrite)
        else:
            units = yield from _paced(work, reply.capacity)
            return tally + _done([again]) + BackfillCounts(units=units)
    problems.append(f"{plan.name} {rewrite.action.key}: met another writer {CONFLICT_ATTEMPTS} times.")
    return tally + BackfillCounts(failed=1)


def _now(work: Work, rewrite: Rewrite) -> Flow[Item | None]:
    request = GetItem(table=rewrite.action.table, key=rewrite.action.key, consistent=True)
    reply = yield from send(request, work.scope.retries)
    return None if reply.item is None else decode_item(reply.item)


def _paced(work: Work, capacity: Capacity | None) -> Flow[float]:
    """Wait as long as what a request took is over the rate; return what it took."""
    if work.pace is None or capacity is None:
        return 0.0
    units = float(capacity["CapacityUnits"])
    seconds = work.pace.spend(units)
    if seconds > 0:
        yield Sleep(seconds)
    return units


def _done(rewrites: list[Rewrite]) -> BackfillCounts:
    upgraded = [rewrite.kind for rewrite in rewrites].count("schema")
    return BackfillCounts(upgraded=upgraded, reindexed=len(rewrites) - upgraded)


def _problem(plan: Plan, item: Item, refused: DataError) -> str:
    return f"{plan.name} { {name: item.get(name) for name in plan.primary.names} }: {refused}"
