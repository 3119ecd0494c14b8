"""The migration from the old tables for administrators: work, verify, roll back, choose the table.

Every call is bounded in time. Workers of `solotable migrate start` do the same work without a limit.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from pydantic import BaseModel

from solotable.migrations.diff import DiffOptions, DiffReport, diff
from solotable.migrations.migration import Migration
from solotable.migrations.switching.switch import SwitchOptions
from solotable.migrations.worker import Worker
from solotable.systems.errors import InvalidInput

#: The states in which a worker that waits has nothing to do.
_STEADY = frozenset({"Running", "Verified", "ReadsSwitched", "WritesSwitched", "Stopped", "Error"})
_PAUSE_SECONDS = 0.05
#: How long a call works before it switches writes.
_CATCH_UP_SECONDS = 5.0


class MigrationState(BaseModel):
    """How far the migration is, and which tables serve reads and writes."""

    state: str
    #: Which side takes writes: the old tables (source) or the new one (target).
    writes: Literal["source", "target"]
    #: The share of the reads that the new table serves.
    reads_percent: float
    #: The share of the old items that were copied.
    copied_percent: float
    copied: int
    total: int
    lag_seconds: float | None = None
    #: Old items that no rule accepts.
    dead_letters: int = 0
    error: str | None = None


class Verification(BaseModel):
    """The outcome of a comparison of the old tables with the new one."""

    equal: bool
    expected: int
    actual: int
    #: The number of differences by kind: missing, extra, changed, conflict.
    differences: dict[str, int] = {}
    dead_letters: int = 0
    #: Items that changed in every attempt to read both sides.
    unsettled: int = 0
    samples: list[dict[str, Any]] = []


class SurveyMigration:
    """The migration of an installation; its calls block."""

    def __init__(self, migration: Migration) -> None:
        self._migration = migration

    def work(self, *, seconds: float, rate: float | None = None) -> MigrationState:
        """Create and start the migration if needed, work for some seconds, and return its state."""
        migration = self._migration
        record = migration.find_record()
        if record is None:
            record = migration.create(rate=rate)
        if record.state in ("Created", "Stopped", "Error"):
            migration.start()
        if rate is not None and rate != record.rate:
            migration.set_rate(rate)
        self._work(seconds)
        return self.state()

    def state(self) -> MigrationState:
        """Return the state of the migration."""
        found = self._migration.status()
        return MigrationState(
            state=found.record.state,
            writes=found.record.writes,
            reads_percent=found.record.reads_percent,
            copied_percent=round(found.copy.percent, 1),
            copied=found.copy.scanned,
            total=found.copy.total,
            lag_seconds=found.lag_seconds,
            dead_letters=found.dead_letters,
            error=found.record.error,
        )

    def verify(self, options: DiffOptions | None = None) -> Verification:
        """Compare both sides, and record the outcome, which a switch requires."""
        report: DiffReport = diff(self._migration, options)
        return Verification(
            equal=report.is_equal,
            expected=report.expected,
            actual=report.actual,
            differences=report.differences,
            dead_letters=report.dead_letters,
            unsettled=report.unsettled,
            samples=report.samples,
        )

    def choose_table(self, *, percent: int, writes: bool | None) -> MigrationState:
        """Let the new table serve a share of the reads, and take the writes, or not."""
        migration = self._migration
        if writes is not None and writes and percent != 100:
            raise InvalidInput("percent: the table that takes writes serves all reads; send 100.")
        record = migration.record()
        if record.writes == "target" and writes is not True:
            self._work(_CATCH_UP_SECONDS)
            migration.reverse(SwitchOptions())
        if writes is not True or record.writes == "source":
            migration.switch_reads(percent)
        if writes and record.writes == "source":
            self._work(_CATCH_UP_SECONDS)
            migration.switch_writes(SwitchOptions())
        return self.state()

    def roll_back(self) -> MigrationState:
        """Let the old tables serve all reads and take all writes; nothing that was written is lost."""
        record = self._migration.record()
        if record.writes == "target":
            self._work(_CATCH_UP_SECONDS)
            self._migration.reverse(SwitchOptions())
            record = self._migration.record()
        if record.reads_percent or record.reads_by_entity:
            self._migration.switch_reads(0)
        return self.state()

    def _work(self, seconds: float) -> None:
        worker = Worker(self._migration)
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                if worker.step() == "worked":
                    continue
                if self._migration.record().state in _STEADY:
                    return
                time.sleep(_PAUSE_SECONDS)
        finally:
            worker.release()
