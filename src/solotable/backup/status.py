"""What a file says about the window of a table and about its backups."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStatus:
    """The continuous backups of a table; the times and positions are None if they are disabled."""

    table: str
    enabled: bool
    days: int | None = None
    #: The limit of the recorded bytes; None without one.
    max_bytes: int | None = None
    #: The bytes that are recorded now.
    log_bytes: int | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    first_sequence: int | None = None
    last_sequence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSummary:
    """A backup on demand, or the last state of a deleted table (`kind` SYSTEM)."""

    arn: str
    name: str
    table: str
    kind: str
    status: str
    created: datetime
    expires: datetime | None
    items: int
    bytes: int
