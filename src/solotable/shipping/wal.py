"""Read the committed pages of SQLite's write-ahead log, beside the connections that write it.

The log's index says which frames are committed. Its file is opened once a process and never closed: closing
a descriptor would drop the locks that SQLite holds on it. This module takes no lock and writes nothing.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from solotable.errors import EngineError

#: The header of the log's index: two equal copies, in the byte order of the machine.
_INDEX: Final = struct.Struct("=4I")
_INDEX_BYTES: Final = 48
_INDEX_VERSION: Final = 3007000
_LOG_HEADER: Final = 32
_FRAME: Final = struct.Struct(">6I")
_ATTEMPTS: Final = 100


class LogDiscontinuity(EngineError):
    """The log does not continue where the last segment ended; a new generation has to begin."""


#: The index files of this process, by device and inode.
_indexes: dict[tuple[int, int], int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """The last committed frame of a log. Both salts change when the log starts over."""

    salts: tuple[int, int]
    frame: int
    #: The checksum of the frame, which depends on all frames before it.
    checksum: tuple[int, int]
    #: The size of the database in pages.
    pages: int
    page_size: int


def read_position(path: str) -> LogPosition:
    """Return the last committed frame of the log of a database that a connection of this process has open."""
    descriptor = _open_index(f"{path}-shm")
    for _ in range(_ATTEMPTS):
        raw = os.pread(descriptor, 2 * _INDEX_BYTES, 0)
        first, second = raw[:_INDEX_BYTES], raw[_INDEX_BYTES:]
        # A writer changes one copy after the other, so equal copies with a right checksum are consistent.
        if first == second and len(second) == _INDEX_BYTES and _is_valid(first):
            return _parse_position(first)
    raise EngineError(f"{path}-shm has no valid header; is the database in use by another version of SQLite?")


def read_frames(path: str, position: LogPosition, *, after: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number and content of each page in the frames after one, up to a position.

    The caller holds a read transaction that keeps these frames in the log.
    """
    size = _FRAME.size + position.page_size
    with Path(f"{path}-wal").open("rb") as log:
        log.seek(_LOG_HEADER + after * size)
        commit = checksum = None
        for number in range(after + 1, position.frame + 1):
            frame = log.read(size)
            if len(frame) < size:
                raise EngineError(
                    f"{path}-wal ends before frame {number:,}; it was changed by another program."
                )
            page, commit, *salts, first, second = _FRAME.unpack_from(frame)
            if tuple(salts) != position.salts:
                raise LogDiscontinuity(f"{path}-wal has another frame {number:,} than its index says.")
            checksum = (first, second)
            yield page, frame[_FRAME.size :]
    if position.frame > after and (commit != position.pages or checksum != position.checksum):
        raise LogDiscontinuity(f"{path}-wal, frame {position.frame:,} is not the commit that its index says.")


def frame_checksum(path: str, frame: int, page_size: int) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the salts and the checksum of a frame, committed or not; None without the frame."""
    try:
        with Path(f"{path}-wal").open("rb") as log:
            log.seek(_LOG_HEADER + (frame - 1) * (_FRAME.size + page_size))
            raw = log.read(_FRAME.size)
    except FileNotFoundError:
        return None
    if len(raw) < _FRAME.size:
        return None
    _, _, one, two, first, second = _FRAME.unpack(raw)
    return (one, two), (first, second)


def _open_index(path: str) -> int:
    found = os.stat(path)  # noqa: PTH116 - the identity of the file, not its path
    identity = (found.st_dev, found.st_ino)
    if identity not in _indexes:
        _indexes[identity] = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    return _indexes[identity]


def _is_valid(header: bytes) -> bool:
    version, _, _, flags = struct.unpack_from("=4I", header)
    is_initialised = flags.to_bytes(4, "little" if struct.pack("=H", 1) == b"\1\0" else "big")[0]
    return (
        version == _INDEX_VERSION
        and bool(is_initialised)
        and _checksum(header[:40]) == struct.unpack("=2I", header[40:])
    )


def _checksum(data: bytes) -> tuple[int, int]:
    """Return SQLite's checksum of the index header, which is in the byte order of the machine."""
    first = second = 0
    words = struct.unpack(f"={len(data) // 4}I", data)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


def _parse_position(header: bytes) -> LogPosition:
    (page_size,) = struct.unpack_from("=H", header, 14)
    frame, pages, first, second = struct.unpack_from("=4I", header, 16)
    salts = struct.unpack_from(">2I", header, 32)
    return LogPosition(
        salts=salts,
        frame=frame,
        checksum=(first, second),
        pages=pages,
        page_size=page_size if page_size > 1 else 65536,
    )
