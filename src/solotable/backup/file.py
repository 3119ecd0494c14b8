"""The backups of one database file: settings, backups on demand, restores and drills."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from solotable._values import Item
from solotable.engines.sqlite import MEMORY, SqliteEngine
from solotable.engines.sqlite.maintenance.change_pruning import log_bytes
from solotable.engines.sqlite.recovery import backups, targets
from solotable.engines.sqlite.recovery.copying import Progress
from solotable.engines.sqlite.recovery.history import Version, read_history
from solotable.engines.sqlite.recovery.in_place import (
    Applied,
    Preview,
    StepProgress,
    apply_preview,
    make_preview,
)
from solotable.engines.sqlite.recovery.positions import Position, to_datetime
from solotable.engines.sqlite.recovery.restore import restore_table, restore_to_file
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.catalog import Definition, Table, list_names
from solotable.engines.sqlite.tables.definitions import change_definition, load_current_table
from solotable.errors import RecoveryError
from solotable.locations import Location

from .drill import Drill, run_drill
from .status import BackupSummary, WindowStatus

#: A time, a sequence number, or None for the newest state.
Moment = datetime | int | None


class BackupFile:
    """The backups of a database file, or of an open engine, which stays open.

    Other processes may use the file: a restore reads and writes in short steps.
    """

    def __init__(self, database: str | os.PathLike[str] | SqliteEngine) -> None:
        self._owns_engine = not isinstance(database, SqliteEngine)
        if isinstance(database, SqliteEngine):
            self.engine = database
            return
        path = os.fspath(database)
        if path != MEMORY and not Path(path).exists():
            raise RecoveryError(f"No such file: {path}.")
        self.engine = SqliteEngine(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, unless the caller opened the engine."""
        if self._owns_engine:
            self.engine.close()

    def tables(self) -> list[str]:
        """Return the names of the tables."""
        with self.engine.database.read() as connection:
            return list_names(connection, backups=False)

    def enable(self, table: str, *, days: int | None = None, max_bytes: int | None = None) -> WindowStatus:
        """Enable continuous backups, or change their limits; `days` is 1 to 35, and 35 by default.

        `max_bytes` limits the recorded bytes: the oldest changes go first, and the window gets shorter.
        0 removes the limit. A limit that is not given stays as it is.
        """
        if days is not None and not 1 <= days <= 35:
            raise RecoveryError(f"The recovery period is 1 to 35 days, got {days}.")
        if max_bytes is not None and max_bytes < 0:
            raise RecoveryError(f"max_bytes is a positive number, or 0 for no limit; got {max_bytes}.")
        wanted: dict[str, Any] = {"PointInTimeRecoveryEnabled": True}
        if days is not None:
            wanted["RecoveryPeriodInDays"] = days
        self._call("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted)

        if max_bytes is not None:
            change_definition(self.engine, table, partial(_limit_bytes, max_bytes))
        return self.status(table)

    def disable(self, table: str) -> WindowStatus:
        """Disable continuous backups; the recorded changes are dropped."""
        wanted = {"PointInTimeRecoveryEnabled": False}
        self._call("UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=wanted)
        return self.status(table)

    def status(self, table: str) -> WindowStatus:
        """Return the window of a table: to which times and sequence numbers it can be restored."""
        found = load_current_table(self.engine, table)
        setting = found.definition.get("PointInTimeRecovery")
        with self.engine.database.snapshot() as connection:
            window = windows.find(connection, found.definition["TableId"])
            newest, newest_micros = windows.newest_sequence(connection), windows.newest_micros(connection)
        if setting is None or window is None:
            return WindowStatus(table=table, enabled=False)
        now = self.engine.now_micros()
        return WindowStatus(
            table=table,
            enabled=True,
            days=setting["RecoveryPeriodInDays"],
            max_bytes=setting.get("MaxBytes"),
            log_bytes=log_bytes(self.engine, window),
            earliest=to_datetime(window.start_micros(now, setting["RecoveryPeriodInDays"])),
            latest=to_datetime(max(now, newest_micros)),
            first_sequence=window.start,
            last_sequence=newest,
        )

    def restore(
        self,
        table: str,
        at: Moment,
        to: str,
        *,
        into: str | os.PathLike[str] | None = None,
        scope: Scope | None = None,
        progress: Progress | None = None,
    ) -> Position:
        """Restore a table, or a part of it, as the table `to` of this file or of the file `into`.

        As on AWS, the restored table has the indexes and the capacity of the source, and not its stream, time
        to live, continuous backups and tags.
        """
        chosen = Scope() if scope is None else scope
        if into is None:
            return restore_table(self.engine, table, at, to, scope=chosen, progress=progress)
        with SqliteEngine(os.fspath(into)) as target:
            return restore_to_file(self.engine, table, at, target, to, scope=chosen, progress=progress)

    def preview(
        self,
        table: str,
        at: Moment,
        *,
        scope: Scope | None = None,
        samples: int = 5,
        progress: StepProgress | None = None,
    ) -> Preview:
        """Compare the items of a table with their state at a moment; nothing changes."""
        chosen = Scope() if scope is None else scope
        return make_preview(self.engine, table, at, chosen, samples=samples, progress=progress)

    def apply(self, preview: Preview, *, progress: StepProgress | None = None) -> Applied:
        """Restore in place what a preview shows; call it again after an interruption.

        An item that changed after the preview is skipped and counted as a conflict.
        """
        return apply_preview(self.engine, preview, progress=progress)

    def history(self, table: str, key: Item) -> list[Version]:
        """Return the versions of an item in the window, oldest first; `key` is in DynamoDB's wire form."""
        return read_history(self.engine, table, key)

    def create(self, table: str, name: str, *, progress: Progress | None = None) -> BackupSummary:
        """Back up a table as it is now, and wait until the backup is complete."""
        arn = self._call("CreateBackup", TableName=table, BackupName=name)["BackupDetails"]["BackupArn"]
        targets.complete(self.engine, arn, progress)
        return self.find(arn)

    def list(self, table: str | None = None) -> list[BackupSummary]:
        """Return the backups, also those of deleted tables, by their time."""
        with self.engine.database.snapshot() as connection:
            found = [_summary(backup) for backup in backups.list_all(connection)]
        return [each for each in found if table in (None, each.table)]

    def find(self, arn: str) -> BackupSummary:
        """Return one backup."""
        with self.engine.database.read() as connection:
            return _summary(backups.find(connection, arn))

    def delete(self, arn: str) -> BackupSummary:
        """Delete a backup."""
        found = self.find(arn)
        self._call("DeleteBackup", BackupArn=arn)
        return found

    def restore_backup(self, arn: str, to: str, *, progress: Progress | None = None) -> None:
        """Restore a backup as a table, and wait until the table is complete."""
        self._call("RestoreTableFromBackup", BackupArn=arn, TargetTableName=to)
        targets.complete(self.engine, to, progress)

    def drill(
        self,
        table: str,
        *,
        seed: int | None = None,
        progress: Progress | None = None,
        shipped: Location | None = None,
    ) -> Drill:
        """Restore a random moment into a scratch file beside the database, and verify it.

        With the location of a shipped backup, recover that too, and measure what a lost disk would cost.
        """
        path = self.engine.database.path
        folder = Path.cwd() if path == MEMORY else Path(path).parent
        chance = random.Random(seed)  # noqa: S311 - picks a moment, no secret
        return run_drill(self.engine, table, folder=folder, chance=chance, progress=progress, shipped=shipped)

    def _call(self, operation: str, **members: Any) -> dict[str, Any]:
        return self.engine.call(operation, members)


def append_drill(file: Path, drill: Drill) -> None:
    """Append the result of a drill to a history: one JSON object per line."""
    with file.open("a", encoding="utf-8") as history:
        history.write(json.dumps(drill.to_json()) + "\n")


def _limit_bytes(limit: int, _connection: sqlite3.Connection, _table: Table, definition: Definition) -> None:
    setting = definition["PointInTimeRecovery"]
    setting.pop("MaxBytes", None)
    if limit:
        setting["MaxBytes"] = limit


def _summary(backup: Table) -> BackupSummary:
    stored = backup.definition["Backup"]
    expires = stored.get("ExpiryMicros")
    return BackupSummary(
        arn=stored["BackupArn"],
        name=stored["BackupName"],
        table=stored["Table"]["TableName"],
        kind=stored["BackupType"],
        status="CREATING" if "Copy" in backup.definition else "AVAILABLE",
        created=to_datetime(stored["CreationMicros"]).astimezone(UTC),
        expires=None if expires is None else to_datetime(expires),
        items=stored["Items"],
        bytes=stored["Bytes"],
    )
