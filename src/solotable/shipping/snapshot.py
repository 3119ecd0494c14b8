"""Make a snapshot of a database as of a read transaction, and store it."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sqlite3
import tempfile
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from .archive import Archive
from .records import RecordHeader


class SnapshotThread(threading.Thread):
    """Makes a snapshot of the database as of a read transaction, while segments are shipped."""

    def __init__(self, archive: Archive, header: RecordHeader, reader: sqlite3.Connection) -> None:
        super().__init__(name="solotable-snapshot", daemon=True)
        self.header = header
        self.reader = reader
        self.error: Exception | None = None
        self._archive = archive
        self.start()

    def run(self) -> None:
        try:
            store_snapshot(self._archive, self.header, self.reader)
        except Exception as error:  # noqa: BLE001 - the shipper raises it
            self.error = error


def store_snapshot(archive: Archive, header: RecordHeader, reader: sqlite3.Connection) -> RecordHeader:
    """Copy the database as a read transaction sees it, and store the copy."""
    with tempfile.TemporaryDirectory(prefix="solotable-snapshot-") as folder:
        copy, packed = Path(folder, "copy.db"), Path(folder, "copy.db.gz")
        with closing(sqlite3.connect(copy)) as target:
            reader.backup(target)
        with copy.open("rb") as source, gzip.GzipFile(packed, "wb", 1, mtime=0) as file:
            shutil.copyfileobj(source, file, 2**20)
        size = copy.stat().st_size
        copy.unlink()
        with packed.open("rb") as file:
            payload = hashlib.file_digest(file, "sha256").hexdigest()
        stored = replace(header, pages=size // header.page_size, payload=payload, complete=True)
        archive.write_snapshot(stored, packed)
    return stored


def connect(path: str) -> sqlite3.Connection:
    """Open a database that exists."""
    return sqlite3.connect(
        f"{Path(path).as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
