"""The purge: remove soft-deleted items whose grace period is over.

It goes through the entries that are due and leaves none of them, except for what is held. Nothing is
removed before its time, and every removal leaves a receipt in its own transaction. It keeps no place of its
own: broken off anywhere and started again, it continues with the entries that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._expressions.ast import And, Attr, Compare, Condition, Const
from solotable._flows.internal_items import only_table
from solotable._flows.jobs import cascade
from solotable._flows.jobs import purge as flows
from solotable._flows.jobs.purge_queue import (
    SHARDS,
    Deleted,
    QueueEntry,
    QueuePart,
    count_due,
    deleted_of,
    digest_of,
    entries_due,
    held_by,
)
from solotable._flows.jobs.receipts import Receipt, receipts
from solotable._flows.reads.get import fetch
from solotable._flows.traits.outbox import stamp
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable.errors import DataError, DeclarationError, SolotableError, TransportError

__all__ = ["Deleted", "Hold", "Progress", "Purged", "Receipt", "list_receipts", "purge", "sweep"]

#: Two whole transactions of items and entries.
_TOGETHER = 2 * (flows.MOST_ACTIONS // 2)
_AT_ONCE = 10 * _TOGETHER
_SCANNED_AT_ONCE = 1_000


@dataclass(slots=True, kw_only=True)
class Purged:
    """The result of a purge: removed items by entity, and the items that stayed, with reasons."""

    run: str
    dry_run: bool
    #: The number of due entries; None without a progress function.
    due: int | None = None
    looked_at: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    #: Queue entries of items that were purged or restored before.
    stale: int = 0
    held: list[Deleted] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def items(self) -> int:
        """The number of removed items, children included."""
        return self.removed.total()

    def row(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "run": self.run,
            "dry_run": self.dry_run,
            "items": self.items,
            "removed": dict(sorted(self.removed.items())),
            "stale": self.stale,
            "held": [each.model_dump(mode="json") for each in self.held],
            "problems": self.problems,
        }


Progress = Callable[[Purged], None]
#: Returns why an item must stay, or None.
Hold = Callable[[Deleted], str | None]


def purge(
    db: AdminStore,
    table: Table | None = None,
    *,
    now: float | None = None,
    dry_run: bool = False,
    hold: Hold | None = None,
    progress: Progress | None = None,
) -> Purged:
    """Remove every due item of a table; with `dry_run` only count them.

    `now` is the moment in epoch seconds that counts as the present. A dry run may look ahead; a real one
    may not. `hold` can keep more back than what is held in the table.
    """
    scope = db.scope
    chosen = only_table(scope, table, "is to be purged")
    present = scope.clock()
    until = present if now is None else now
    if until > present and not dry_run:
        raise DataError(
            f"now={until} is in the future (the clock says {present}); a purge removes only due items."
        )
    if not any(plan.deletion is not None for plan in chosen.plans.values()):
        raise DeclarationError(
            f"No entity of table {chosen.name!r} can be undeleted, so there is nothing to purge; "
            f"declare it: deletion = SoftDelete(grace=timedelta(days=30))."
        )
    report = Purged(run=f"{stamp(scope.now())}#{scope.tokens()[:8]}", dry_run=dry_run)
    if progress is not None:
        report.due = run(count_due(scope, chosen, int(until)), db.engine)
    job = _PurgeJob(db, flows.PurgeRun(scope=scope, name=report.run, table=chosen), report, hold)
    for shard in range(SHARDS):
        after: str | None = None
        while True:
            part = QueuePart(table=chosen, shard=shard, until=int(until), limit=_AT_ONCE, after=after)
            some, after = run(entries_due(scope, part), db.engine)
            for chunk in _parts(chosen, some):
                job.do(*chunk)
                if progress is not None:
                    progress(report)
            if after is None:
                break
    return report


def list_receipts(db: AdminStore, table: Table | None = None) -> Iterator[Receipt]:
    """Iterate over the receipts of a table's purges, oldest first."""
    chosen = only_table(db.scope, table, "has the receipts")
    start = None
    while True:
        found, start = run(receipts(db.scope, chosen, start), db.engine)
        yield from found
        if start is None:
            return


def sweep(
    db: AdminStore,
    entity: type[Entity],
    *,
    budget: int,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Purged:
    """Remove expired items that DynamoDB has not removed yet; read at most `budget` items.

    DynamoDB removes such items by itself, within days; until then every read hides them.
    """
    plan, scope = entity.plan(), db.scope
    if plan.ttl is None:
        raise DeclarationError(f"{plan.name} has no time to live, so its items do not expire.")
    report = Purged(run=f"{stamp(scope.now())}#{scope.tokens()[:8]}", dry_run=dry_run)
    job = flows.PurgeRun(scope=scope, name=report.run, table=plan.table)
    moment = Const({"N": str(int(scope.clock()))})
    passed: Condition = Compare("<=", Attr((plan.attributes[plan.ttl].wire,)), moment)
    if plan.scan_filter is not None:
        passed = And((plan.scan_filter, passed))
    start = None
    while report.looked_at < budget:
        limit = min(_SCANNED_AT_ONCE, budget - report.looked_at)
        request = Scan(table=scope.table(plan.table), filter=passed, limit=limit, start=start)
        reply = db.engine.handle(request)
        found = (item for item in decode_items(reply.items or ()) if plan.recognises(item))
        removals = [flows.expired(job, plan, item) for item in found]
        for chunk in flows.chunks(removals):
            rejected = [] if dry_run else run(flows.remove(job, chunk), db.engine)
            report.removed[plan.name] += len(chunk) - len(rejected)
        report.looked_at, start = report.looked_at + reply.scanned, reply.last_key
        if progress is not None:
            progress(report)
        if not start:
            break
    return report


class _PurgeJob:
    """One purge in progress."""

    def __init__(self, db: AdminStore, this: flows.PurgeRun, report: Purged, hold: Hold | None) -> None:
        self._db = db
        self._run = this
        self._report = report
        self._hold = hold
        #: Digests of the items that a dry run counted, so that a child is not counted twice.
        self._counted: set[str] = set()

    def do(self, plan: Plan | None, some: list[QueueEntry]) -> None:
        """Purge the items of these queue entries of one entity."""
        report = self._report
        report.looked_at += len(some)
        if plan is None:
            report.problems.append(
                f"{len(some)} queue entries have the entity {some[0].entity!r}, which no class declares; "
                f"import the module that declares it."
            )
            return
        if self._hold is not None:
            some = [entry for entry in some if not self._kept_back(plan, entry)]
        try:
            if not flows.is_plain(plan):
                for entry in some:
                    self._whole(plan, entry)
            elif report.dry_run:
                self._count(plan, some)
            else:
                self._together(plan, some)
        except TransportError:
            raise
        except SolotableError as error:
            # An entity that cannot be purged does not stop the others.
            report.problems.append(f"{plan.name}: {error}")

    def _kept_back(self, plan: Plan, entry: QueueEntry) -> bool:
        assert self._hold is not None
        deleted = deleted_of(plan, entry, None)
        reason = self._hold(deleted)
        if reason is not None:
            self._report.held.append(deleted.model_copy(update={"held": reason}))
        return reason is not None

    def _together(self, plan: Plan, some: list[QueueEntry]) -> None:
        by_key = {repr(entry.key): entry for entry in some}
        for chunk in flows.chunks([flows.due(self._run, plan, entry) for entry in some]):
            rejected = run(flows.remove(self._run, chunk), self._db.engine)
            self._report.removed[plan.name] += len(chunk) - len(rejected)
            for each in rejected:
                entry = by_key[repr(each.removal.key)]
                if each.item is not None and flows.is_due(entry, each.item):
                    self._report.held.append(deleted_of(plan, entry, each.item))
                else:
                    self._report.stale += 1
                    run(flows.forget(self._run, plan, entry), self._db.engine)

    def _count(self, plan: Plan, some: list[QueueEntry]) -> None:
        keys = [entry.key for entry in some]
        items = run(fetch(self._run.scope, plan, keys, consistent=True), self._db.engine)
        for entry, item in zip(some, items, strict=True):
            if item is None or not flows.is_due(entry, item):
                self._report.stale += 1
            elif held_by(item) is not None:
                self._report.held.append(deleted_of(plan, entry, item))
            elif (digest := digest_of(plan, entry.key)) not in self._counted:
                self._counted.add(digest)
                self._report.removed[plan.name] += 1

    def _whole(self, plan: Plan, entry: QueueEntry) -> None:
        this, removed, counted = self._run, self._report.removed, self._counted
        try:
            outcome = run(
                cascade.count_whole(this, plan, entry, removed, counted)
                if self._report.dry_run
                else cascade.purge_whole(this, plan, entry, removed),
                self._db.engine,
            )
        except TransportError:
            raise
        except SolotableError as error:
            self._report.problems.append(f"{plan.name} {plan.arguments_of(entry.key)}: {error}")
            return
        if outcome.held is not None:
            deleted = deleted_of(plan, entry, None)
            self._report.held.append(deleted.model_copy(update={"held": outcome.held}))
        elif outcome.stale:
            self._report.stale += 1


def _parts(table: Table, some: list[QueueEntry]) -> Iterator[tuple[Plan | None, list[QueueEntry]]]:
    """Yield entries by entity, in groups that fill transactions."""
    by_entity: dict[str, list[QueueEntry]] = {}
    for entry in some:
        by_entity.setdefault(entry.entity, []).append(entry)
    for tag, mine in by_entity.items():
        for at in range(0, len(mine), _TOGETHER):
            yield table.plans.get(tag), mine[at : at + _TOGETHER]
