"""A drill: restore a random moment into a scratch file, and compare it by another way.

The drill replays every change backwards, one by one, and compares the result with the restored table. It also
reads the restored table through each of its indexes.
"""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from solotable.engines.sqlite import SqliteEngine
from solotable.engines.sqlite.recovery.copying import Progress
from solotable.engines.sqlite.recovery.history import Replay, count_wrong_entries
from solotable.engines.sqlite.recovery.positions import Position, at_sequence, require_window
from solotable.engines.sqlite.recovery.restore import restore_to_file
from solotable.engines.sqlite.recovery.scopes import Scope
from solotable.engines.sqlite.tables import windows
from solotable.engines.sqlite.tables.definitions import read_table
from solotable.locations import Location
from solotable.shipping import restore_file


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLoss:
    """The file recovered from its shipped backup, beside the file itself."""

    #: Committed changes, of all tables with continuous backups, that the recovered file lacks.
    changes: int
    #: The time between its newest change and that of the file; 0 if it lacks none.
    seconds: float
    recover_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """The result of a drill."""

    table: str
    started: datetime
    #: The restored position.
    sequence: int
    at: datetime
    items: int
    #: Changes after the position, which the restore and the replay have undone.
    changes: int
    indexes: int
    #: Items that the restore and the replay have different.
    differences: int
    #: Entries of indexes that are missing, additional, or not the item's projection.
    index_differences: int
    restore_seconds: float
    verify_seconds: float
    #: What a lost disk would cost; None without a shipped backup.
    loss: DiskLoss | None = None

    @property
    def passed(self) -> bool:
        """Whether the restored table is right."""
        return not (self.differences or self.index_differences)

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        members = asdict(self) | {"passed": self.passed}
        return members | {"started": self.started.isoformat(), "at": self.at.isoformat()}


def run_drill(
    engine: SqliteEngine,
    name: str,
    *,
    folder: Path,
    chance: random.Random,
    progress: Progress | None = None,
    shipped: Location | None = None,
) -> Drill:
    """Restore a random moment of a table into a scratch file in `folder`, and verify it.

    With the location of a shipped backup, recover the file from there too, and measure what it lacks.
    """
    started = datetime.now(UTC)
    position = _pick(engine, name, chance)
    with (
        tempfile.TemporaryDirectory(prefix="solotable-drill-", dir=folder) as scratch,
        SqliteEngine(str(Path(scratch) / "drill.db"), durability="relaxed") as restored,
    ):
        begun = time.monotonic()
        restore_to_file(engine, name, position.sequence, restored, name, scope=Scope(), progress=progress)
        restore_seconds = time.monotonic() - begun
        begun = time.monotonic()
        replay = Replay(engine, name, position.sequence)
        try:
            differences, items = replay.differences(restored, name), replay.items
        finally:
            replay.close()
        with restored.database.snapshot() as connection:
            table = read_table(connection, name)
            wrong = sum(count_wrong_entries(connection, table, index) for index in table.indexes)
        verify_seconds = time.monotonic() - begun
        loss = None if shipped is None else _measure_loss(engine, shipped, Path(scratch) / "shipped.db")
    return Drill(
        table=name,
        started=started,
        sequence=position.sequence,
        at=position.at,
        items=items,
        changes=replay.changes,
        indexes=len(table.indexes),
        differences=differences,
        index_differences=wrong,
        restore_seconds=round(restore_seconds, 3),
        verify_seconds=round(verify_seconds, 3),
        loss=loss,
    )


def _pick(engine: SqliteEngine, name: str, chance: random.Random) -> Position:
    """Return a random position of the table's window."""
    with engine.database.snapshot() as connection:
        window = require_window(connection, read_table(connection, name))
        sequence = chance.randint(window.start, windows.newest_sequence(connection))
        return at_sequence(connection, window, sequence)


def _measure_loss(engine: SqliteEngine, shipped: Location, path: Path) -> DiskLoss:
    """Recover a shipped backup, and count the changes that it lacks."""
    sequence, micros = _newest(engine)
    begun = time.monotonic()
    restore_file(shipped, path)
    recover_seconds = time.monotonic() - begun
    with SqliteEngine(str(path), durability="relaxed") as recovered:
        found, found_micros = _newest(recovered)
    lost = max(0, sequence - found)
    return DiskLoss(
        changes=lost,
        seconds=(micros - found_micros) / 1_000_000 if lost else 0.0,
        recover_seconds=round(recover_seconds, 3),
    )


def _newest(engine: SqliteEngine) -> tuple[int, int]:
    """Return the sequence number and the time of the newest change."""
    with engine.database.snapshot() as connection:
        return windows.newest_sequence(connection), windows.newest_micros(connection)
