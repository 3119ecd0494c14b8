"""Backfill: upgrade stored items to the current schema version, and rewrite outdated index keys.

It scans the table once, with a budget. Checkpoints in the table let it continue after a kill. The next run
finds items that older code writes during this one; `report` counts them. It does not increase versions and
makes no derived writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._flows.jobs.backfill import BackfillCounts, Work, assess, page, scan
from solotable._flows.jobs.scan_checkpoints import (
    SegmentCheckpoint,
    clear_checkpoints,
    goal_of,
    load_checkpoints,
    save_checkpoint,
    saves_checkpoints,
)
from solotable._flows.reads.scan import ScanPart
from solotable._protocol.requests import Control
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import DataError, NewerSchemaVersion, ServiceError

from .segments import SharedBudget, check_scan_options, pace_of_segment, run_segments

_MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a backfill; counts include its former runs."""

    entity: str
    tally: BackfillCounts
    #: The number of items in the table, if known; Amazon's figure is hours old.
    total: int | None
    seconds: float
    eta_seconds: float | None
    done: bool
    dry_run: bool
    #: Whether it continued from a checkpoint.
    resumed: bool
    #: The first items that could not be rewritten.
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Stored items of an entity: the number of each schema version, and of outdated index keys."""

    entity: str
    current: int
    items: int
    by_schema_version: Mapping[int, int]
    #: Items that still have attributes for older releases.
    serving_older: int
    stale_keys: int
    unreadable: int

    @property
    def old(self) -> int:
        """The number of items with an older schema version."""
        return sum(count for version, count in self.by_schema_version.items() if version < self.current)


def backfill(  # noqa: PLR0913 - the settings of a job, each by name
    db: AdminStore,
    entity: type[Entity],
    *,
    budget: int,
    rate: float | None = None,
    segments: int = 1,
    dry_run: bool = False,
    restart: bool = False,
    together: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Upgrade the stored items of an entity, and return the counts.

    Reads at most `budget` items. `rate` is the capacity units a second that it may take. `segments` are
    worked on at the same time. It continues from the checkpoint of a run that did not end, unless
    `restart`. `together` is how many items are rewritten in one transaction: 100 in the embedded engine,
    which writes a transaction at once, and 1 elsewhere, where transactions cost twice as much.
    """
    plan = entity.plan()
    check_scan_options(rate=rate, segments=segments, budget=budget)
    if together is None:
        together = MOST_TRANSACTION_ACTIONS if db.engine.capabilities.handle_together else 1
    keeps = saves_checkpoints(plan) and not dry_run
    there = run(load_checkpoints(db.scope, plan), db.engine) if keeps and not restart else []
    if there and there[0].segments != segments:
        raise DataError(
            f"An unfinished backfill of {plan.name} has segments={there[0].segments}; "
            f"continue it with the same number, or start over with restart=True."
        )
    job = _Job(
        db=db,
        plan=plan,
        budget=SharedBudget(budget),
        dry_run=dry_run,
        resumed=bool(there),
        progress=progress,
    )
    job.total = _count(db, plan)
    token = db.scope.tokens()
    marks = there or [
        SegmentCheckpoint(run=token, goal=goal_of(plan), segment=segment, segments=segments)
        for segment in range(segments)
    ]
    job.tallies = {mark.segment: mark.tally for mark in marks}
    job.before = sum(mark.tally.seen for mark in marks)
    if keeps and not there:
        for mark in marks:
            run(save_checkpoint(db.scope, plan, mark), db.engine)
    works = [
        Work(
            scope=db.scope,
            plan=plan,
            together=together,
            dry_run=dry_run,
            pace=pace_of_segment(rate, segments, db.scope),
        )
        for _ in marks
    ]
    parts = [partial(_segment, job, work, mark, keeps=keeps) for work, mark in zip(works, marks, strict=True)]
    run_segments(job.budget, parts)
    if keeps:
        run(clear_checkpoints(db.scope, plan, marks), db.engine)
    return job.report(done=True)


@dataclass(kw_only=True)
class _Job:
    """One running backfill, shared by the threads of its segments."""

    db: AdminStore
    plan: Plan
    budget: SharedBudget
    dry_run: bool
    resumed: bool
    progress: Callable[[Progress], None] | None
    total: int | None = None
    #: Items that former runs read.
    before: int = 0
    tallies: dict[int, BackfillCounts] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    started: float = field(default_factory=time.monotonic)

    def report(self, *, done: bool = False) -> Progress:
        tally = sum(self.tallies.values(), BackfillCounts())
        seconds = time.monotonic() - self.started
        seen, left = tally.seen - self.before, None if self.total is None else self.total - tally.seen
        eta = left * seconds / seen if left is not None and left > 0 and seen else None
        found = Progress(
            entity=self.plan.name,
            tally=tally,
            total=self.total,
            seconds=seconds,
            eta_seconds=0.0 if done else eta,
            done=done,
            dry_run=self.dry_run,
            resumed=self.resumed,
            problems=tuple(self.problems[:_MOST_PROBLEMS]),
        )
        if self.progress is not None:
            self.progress(found)
        return found

    def add(self, mark: SegmentCheckpoint, problems: tuple[str, ...]) -> None:
        """Count what a page of a segment did, and report progress."""
        with self.lock:
            self.tallies[mark.segment] = mark.tally
            self.problems += problems
            self.report()


def _segment(job: _Job, work: Work, mark: SegmentCheckpoint, *, keeps: bool) -> None:
    """Rewrite one segment of the table, with a checkpoint after each page."""
    scope, engine = job.db.scope, job.db.engine
    while not mark.done:
        budget = job.budget.take(work.at_once)
        if not budget:
            if job.budget.is_stopped:
                return
            raise DataError(
                f"The backfill of {job.plan.name} has reached its budget of items; "
                f"run it again to continue, or raise the budget."
            )
        part = ScanPart(segment=mark.segment, segments=mark.segments, start=mark.last_key, budget=budget)
        seen = 0
        try:
            paged = run(page(work, part), engine)
            seen = paged.tally.seen
        finally:
            job.budget.release(budget - seen)
        tally = mark.tally + paged.tally
        mark = replace(mark, last_key=paged.last_key, done=paged.last_key is None, tally=tally)
        if keeps:
            run(save_checkpoint(scope, work.plan, mark), engine)
        job.add(mark, paged.problems)


def report(
    db: AdminStore,
    entity: type[Entity],
    *,
    budget: int,
    progress: Callable[[int], None] | None = None,
) -> Report:
    """Count the stored items of an entity by their schema versions, and those whose index keys are wrong."""
    work = Work(scope=db.scope, plan=entity.plan())
    versions = work.plan.schema_versions
    by_schema_version: dict[int, int] = {}
    keys = {name for path in work.plan.indexes for name in path.derived}
    items = serving = stale = unreadable = 0
    start = None
    while True:
        part = ScanPart(segment=0, segments=1, start=start, budget=budget)
        found, start, tally = run(scan(work, part), db.engine)
        budget -= tally.seen
        for item in found:
            items += 1
            try:
                version = versions.version_of(item)
                by_schema_version[version] = by_schema_version.get(version, 0) + 1
                serving += versions.oldest_attribute in item
                rewrite = assess(work, item)
            except NewerSchemaVersion:
                continue
            except DataError:
                unreadable += 1
            else:
                stale += rewrite is not None and not keys.isdisjoint(rewrite.changes)
        if progress is not None:
            progress(items)
        if start is None:
            break
    return Report(
        entity=work.plan.name,
        current=versions.current,
        items=items,
        by_schema_version=dict(sorted(by_schema_version.items())),
        serving_older=serving,
        stale_keys=stale,
        unreadable=unreadable,
    )


def _count(db: AdminStore, plan: Plan) -> int | None:
    """Return the item count of the table, or None if it is not available."""
    request = Control(operation="DescribeTable", members={"TableName": db.scope.table(plan.table)})
    try:
        described = db.engine.handle(request)
    except ServiceError:
        # A writer may lack the permission to describe the table.
        return None
    count = described.get("Table", {}).get("ItemCount")
    return int(count) if count else None
