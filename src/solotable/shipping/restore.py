"""Restore a database file from a location, or verify that it can be done."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from solotable.errors import DamagedBackup, DataError
from solotable.locations import Location

from .archive import Archive, find_snapshot, segment_name
from .records import RecordHeader

#: Called with the segments that were applied so far.
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A database that was restored."""

    generation: str
    sequence: int
    #: Microseconds since the epoch; everything committed before is in the database.
    micros: int
    bytes: int


def restore_file(
    location: Location,
    target: str | os.PathLike[str],
    *,
    at: float | None = None,
    progress: Progress | None = None,
) -> Restored:
    """Restore the newest state at a location, or the newest before `at`, to a file that does not exist.

    `at` is in seconds since the epoch. The file appears under its name once it is complete and checked.
    """
    path = Path(target)
    if path.exists():
        raise DataError(f"{path} exists; restore to another name, or remove it first.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b") as file:
            restored = _rebuild(Archive(location), file, at, progress)
            file.flush()
            os.fsync(file.fileno())
        _check(temporary, restored.generation)
        os.link(temporary, path)  # fails if the name was taken in between
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            temporary.with_name(temporary.name + suffix).unlink(missing_ok=True)
    return restored


def verify(location: Location, *, at: float | None = None, progress: Progress | None = None) -> Restored:
    """Restore to a temporary file and check it, or raise DamagedBackup."""
    with TemporaryDirectory(prefix="solotable-verify-") as folder:
        return restore_file(location, Path(folder, "verify.db"), at=at, progress=progress)


def _rebuild(archive: Archive, file: IO[bytes], at: float | None, progress: Progress | None) -> Restored:
    until = None if at is None else int(at * 1_000_000)
    snapshot = find_snapshot(archive, until)
    archive.unpack_snapshot(snapshot, file)
    applied = snapshot
    waiting: list[RecordHeader] = []
    for header in archive.chain(snapshot, until):
        waiting.append(header)
        # The parts of a large transaction are applied together or not at all.
        if not header.complete:
            continue
        for each in waiting:
            _apply(archive, each, file)
        waiting.clear()
        file.truncate(header.pages * header.page_size)
        applied = header
        if progress is not None:
            progress(header.sequence - snapshot.sequence)
    return Restored(
        generation=applied.generation,
        sequence=applied.sequence,
        micros=applied.micros,
        bytes=applied.pages * applied.page_size,
    )


def _apply(archive: Archive, header: RecordHeader, file: IO[bytes]) -> None:
    found, pages = archive.read_segment(header.generation, header.sequence)
    if found.digest != header.digest:
        name = segment_name(header.generation, header.sequence)
        raise DamagedBackup(f"{name} changed while it was read.", file=name)
    for number, content in pages:
        file.seek((number - 1) * header.page_size)
        file.write(content)


def _check(path: Path, generation: str) -> None:
    """Raise DamagedBackup if SQLite finds the file damaged."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = str(error)
    if found != "ok":
        raise DamagedBackup(f"The restored database is damaged: {found}.", file=generation)
