"""The errors of SQLite as errors of the engine; no other module maps them."""

from __future__ import annotations

import os
import sqlite3

from solotable.errors import Corrupt, EngineError, FileLocked, NotOurFile, ReadOnly, StorageFull

_FULL = {sqlite3.SQLITE_FULL}
_READ_ONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class StaleDefinition(EngineError):
    """A SQLite table is missing: its definition has changed. Read the definition again and retry."""


def describe(
    fault: sqlite3.Error, path: str, lock_timeout_seconds: float, *, committing: bool
) -> EngineError:
    """Return the EngineError for an error of SQLite."""
    code = primary_code(fault)
    if code == sqlite3.SQLITE_IOERR and committing:
        # The log may hold the whole transaction, and a recovery after a crash may find it there.
        return EngineError(f"{path}: {fault}; it is not known whether the write was committed.")
    # By the text alone: with many threads, SQLite has returned another code.
    if str(fault).startswith("no such table"):
        return StaleDefinition(f"{path}: {fault}")
    if code in _FULL:
        return StorageFull(f"{path}: no space left for the write; it was rolled back.")
    if code in _READ_ONLY:
        return ReadOnly(f"{path} cannot be written: {fault}.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return EngineError(f"{path} cannot be opened: {_no_descriptors() or fault}.")
    if code == sqlite3.SQLITE_NOTADB:
        return NotOurFile(f"{path} is not a solotable database; nothing was changed.")
    if code in _DAMAGED:
        return Corrupt(f"{path} is damaged: {fault}. Restore a backup.")
    if code == sqlite3.SQLITE_BUSY:
        return FileLocked(
            f"{path}: another program has held SQLite's lock for over "
            f"{lock_timeout_seconds:.0f} s. Nothing was written."
        )
    return EngineError(f"{path}: {fault}")


def _no_descriptors() -> str | None:
    """Return the system's error if this process cannot open any file; SQLite does not report it."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as fault:
        return fault.strerror
    return None


def primary_code(fault: sqlite3.Error) -> int:
    """Return SQLite's primary result code."""
    return int(getattr(fault, "sqlite_errorcode", 0)) & 0xFF
