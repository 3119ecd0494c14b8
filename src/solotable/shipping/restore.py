"""Restore a database file from a location, or verify that it can be done."""

from __future__ import annotations

import glob
import os
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from solotable.engines.sqlite.file.file_lock import try_lock
from solotable.errors import DamagedBackup, DataError
from solotable.locations import Location

from .archive import Archive, find_snapshot, newest_header, segment_name
from .records import RecordHeader

#: A restore locks its temporary file, which says that its process lives. On Windows the lock would keep
#: SQLite from reading the file.
_CAN_LOCK: Final = os.name != "nt"
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
    clock: Callable[[], float] = time.time,
) -> Restored:
    """Restore the newest state at a location, or the newest before `at`, to a file that does not exist.

    `at` is in seconds since the epoch. The file appears under its name once it is complete and checked.
    """
    path = Path(target)
    # First: a restore that was killed at its end left the whole file under two names.
    _delete_leftovers(path)
    if taken := [each for each in _with_logs(path) if os.path.lexists(each)]:
        raise DataError(f"{taken[0]} exists; restore to another name, or remove it first.")
    archive = Archive(location)
    # The clock of the machine that ships may be ahead.
    if at is not None and not at <= max(clock(), newest_header(archive).micros / 1_000_000):
        raise DataError(f"at={at} is in the future; leave it out to restore the newest state.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b") as file:
            if _CAN_LOCK:
                try_lock(file.fileno())
            restored = _rebuild(archive, file, at, progress)
            file.flush()
            os.fsync(file.fileno())
            _check(temporary, restored.generation)
            os.link(temporary, path)  # fails if the name was taken in between
    finally:
        for each in _with_logs(temporary):
            each.unlink(missing_ok=True)
    return restored


def _with_logs(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm", "journal"))]


def _delete_leftovers(path: Path) -> None:
    """Delete the files of restores to the same name that were killed: those that no process has locked."""
    if not _CAN_LOCK:
        return
    for each in path.parent.glob(f".{glob.escape(path.name)}-????????"):
        with suppress(OSError), each.open("rb") as file:
            if try_lock(file.fileno()):
                for leftover in _with_logs(each):
                    leftover.unlink(missing_ok=True)


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
