"""Shards: one partition as it is declared, kept as several, so that no single one takes all the traffic.

The shard of an item follows from the item alone, so every write and every get derives it. Nothing is
drawn by lot, and no shard is remembered anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

FEWEST, MOST = 2, 100
#: 2**32 by the golden ratio: spreads neighbours, and carries every bit of a CRC into the upper ones.
_GOLDEN = 0x9E3779B1


def shard_of(text: str, shards: int) -> int:
    """Return the shard of a text: CRC-32, mixed, and scaled to the number of shards.

    >>> shard_of("o1", 8), shard_of("o2", 8)
    (5, 2)
    """
    # The plain remainder of a CRC is uneven where ids differ in few bits.
    return ((crc32(text.encode()) * _GOLDEN & 0xFFFFFFFF) * shards) >> 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the items of a partition are spread over its shards."""

    where: str
    shards: int
    #: How many shards there were before; items that were not rewritten yet may still lie there.
    was: int | None
    #: The fields that say which shard, each with how it becomes text.
    by: tuple[tuple[str, Callable[[Any], str]], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that say which shard."""
        return tuple(name for name, _ in self.by)

    def placed(self, text: str, values: Mapping[str, Any]) -> str:
        """Return the text of the partition that an item with these values lies in."""
        missing = [name for name in self.fields if name not in values]
        if missing:
            raise DataError(
                f"{self.where} is spread over {self.shards} shards by {' and '.join(self.fields)}; without "
                f"{' and '.join(missing)} it is no single partition: query it, or declare shard_by= with "
                f"fields that are given."
            )
        return text + self._suffix(values, self.shards)

    def texts(self, text: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return every partition in which items with these arguments may lie, in the order of the shards."""
        counts = [self.shards] if self.was is None else [self.shards, self.was]
        if all(name in arguments for name in self.fields):
            return tuple(dict.fromkeys(text + self._suffix(arguments, count) for count in counts))
        plain = [text] if self.was == 1 else []
        return (*plain, *(f"{text}#{number:02d}" for number in range(max(counts))))

    def _suffix(self, values: Mapping[str, Any], count: int) -> str:
        if count == 1:
            return ""
        return f"#{shard_of('#'.join(encode(values[name]) for name, encode in self.by), count):02d}"


def judge_counts(where: str, shards: int, was: int | None) -> None:
    """Refuse numbers of shards that cannot be."""
    if not FEWEST <= shards <= MOST:
        raise DeclarationError(
            f"{where}: shards={shards}; a key has {FEWEST} to {MOST} shards, or none: leave shards= out."
        )
    if was is not None and (not 1 <= was <= MOST or was == shards):
        raise DeclarationError(
            f"{where}: was={was} is the number of shards before, another one than shards={shards}; "
            f"was=1 says that there were none."
        )
