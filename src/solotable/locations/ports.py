"""What a location and a bucket can do, and which names they accept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any, Protocol

from solotable.errors import DataError

#: What a file may be called: no empty part, no part of dots only, no backslash.
_PART = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9!_.*'() =-]+")


class Location(Protocol):
    """A place that holds files by name."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading; raise FileNotFoundError if it does not exist."""
        ...

    def create(self, name: str, *, replace: bool = True) -> Any:
        """Return a context with a writable file, which exists under its name once the context ends.

        Without `replace`, the end of the context raises FileExistsError if another file has the name.
        """
        ...

    def delete(self, name: str) -> None:
        """Delete a file; one that does not exist is not an error."""
        ...

    def delete_leftovers(self, *, older_than_seconds: float) -> None:
        """Delete the parts of files whose writers were killed."""
        ...

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names of the files and folders directly in a folder."""
        ...

    def find(self, prefix: str) -> Iterator[str]:
        """Yield the names of all files that begin with a prefix, in order."""
        ...

    def below(self, prefix: str) -> Location:
        """Return the location of a folder."""
        ...


class Buckets(Protocol):
    """The buckets that an engine exports to and imports from."""

    #: Whether a file is written without a network.
    is_local: bool

    def open_bucket(self, name: str) -> Location:
        """Return the location of a bucket; raise FileNotFoundError if it does not exist."""
        ...


def checked(name: str) -> tuple[str, ...]:
    """Return the parts of a name, or raise DataError if it could leave its location."""
    parts = tuple(name.split("/"))
    if not all(_PART.fullmatch(part) for part in parts):
        raise DataError(f"{name!r} is not the name of a file below a location.")
    return PurePosixPath(*parts).parts
