"""Locations and buckets in the file system."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from solotable.errors import DataError

from .ports import checked


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
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Return a context with a new file, which replaces one of its name once it is complete."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:64]}-{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def delete(self, name: str) -> None:
        """Delete a file, and folders that it leaves empty."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        for parent in path.parents[: len(checked(name)) - 1]:
            try:
                parent.rmdir()
            except OSError:
                return

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


def _sync(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder, and renames are durable.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
