"""Digests of items, and sums of digests by the key: equal sums mean equal items, in constant memory."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from hashlib import blake2b

from solotable._protocol.json_codec import sorted_dumps
from solotable._values import Item
from solotable._values.checksum import crc32
from solotable.migrations.mapping import OutputKey

_BITS = 64
_LIMIT = 1 << _BITS
_BUCKETS = 1 << 20


def key_bytes(table: str, names: Iterable[str], item: Item) -> bytes:
    """Return the identity of an item: its table and its key."""
    text = table
    for name in names:
        for kind, content in item[name].items():
            text = f"{text}\0{kind}:{content}"
    return text.encode()


def bytes_of_key(key: OutputKey) -> bytes:
    """Return the same identity of an output, from its key in `Outputs`."""
    return "\0".join(key).encode()


def digest(item: Item) -> int:
    """Return a digest of an item or of some of its attributes, whose order does not matter."""
    return int.from_bytes(blake2b(sorted_dumps(item), digest_size=8).digest(), "big")


def sum_of_attributes(item: Item, names: AbstractSet[str]) -> int:
    """Return the sum of a digest for each of these attributes, so that parts of an item add up."""
    return sum(digest({name: item[name]}) for name in names if name in item) % _LIMIT


class BucketSums:
    """The sum of the digests of one side minus those of the other one, for each bucket of keys."""

    def __init__(self, content: bytes | None = None) -> None:
        self._sums = array("Q", bytes(8 * _BUCKETS) if content is None else content)
        if content is not None and sys.byteorder == "big":
            self._sums.byteswap()

    @staticmethod
    def bucket_of(key: bytes) -> int:
        """Return the bucket of a key."""
        return crc32(key) & (_BUCKETS - 1)

    def add(self, key: bytes, value: int) -> None:
        """Add the digest of an item of the one side."""
        sums, at = self._sums, crc32(key) & (_BUCKETS - 1)
        sums[at] = (sums[at] + value) % _LIMIT

    def subtract(self, key: bytes, value: int) -> None:
        """Subtract the digest of an item of the other side."""
        sums, at = self._sums, crc32(key) & (_BUCKETS - 1)
        sums[at] = (sums[at] - value) % _LIMIT

    def unequal(self) -> set[int]:
        """Return the buckets in which the sides differ."""
        if not any(self._sums):
            return set()
        return {at for at, total in enumerate(self._sums) if total}

    def to_bytes(self) -> bytes:
        """Return the sums for a state file."""
        if sys.byteorder == "little":
            return self._sums.tobytes()
        swapped = array("Q", self._sums)
        swapped.byteswap()
        return swapped.tobytes()
