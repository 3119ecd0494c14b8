"""Rows of `changes`: their flags, their checksum, and what they contain.

A file of an older layout has rows whose checksum covers the images alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from solotable._values.checksum import crc32
from solotable.errors import Corrupt

#: Flags in the column `by_service`: DynamoDB itself made the change, as a time to live does; no stream has
#: it, and it has a checksum instead of the new image; the row's checksum covers all members.
BY_SERVICE, UNSTREAMED, COVERED = 1, 2, 4
#: Changes that a stream may have; the condition of the partial index `changes_by_stream`.
STREAMED_SQL = "(by_service & 2) = 0"
#: The columns of `decode_change`.
COLUMNS = "sequence, stream, at_micros, by_service, key, old, new, crc"


class Change(NamedTuple):
    """A change of an item; `old` is its JSON before, or None without an item."""

    sequence: int
    stream: str
    at_micros: int
    flags: int
    key: bytes
    old: bytes | None
    #: The JSON after the change, or its digest if no stream has the change.
    new: bytes | None

    @property
    def is_empty(self) -> bool:
        """Whether pruning has left only the sequence number."""
        return self.old is None and self.new is None

    def leads_to(self, digest: int | None) -> bool:
        """Say whether the item after the change has this `image_checksum`; None for no item."""
        if self.new is None or digest is None:
            return self.new is None and digest is None
        if self.flags & UNSTREAMED:
            return int.from_bytes(self.new, "big") == digest
        return image_checksum(self.key, self.new) == digest


def decode_change(row: tuple[Any, ...]) -> Change:
    """Return the change of a row, or raise Corrupt if the row does not match its checksum."""
    sequence, stream, at_micros, flags, key, old, new, crc = row
    try:
        if flags & COVERED:
            expected = change_checksum(stream, at_micros, flags, key, old, new)
        else:
            expected = crc32(new or b"", crc32(old or b""))
        if expected == crc:
            return Change(sequence, stream, at_micros, flags, key, old, new)
    except (TypeError, AttributeError):
        # A damaged header makes SQLite read bytes as another type.
        pass
    raise Corrupt(f"The change record {sequence} does not match its checksum; it was not used.")


def change_checksum(
    stream: str, at_micros: int, flags: int, key: bytes, old: bytes | None, new: bytes | None
) -> int:
    """Return the checksum of a row."""
    # Numbers start the checksum instead of being formatted: it is part of every recorded write.
    start = _stream_checksum(stream) ^ (at_micros & 0xFFFFFFFF) ^ (at_micros >> 32) ^ (flags << 24)
    start = crc32(key, start & 0xFFFFFFFF)
    # An empty image is not an absent one.
    return crc32(b"-" if new is None else new, crc32(b"-" if old is None else old, start))


@lru_cache(maxsize=256)
def _stream_checksum(stream: str) -> int:
    return crc32(stream.encode())


def image_checksum(key: bytes, raw: bytes) -> int:
    """Return the checksum of an item, as its row has it and as a change has it of a new image."""
    return crc32(raw, crc32(key))
