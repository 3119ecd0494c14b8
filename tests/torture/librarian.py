"""Stores books with offloaded texts, or collects unused texts, until it is done or killed.

Run as `python -m tests.torture.librarian write|collect FILE FOLDER SEED`; it stops after each step until it
is released: after a text was stored, after an item was written, and in the middle of a deletion.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from solotable import Blob, Database, Entity, Key, Offloaded, Table
from solotable.blobs import FolderStorage
from solotable.errors import StoredDataError
from solotable.jobs.collect_blobs import collect_blobs
from tests.killing import step, tell

library = Table("Library")
BOOKS = 5
TEXTS = 12
GRACE = timedelta(hours=1)


class Shelf(FolderStorage):
    """A folder whose path and steps a program sets."""

    def __init__(self) -> None:
        super().__init__("unused")
        self.step: Callable[[str], None] = lambda _: None

    def use(self, folder: str) -> None:
        """Store the objects below this folder."""
        super().__init__(folder)

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object, and stop."""
        super().put(name, data, media_type)
        self.step("stored")

    def touch(self, name: str, media_type: str | None) -> bool:
        """Touch an object, and stop."""
        found = super().touch(name, media_type)
        self.step("touched")
        return found


shelf = Shelf()


class Book(Entity, table=library):
    """A book."""

    key = Key("BOOK#{number:04d}", "BOOK")
    number: int
    text: Annotated[Blob, Offloaded(shelf, inline_bytes=10)]


def text_of(number: int) -> bytes:
    """Return one of the texts."""
    return f"text {number} ".encode() * 200


def opened(path: str, folder: str) -> Database:
    """Open a library."""
    shelf.use(folder)
    return library.open(f"sqlite:///{path}")


def age(folder: Path) -> None:
    """Make every stored text older than the grace period."""
    old = time.time() - 2 * GRACE.total_seconds()
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                os.utime(path, (old, old))


def write(db: Database, dice: random.Random) -> None:
    """Write books for ever: new texts, texts that were used before, and references of other books."""
    while True:
        number = dice.randrange(BOOKS)
        other = db.get(Book, number=dice.randrange(BOOKS))
        if other is not None and dice.random() < 0.4:
            # A text that the collector has deleted since is an error, and no book refers to it.
            with suppress(StoredDataError):
                db.put(Book(number=number, text=other.text))
        elif dice.random() < 0.1:
            db.delete(Book, number=number)
        else:
            db.put(Book(number=number, text=Blob(text_of(dice.randrange(TEXTS)))))
        step("written")


def collect(db: Database) -> None:
    """Collect unused texts, and stop after each page and in the middle of each deletion."""
    unlink = Path.unlink

    def stopping(path: Path, missing_ok: bool = False) -> None:
        if not missing_ok:
            step("deleting")
        unlink(path, missing_ok)

    Path.unlink = stopping  # type: ignore[method-assign,assignment] # a step in FolderStorage.delete
    report = collect_blobs(
        db.admin(), budget=1_000_000, grace=GRACE, allow_all=True, progress=lambda _: step("collecting")
    )
    tell(f"done {report.deleted}")


if __name__ == "__main__":
    kind, path, folder, seed = sys.argv[1:]
    with opened(path, folder) as db:
        step("begun")
        if kind == "write":
            shelf.step = step
            write(db, random.Random(int(seed)))
        else:
            collect(db)
