"""Backups of embedded databases: continuous backups, restores of any part, drills.

>>> with BackupFile(":memory:") as file:
...     file.tables()
[]
"""

from __future__ import annotations

from solotable.engines.sqlite.recovery.history import Version
from solotable.engines.sqlite.recovery.in_place import Applied, Difference, Preview
from solotable.engines.sqlite.recovery.positions import Position
from solotable.engines.sqlite.recovery.scopes import Scope

from .drill import DiskLoss, Drill
from .file import BackupFile
from .moments import parse_moment
from .status import BackupSummary, WindowStatus

__all__ = [
    "Applied",
    "BackupFile",
    "BackupSummary",
    "Difference",
    "DiskLoss",
    "Drill",
    "Position",
    "Preview",
    "Scope",
    "Version",
    "WindowStatus",
    "parse_moment",
]
