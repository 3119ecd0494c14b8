"""A spool: bytes that a build puts aside on disk, in a file without a name.

A file without a name disappears with its process, so a worker that is killed leaves nothing behind.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes in a spool."""

    offset: int
    size: int
    #: Of the bytes, with SHA-256.
    digest: str


class Spool:
    """Keeps bytes of any length; memory holds only where they are."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="solotable-build-")  # noqa: SIM115 - closed by __exit__
        self._end = 0

    def add(self, data: bytes) -> Piece:
        """Append bytes, and return where they are."""
        self._file.seek(self._end)
        self._file.write(data)
        piece = Piece(self._end, len(data), hashlib.sha256(data).hexdigest())
        self._end += len(data)
        return piece

    def read(self, piece: Piece) -> bytes:
        """Return the bytes of a piece."""
        self._file.seek(piece.offset)
        return self._file.read(piece.size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
