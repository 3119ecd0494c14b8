"""Locations and buckets in the file system."""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from solotable.errors import DataError

from .ports import checked

#: The name of a file that is being written; see `create`.
_TEMPORARY = re.compile(r"\..+-[0-9a-f]{8}")


class FolderLocation:
    """The files below a folder. A file is written beside its place, synced and renamed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._root = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self._root)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        path = self._path(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        return os.fdopen(descriptor, "rb")

    @contextmanager
    def create(self, name: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """Return a context with a new file, which replaces one of its name once it is complete."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:64]}-{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if replace:
                temporary.replace(path)
            else:
                _rename_new(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def delete(self, name: str) -> None:
        """Delete a file, and folders that it leaves empty."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        _remove_empty(Path(*checked(name)), self._root)

    def delete_leftovers(self, *, older_than_seconds: float) -> None:
        """Delete the parts of files whose writers were killed, and folders that this leaves empty."""
        latest = time.time() - older_than_seconds
        for folder, _, files in os.walk(self._root):
            for each in files:
                path = Path(folder, each)
                # Another process may delete them at the same time.
                with suppress(FileNotFoundError):
                    if _TEMPORARY.fullmatch(each) and path.lstat().st_mtime < latest:
                        path.unlink()
                        _remove_empty(path.relative_to(self._root), self._root)

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; none if the folder does not exist."""
        path = self._path(folder) if folder else self._root
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from sorted(each.name for each in path.iterdir() if not each.name.startswith("."))

    def below(self, prefix: str) -> FolderLocation:
        """Return the location of a folder."""
        name = prefix.strip("/")
        return FolderLocation(self._path(name)) if name else self

    def find(self, prefix: str) -> Iterator[str]:
        """Yield the names that begin with a prefix; links and hidden files are left out."""
        found = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [each for each in folders if not each.startswith(".")]
            for each in files:
                path = Path(folder, each)
                name = path.relative_to(self._root).as_posix()
                if name.startswith(prefix) and not each.startswith(".") and not path.is_symlink():
                    found.append(name)
        yield from sorted(found)

    def _path(self, name: str) -> Path:
        return self._root.joinpath(*checked(name))


class FolderBuckets:
    """Buckets as folders directly below another folder; create a bucket with mkdir."""

    is_local = True

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._root = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self._root)

    def open_bucket(self, name: str) -> FolderLocation:
        """Return the location of a bucket."""
        path = self._root.joinpath(*checked(name)[:1])
        if "/" in name or path.is_symlink() or not path.is_dir():
            raise FileNotFoundError(str(path))
        return FolderLocation(path)


def _rename_new(source: Path, target: Path) -> None:
    """Rename a file, or raise FileExistsError if the name is taken."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        # This file system has no links.
        if target.exists():
            raise FileExistsError(str(target)) from None
        source.replace(target)
        return
    source.unlink()


def _remove_empty(path: Path, root: Path) -> None:
    """Remove the folders of a file below a root that are empty."""
    for parent in path.parents[:-1]:
        try:
            root.joinpath(parent).rmdir()
        except OSError:
            return


def _sync(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder, and renames are durable.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
