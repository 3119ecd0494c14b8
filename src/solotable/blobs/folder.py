"""A storage in a folder: one file for each object."""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from solotable._entities.declare.field_storage import StoredObject
from solotable.errors import DataError

from .blocking import BlockingStorage

if sys.platform != "win32":
    import fcntl

_SAFE_NAME = re.compile(r"[A-Za-z0-9_%~-]+(/[A-Za-z0-9_%~-]+)*")
#: Files that are being written or deleted; no object has such a name.
_TEMPORARY = "."
#: The end of the name of a file that is being deleted.
_DELETED = "~"
#: A write takes less: the file was left by a process that was killed.
_ABANDONED_SECONDS = 7 * 86_400


class FolderStorage(BlockingStorage):
    """Stores objects as files below a folder, which is created on the first write.

    A file is written beside its place, synced and renamed, so that a reader never sees a part of it. A file
    is renamed before it is deleted. What a process leaves that is killed in between, the next `list` finds
    or removes. The media type is not stored; the item has it.

    No operation waits for another process. Two processes do not delete the same file at once: the second one
    leaves it to the first.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._root = Path(folder).absolute()

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""
        path = self._path(name)
        # A deletion renames the file, and may rename it back.
        for each in (path, _deleted(path), path):
            with suppress(FileNotFoundError):
                return each.read_bytes()
        return None

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object durably, or replace it."""
        path = self._path(name)
        self._make_folder(path.parent)
        temporary = _beside(path)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _deleted(path).unlink(missing_ok=True)
        _sync_folder(path.parent)

    def touch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object to now; return whether it exists."""
        path = self._path(name)
        while True:
            with suppress(FileNotFoundError):
                os.utime(path)
                return True
            try:
                # A deletion is at work on it, or was killed: the object is in use again.
                _deleted(path).replace(path)
            except FileNotFoundError:
                return False

    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Delete an object unless it was stored or touched after a time; return whether it was deleted."""
        path, limit = self._path(name), unless_modified_after.timestamp()
        # Under the second name, a deletion was killed after it had renamed the file.
        for found in (path, _deleted(path)):
            with suppress(FileNotFoundError), _deletion_lock(found) as is_locked:
                return is_locked and _delete_aside(path, limit)
        return False

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose names start with a prefix, which is empty or ends with a slash."""
        start = self._path(prefix.rstrip("/")) if prefix else self._root
        abandoned = time.time() - _ABANDONED_SECONDS
        for folder, folders, files in os.walk(start):
            folders.sort()
            for each in sorted(files):
                path = Path(folder, each)
                with suppress(FileNotFoundError):
                    found = path.stat()
                    if each.startswith(_TEMPORARY) and each.endswith(_DELETED):
                        path = path.with_name(each[1:-1])
                    elif each.startswith(_TEMPORARY):
                        if found.st_mtime < abandoned:
                            path.unlink()
                        continue
                    modified = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield StoredObject(path.relative_to(self._root).as_posix(), found.st_size, modified)

    def _path(self, name: str) -> Path:
        if _SAFE_NAME.fullmatch(name) is None:
            raise DataError(f"An object's name has letters, digits and %_~-/, got {name!r}.")
        return self._root.joinpath(*name.split("/"))

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _beside(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY}{path.name[:32]}-{secrets.token_hex(8)}")


def _deleted(path: Path) -> Path:
    return path.with_name(f"{_TEMPORARY}{path.name}{_DELETED}")


def _delete_aside(path: Path, limit: float) -> bool:
    """Rename a file and delete it, unless it is newer than a limit; return whether it was deleted."""
    aside = _deleted(path)
    with suppress(FileNotFoundError):
        if path.stat().st_mtime > limit:
            return False
        path.replace(aside)
    try:
        # Check again under the other name, at which a writer does not set the time.
        if aside.stat().st_mtime > limit:
            aside.replace(path)
            return False
        aside.unlink()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _deletion_lock(path: Path) -> Iterator[bool]:
    """Yield whether this process may delete a file; raise FileNotFoundError if it does not exist.

    With two deletions at once, one could delete under the second name what a writer has touched since the
    other checked it. The lock is on the file itself, under either name; the kernel releases it with the
    process.
    """
    if sys.platform == "win32":
        yield True  # Windows cannot rename a file that is open.
        return
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        is_locked = True
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_locked = False
        yield is_locked
    finally:
        os.close(opened)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder, and renames are durable.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
