"""Sharding: store one declared partition as several. An item's shard depends only on its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

FEWEST, MOST = 2, 100
#: 2**32 divided by the golden ratio; the product mixes every bit of a CRC into the upper bits.
_GOLDEN = 0x9E3779B1


def shard_of(text: str, shards: int) -> int:
    """Return the shard of a text: CRC-32, mixed, and scaled to the number of shards.

    >>> shard_of("o1", 8), shard_of("o2", 8)
    (5, 2)
    """
    # The plain remainder of a CRC is uneven for ids that differ in few bits.
    return ((crc32(text.encode()) * _GOLDEN & 0xFFFFFFFF) * shards) >> 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """The shards of a partition key, and the fields that choose one."""

    where: str
    shards: int
    #: The previous number of shards; items that were not rewritten since are still in those.
    was: int | None
    #: The fields that choose the shard, each with the function that encodes it to text.
    by: tuple[tuple[str, Callable[[Any], str]], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that choose the shard."""
        return tuple(name for name, _ in self.by)

    def partition_of(self, text: str, values: Mapping[str, Any]) -> str:
        """Return the partition key of an item with these values; `text` is the key without its shard."""
        missing = [name for name in self.fields if name not in values]
        if missing:
            raise DataError(
                f"{self.where} has {self.shards} shards, chosen by {' and '.join(self.fields)}, but "
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; use a query, or "
                f"declare shard_by= with fields that you pass."
            )
        return text + self.suffix(values)

    def partitions(self, text: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return every partition key that items with these arguments may have, in the order of the shards."""
        counts = [self.shards] if self.was is None else [self.shards, self.was]
        if all(name in arguments for name in self.fields):
            return tuple(dict.fromkeys(text + self._suffix(arguments, count) for count in counts))
        unsharded = [text] if self.was == 1 else []
        return (*unsharded, *(f"{text}#{number:02d}" for number in range(max(counts))))

    def suffix(self, values: Mapping[str, Any]) -> str:
        """Return the end of the partition key of an item with these values, such as `#05`."""
        return self._suffix(values, self.shards)

    def _suffix(self, values: Mapping[str, Any], count: int) -> str:
        if count == 1:
            return ""
        return f"#{shard_of('#'.join(encode(values[name]) for name, encode in self.by), count):02d}"


def check_shard_counts(where: str, shards: int, was: int | None) -> None:
    """Reject impossible numbers of shards."""
    if not FEWEST <= shards <= MOST:
        raise DeclarationError(
            f"{where}: shards={shards}; a key has {FEWEST} to {MOST} shards. Remove shards= for a key "
            f"without shards."
        )
    if was is not None and (not 1 <= was <= MOST or was == shards):
        raise DeclarationError(
            f"{where}: was={was} must be the previous number of shards and differ from shards={shards}; "
            f"was=1 means that the key had no shards."
        )
