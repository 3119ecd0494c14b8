"""Add type tags to the items of an adopted table, or count which entities they match.

The job changes no other attribute and never writes over another writer's tag. It is idempotent: run again,
it tags what is left. It stores no checkpoint in the table; the report has one to continue from.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from solotable._entities.declare.table import Table
from solotable._flows.internal_items import only_table
from solotable._flows.jobs.tagging import TagCounts, TagWork, tag_page
from solotable._flows.reads.scan import ScanPart
from solotable._store import AdminStore
from solotable._store.runner import run
from solotable._values import Item
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import DataError, DeclarationError

from .segments import SharedBudget, check_scan_options, pace_of_segment, run_segments

_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TagReport:
    """The counts of this run, and where to continue."""

    table: str
    counts: TagCounts
    dry_run: bool
    #: Whether the whole table was read.
    done: bool
    #: Pass it as `resume=` to continue after this run; None at the end.
    checkpoint: str | None


def tag_items(  # noqa: PLR0913 - the settings of a job, each by name
    db: AdminStore,
    table: Table | None = None,
    *,
    budget: int,
    rate: float | None = None,
    segments: int = 1,
    dry_run: bool = False,
    resume: str | None = None,
    together: int | None = None,
    progress: Callable[[TagReport], None] | None = None,
) -> TagReport:
    """Add the type tag to every item without one whose key matches exactly one entity.

    Reads at most `budget` items. `rate` is the capacity units a second that it may take. `segments` are
    worked on at the same time. `dry_run` only counts. `resume` is the checkpoint of a report. `together` is
    how many tags are written in one transaction, as in `backfill`: 100 in the embedded engine, 1 elsewhere.
    """
    table = only_table(db.scope, table, "has the items")
    if table.tag is None:
        raise DeclarationError(
            f"Table {table.name!r} has tag=None, so its items get no type tag; declare tag= to add tags."
        )
    check_scan_options(rate=rate, segments=segments, budget=budget)
    if together is None:
        together = MOST_TRANSACTION_ACTIONS if db.engine.capabilities.handle_together else 1
    job = _TagJob(db=db, table=table, budget=SharedBudget(budget), dry_run=dry_run, progress=progress)
    job.starts = _parse(resume, table) if resume is not None else dict.fromkeys(range(segments))
    job.segments = len(job.starts)
    job.finished = {segment for segment, start in job.starts.items() if start == _END}
    left = [segment for segment in job.starts if segment not in job.finished]
    works = {
        segment: TagWork(
            scope=db.scope,
            table=table,
            dry_run=dry_run,
            together=together,
            pace=pace_of_segment(rate, len(left), db.scope),
        )
        for segment in left
    }
    run_segments(job.budget, [partial(job.work, segment, work) for segment, work in works.items()])
    return job.report()


#: The position of a segment that is done; no item has this key.
_END: Item = {"": {"BOOL": True}}


@dataclass(kw_only=True)
class _TagJob:
    """One running job, shared by the threads of its segments."""

    db: AdminStore
    table: Table
    budget: SharedBudget
    dry_run: bool
    progress: Callable[[TagReport], None] | None
    segments: int = 1
    #: The key after which each segment continues.
    starts: dict[int, Item | None] = field(default_factory=dict)
    finished: set[int] = field(default_factory=set)
    counts: TagCounts = field(default_factory=TagCounts)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, segment: int, work: TagWork) -> None:
        """Work on one segment until its end, or until the budget is used up."""
        while budget := self.budget.take(_AT_ONCE):
            part = ScanPart(
                segment=segment, segments=self.segments, start=self.starts[segment], budget=budget
            )
            counts = TagCounts()
            try:
                counts, last_key = run(tag_page(work, part), self.db.engine)
            finally:
                self.budget.release(budget - counts.seen)
            with self.lock:
                self.counts.add(counts)
                self.starts[segment] = last_key or _END
                if last_key is None:
                    self.finished.add(segment)
                if self.progress is not None:
                    self.progress(self.report())
            if last_key is None:
                return

    def report(self) -> TagReport:
        done = len(self.finished) == len(self.starts)
        at = {"table": self.table.name, "starts": [self.starts[number] for number in sorted(self.starts)]}
        return TagReport(
            table=self.table.name,
            counts=self.counts,
            dry_run=self.dry_run,
            done=done,
            checkpoint=None if done else json.dumps(at),
        )


def _parse(text: str, table: Table) -> dict[int, Item | None]:
    try:
        found: Any = json.loads(text)
        starts: list[Item | None] = found["starts"]
        if found["table"] != table.name or not starts:
            raise KeyError("table")
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"resume= is not a checkpoint of table {table.name!r}; pass that of a report, or start over."
        ) from error
    return dict(enumerate(starts))
