"""The files of a shipped backup: segments with changed pages, and snapshots of the whole database.

A record is a line of JSON, its SHA-256, and a payload. Every segment has the digest of the one before it, so
that a missing, changed or misplaced file is found. This module does no I/O.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self

from solotable.errors import DamagedBackup

from .wal import LogPosition

VERSION: Final = 1
_PAGE_NUMBER: Final = struct.Struct(">I")
_LONGEST_HEADER: Final = 64 * 1024
_LEVEL: Final = 1
#: SQLite's sizes of a page.
_PAGE_SIZES: Final = {2**power for power in range(9, 17)}
#: The most that a segment may unpack to.
LARGEST_SEGMENT: Final = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHeader:
    """What the header of a segment or snapshot says."""

    generation: str
    #: The number of the segment; of a snapshot, that of the last segment it includes.
    sequence: int
    #: Microseconds since the epoch at which the pages were read: all of them were committed before.
    micros: int
    #: The last frame of the log that it includes.
    salts: tuple[int, int]
    frame: int
    checksum: tuple[int, int]
    #: The size of the database in pages, and of a page in bytes.
    pages: int
    page_size: int
    #: Whether the database is consistent after this segment; a large transaction takes several.
    complete: bool
    #: The SHA-256 of the payload, as it is stored.
    payload: str
    #: The digest of the segment before; of a snapshot, of the last segment that it includes.
    previous: str

    @property
    def position(self) -> LogPosition:
        """The position in the log of the database that was shipped."""
        return LogPosition(
            salts=self.salts,
            frame=self.frame,
            checksum=self.checksum,
            pages=self.pages,
            page_size=self.page_size,
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the header, and so of all that it has the digests of."""
        return digest(self._line())

    def render(self) -> bytes:
        """Return the header: a line of JSON, and a line with its SHA-256."""
        return self._line() + b"\n" + self.digest.encode() + b"\n"

    def _line(self) -> bytes:
        return json.dumps({"version": VERSION, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, content: bytes, file: str) -> tuple[Self, bytes]:
        """Return the header of a record and its payload, or raise DamagedBackup."""
        line, _, rest = content[:_LONGEST_HEADER].partition(b"\n")
        check, separator, _ = rest.partition(b"\n")
        if not separator or digest(line).encode() != check:
            raise DamagedBackup(f"{file} does not match its checksum.", file=file)
        return cls._of(json.loads(line), file), content[len(line) + len(check) + 2 :]

    @classmethod
    def _of(cls, members: Any, file: str) -> Self:
        version = members.pop("version", None) if isinstance(members, dict) else None
        if type(version) is int and version > VERSION:
            raise DamagedBackup(f"{file} is of a newer version of solotable; upgrade to read it.", file=file)
        try:
            found = cls(**{**members, "salts": (*members["salts"],), "checksum": (*members["checksum"],)})
        except (TypeError, KeyError):
            found = None
        if found is None or version != VERSION or not found._is_plausible():
            raise DamagedBackup(f"{file} has a header that solotable did not write.", file=file)
        return found

    def _is_plausible(self) -> bool:
        numbers: tuple[Any, ...] = (
            *self.salts,
            *self.checksum,
            self.sequence,
            self.micros,
            self.frame,
            self.pages,
        )
        texts: tuple[Any, ...] = (self.generation, self.payload, self.previous)
        return (
            len(numbers) == 8
            and all(type(each) is int and each >= 0 for each in numbers)
            and self.page_size in _PAGE_SIZES
            and all(type(each) is str for each in texts)
        )


def digest(data: bytes) -> str:
    """Return the SHA-256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def pack_pages(pages: Mapping[int, bytes]) -> bytes:
    """Return the payload of a segment: compressed pages, each after its number."""
    packer = zlib.compressobj(_LEVEL)
    parts = [packer.compress(_PAGE_NUMBER.pack(number) + pages[number]) for number in sorted(pages)]
    return b"".join([*parts, packer.flush()])


def unpack_pages(header: RecordHeader, payload: bytes, file: str) -> list[tuple[int, bytes]]:
    """Return the pages of a segment, or raise DamagedBackup."""
    if digest(payload) != header.payload:
        raise DamagedBackup(f"{file} does not match its checksum.", file=file)
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(payload, LARGEST_SEGMENT)
    except zlib.error as error:
        raise DamagedBackup(f"{file} cannot be unpacked: {error}.", file=file) from error
    if not unpacker.eof:
        raise DamagedBackup(f"{file} is cut, or unpacks to over {LARGEST_SEGMENT:,} bytes.", file=file)
    step = _PAGE_NUMBER.size + header.page_size
    if len(raw) % step:
        raise DamagedBackup(f"{file} has a part of a page.", file=file)
    pages = [
        (_PAGE_NUMBER.unpack_from(raw, at)[0], raw[at + _PAGE_NUMBER.size : at + step])
        for at in range(0, len(raw), step)
    ]
    if any(number == 0 for number, _ in pages):
        raise DamagedBackup(f"{file} has a page 0.", file=file)
    return pages
