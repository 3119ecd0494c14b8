"""The backups of a table: what any engine describes, and the recorded changes of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solotable._protocol.requests import Control
from solotable.backup import BackupFile
from solotable.console.state import Console
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import SolotableError

_MOST_BACKUPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupWindow:
    """The window of continuous backups; the times are seconds since the epoch, None if they are disabled."""

    enabled: bool
    earliest: float | None = None
    latest: float | None = None
    days: int | None = None
    #: Why the window is not known, as without permission; empty if it is.
    problem: str = ""


def backup_file(console: Console) -> BackupFile | None:
    """Return the backups of the console's own file; None for a server or AWS."""
    inner = console.engine.inner
    return BackupFile(inner) if isinstance(inner, SqliteEngine) else None


def read_window(console: Console, table: str) -> BackupWindow:
    """Return to which times a table can be restored: DescribeContinuousBackups, which is free."""
    request = Control(operation="DescribeContinuousBackups", members={"TableName": table})
    try:
        described = console.engine.handle(request)["ContinuousBackupsDescription"]
    except SolotableError as error:
        return BackupWindow(enabled=False, problem=str(error))
    found = described.get("PointInTimeRecoveryDescription") or {}
    if found.get("PointInTimeRecoveryStatus") != "ENABLED":
        return BackupWindow(enabled=False)
    return BackupWindow(
        enabled=True,
        earliest=_seconds(found.get("EarliestRestorableDateTime")),
        latest=_seconds(found.get("LatestRestorableDateTime")),
        days=found.get("RecoveryPeriodInDays"),
    )


def list_backups(console: Console, table: str) -> list[dict[str, Any]]:
    """Return the backups on demand of a table, newest first: ListBackups, which is free."""
    request = Control(operation="ListBackups", members={"TableName": table, "Limit": _MOST_BACKUPS})
    try:
        found = console.engine.handle(request)["BackupSummaries"]
    except SolotableError:
        # Without permission, or at an endpoint without backups: the window says so.
        return []
    rows = [
        {
            "name": each["BackupName"],
            "arn": each["BackupArn"],
            "status": each["BackupStatus"],
            "kind": each.get("BackupType", "USER"),
            "created": _seconds(each.get("BackupCreationDateTime")),
            "bytes": each.get("BackupSizeBytes"),
        }
        for each in found
    ]
    return sorted(rows, key=lambda each: -(each["created"] or 0.0))


def _seconds(value: Any) -> float | None:
    """Return a time of a reply in seconds; replies have numbers, or datetimes of an SDK."""
    if value is None:
        return None
    return float(value.timestamp()) if hasattr(value, "timestamp") else float(value)
