"""Exports and restores of the table, on a separate blocking connection.

- S2.17: `export_day` writes all items as JSON to a folder or a bucket, once a day.
- S2.16: `restore` creates another table with the items of a moment. The live table stays as it is, so a
  restore loses no later write (C2.13). A restored copy has accounts that were purged since that moment: purge
  them again before it is used (C2.9).
- S2.20: `drill` restores a random moment and verifies it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from solotable import Database, connect
from solotable.backup import BackupFile, Drill
from solotable.errors import AlreadyExists, NotFound, ServiceError
from solotable.exports import export_daily, list_exports, locate, open_export
from solotable.systems.errors import InvalidInput
from solotable.urls import Url

from .errors import ExportRunning
from .table import community

_ALREADY = frozenset({"TableAlreadyExistsException", "ResourceInUseException"})
_INVALID = frozenset({"InvalidRestoreTimeException", "PointInTimeRecoveryUnavailableException"})


class ExportReport(BaseModel):
    """The export of a day."""

    day: str
    location: str
    items: int
    #: Whether the day had an export before.
    existed: bool


class RestoreReport(BaseModel):
    """A table that is being restored."""

    table: str
    status: str
    restored_at: datetime | None = None


class Recovery:
    """Opens its connection with the first use. Safe for threads."""

    def __init__(
        self, url: str, *, export_url: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._url = url
        self._export_url = export_url
        self._now = now
        self._lock = threading.Lock()
        self._db: Database | None = None

    def export_day(self) -> ExportReport:
        """Export the table, unless the day (UTC) has an export (`solotable.exports.export_daily`).

        Raises NotFound without a location, and ExportRunning while another process exports.
        """
        if self._export_url is None:
            raise NotFound("This installation has no location for exports.")
        db, location = self._database(), locate(self._export_url)
        # The engine keeps its clock: its times order the changes that a restore reads.
        timed = Database(db.engine, replace(db.scope, clock=lambda: self._now().timestamp()))
        done = export_daily(timed, location)
        if done.held_by is not None:
            raise ExportRunning("Another process exports this day; ask again in a minute.", item=None)
        folder = location.below(f"{done.day}/{db.scope.names[community.name]}")
        found = open_export(folder, next(iter(list_exports(folder))))
        return ExportReport(
            day=str(done.day),
            location=str(folder),
            items=found.summary.item_count,
            existed=not done.exported,
        )

    def restore(self, table: str, at: datetime | None = None) -> RestoreReport:
        """Create a table with the items of a moment, by default the newest one that can be restored."""
        db = self._database()
        members: dict[str, Any] = {
            "SourceTableName": db.scope.names[community.name],
            "TargetTableName": table,
        }
        if at is None:
            members["UseLatestRestorableTime"] = True
        else:
            members["RestoreDateTime"] = at.timestamp()
        try:
            reply = cast(Any, db.engine).call("RestoreTableToPointInTime", members)
        except ServiceError as error:
            if error.code in _ALREADY:
                raise AlreadyExists(f"The table {table!r} exists already.") from error
            if error.code in _INVALID:
                raise InvalidInput(f"at: {error.message}") from error
            raise
        described = reply["TableDescription"]
        moment = described["RestoreSummary"]["RestoreDateTime"]
        return RestoreReport(
            table=described["TableName"],
            status=described["TableStatus"],
            restored_at=datetime.fromtimestamp(float(moment), UTC),
        )

    def enable_backups(self, *, days: int = 35) -> None:
        """Turn on point-in-time recovery (S2.16)."""
        db = self._database()
        members = {
            "TableName": db.scope.names[community.name],
            "PointInTimeRecoverySpecification": {
                "PointInTimeRecoveryEnabled": True,
                "RecoveryPeriodInDays": days,
            },
        }
        cast(Any, db.engine).call("UpdateContinuousBackups", members)

    def drill(self) -> Drill:
        """Restore a random moment of an embedded database into a scratch file, and verify it."""
        path = Url.parse(self._url).path
        if path is None:
            raise NotFound("A drill needs an embedded database in a file.")
        with BackupFile(Path(path)) as file:
            return file.drill(self._database().scope.names[community.name])

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    def _database(self) -> Database:
        with self._lock:
            if self._db is None:
                self._db = connect(self._url, community)
            return self._db
