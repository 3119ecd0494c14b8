"""Export all tables once a day, however many workers ask for it, and delete the oldest days.

An export of a day is finished if its summary is stored, so the location alone says what is left to do. A
lease keeps workers from doing the same at once. It need not be exact: of two exports of a day, one stays.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime

from solotable._entities.declare.table import Table
from solotable._export_files import manifests
from solotable._export_files.reader import list_exports, open_export
from solotable._store import AdminStore, Database
from solotable._store.handles.leases import Lease
from solotable.errors import DataError, LeaseHeld, LeaseLost, SolotableError
from solotable.locations import Location

from .exporting import Exported, export_table

#: The name of the lease.
LEASE = "daily-export"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: Files of killed exports are deleted after this time. A worker that still writes them is long gone.
_LEFTOVER_SECONDS = 86_400.0

#: Called with the name of the table, the items so far, and the items that it has, if that is known.
DailyProgress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyExport:
    """What a call of `export_daily` did."""

    #: The day in UTC.
    day: date
    #: What this call exported, by table.
    exported: dict[str, Exported]
    #: Tables that were exported before, on this day.
    present: tuple[str, ...] = ()
    #: Older days that were deleted.
    deleted: tuple[str, ...] = ()
    #: The worker that exports at the moment. Call again later: it may be killed.
    held_by: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every table has its export of the day."""
        return self.held_by is None


def export_daily(
    db: Database | AdminStore,
    location: Location,
    *,
    tables: Sequence[Table] | None = None,
    keep: int | None = None,
    rate: float | None = None,
    lease_seconds: float = 60.0,
    progress: DailyProgress | None = None,
) -> DailyExport:
    """Export each table that has no export of this day (UTC) yet, to `DAY/TABLE/` below the location.

    Call it as often as you like, from as many workers as you like: on a day that is done it only lists the
    location. After a crash, the next call exports the tables that are left. `keep` is the number of days to
    keep; older ones are deleted after an export. `tables` are all open tables by default.
    """
    chosen = db.scope.tables if tables is None else tuple(tables)
    if not chosen:
        raise DataError("export_daily() needs a table, got none; open the database with its tables.")
    if keep is not None and keep < 1:
        raise DataError(f"keep must be at least 1 day, got {keep}.")
    names = tuple(db.scope.names[each.name] for each in chosen)
    if hidden := [name for name in names if name.startswith(".")]:
        raise DataError(f"Table {hidden[0]!r} cannot be exported daily: its folder would be hidden.")
    job = _DailyJob(db, location, names, rate, progress)
    if not (missing := job.missing()):
        return DailyExport(day=job.day, exported={}, present=job.tables)
    # One lease for all workers, also for those that export other tables.
    lease = db.lease(LEASE, seconds=lease_seconds, table=(db.scope.tables or chosen)[0])
    try:
        with lease, _renewed(lease, lease_seconds):
            # Another worker may have exported between the check and the lease.
            missing = job.missing()
            exported = {name: done for name in missing if (done := job.export(name))}
            deleted = job.delete_older(keep) if keep is not None and exported else ()
    except LeaseHeld as error:
        present = tuple(name for name in job.tables if name not in missing)
        return DailyExport(day=job.day, exported={}, present=present, held_by=error.owner)
    present = tuple(name for name in job.tables if name not in exported)
    return DailyExport(day=job.day, exported=exported, present=present, deleted=deleted)


def list_days(location: Location) -> list[str]:
    """Return the days that have a finished export of a table, oldest first."""
    return [
        day
        for day in _days(location)
        if any(_finished(location, day, name) for name in _names(location, day))
    ]


class _DailyJob:
    """The exports of one day."""

    def __init__(
        self,
        db: Database | AdminStore,
        location: Location,
        tables: tuple[str, ...],
        rate: float | None,
        progress: DailyProgress | None,
    ) -> None:
        self._db = db
        self._location = location
        self._rate = rate
        self._progress = progress
        self.tables = tables
        self.day = datetime.fromtimestamp(db.scope.clock(), UTC).date()

    def missing(self) -> list[str]:
        """Return the tables without a finished export of the day."""
        return [name for name in self.tables if not _finished(self._location, str(self.day), name)]

    def export(self, name: str) -> Exported | None:
        """Export a table; return None if another worker has done so too and ended first."""
        report = self._progress
        path = f"{self.day}/{name}"
        folder = self._location.below(path)
        done = export_table(
            self._db.engine,
            name,
            folder,
            clock=self._db.scope.clock,
            rate=self._rate,
            progress=None if report is None else lambda items, total: report(name, items, total),
        )
        found = [open_export(folder, each) for each in list_exports(folder)]
        first, *extra = sorted(found, key=lambda each: (each.summary.end_time, each.id))
        for each in extra:
            _delete_export(self._location, f"{path}/{each.folder}")
        return done if first.folder == done.folder else None

    def delete_older(self, keep: int) -> tuple[str, ...]:
        """Delete all but the newest days, and what killed exports left; return the deleted days.

        Days are counted, not compared with the clock, so a clock that is wrong deletes at most one day.
        """
        deleted = tuple(list_days(self._location)[:-keep])
        for day in deleted:
            for folder in self._exports(day):
                _delete_export(self._location, folder)
        latest = self._db.scope.clock() - _LEFTOVER_SECONDS
        for day in _days(self._location):
            for folder in self._exports(day):
                started = int(folder.rpartition("/")[2][:14]) / 1000
                if started < latest and manifests.SUMMARY not in set(self._location.list(folder)):
                    _delete_export(self._location, folder)
        self._location.delete_leftovers(older_than_seconds=_LEFTOVER_SECONDS)
        return deleted

    def _exports(self, day: str) -> Iterator[str]:
        """Yield the folders of the exports of a day, finished or not."""
        for name in _names(self._location, day):
            root = f"{day}/{name}/{manifests.ROOT}"
            yield from (
                f"{root}/{each}" for each in self._location.list(root) if manifests.EXPORT_ID.fullmatch(each)
            )


@contextmanager
def _renewed(lease: Lease, seconds: float) -> Iterator[None]:
    """Return a context that renews a lease while an export takes longer than it lasts."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(seconds / 3):
            try:
                lease.renew()
            except LeaseLost:
                return  # another worker exports too, and one of the two exports stays
            except SolotableError:
                continue  # the next attempt may succeed before the lease ends

    thread = threading.Thread(target=renew, name="solotable-daily-export", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _days(location: Location) -> list[str]:
    return sorted(name for name in location.list("") if _DAY.fullmatch(name))


def _names(location: Location, day: str) -> list[str]:
    return sorted(location.list(day))


def _finished(location: Location, day: str, name: str) -> bool:
    return bool(list_exports(location.below(f"{day}/{name}")))


def _delete_export(location: Location, folder: str) -> None:
    """Delete an export, its summary first: a part of it is never taken for a finished one."""
    location.delete(f"{folder}/{manifests.SUMMARY}")
    for name in list(location.find(f"{folder}/")):
        location.delete(name)
