"""Token-bucket arithmetic in whole numbers: exact, and pure.

Time is a supply of credits. A limit that refills `refill` tokens per period gets `refill * 1000` credits per
microsecond, and a thousandth of a token costs as many credits as the period has microseconds. The only state
of a limit is how much of the supply is used: one integer, `used`.

    supply(now) = now * rate            credits since the epoch
    full(now)   = supply(now) - depth   `used` of a full bucket; a lower value counts as full
    available   = supply(now) - used    below zero: debt

Nothing is divided before a number of tokens is read, so no remainder is lost (C1.8). No limit has a refill
time that the write of another limit could move (C1.12). A clock that goes back only lowers the supply.

A shard of a bucket that was split `level` times has the same `used`, and the same time to fill, as the whole
bucket would have. What is taken from it costs `2 ** level` times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, Limit, Limits, parse, render

#: An unused bucket is kept for this many times its time to fill, and for this time more: a writer with a
#: clock that is ahead must not delete a debt.
_RETENTION_FILLS = 7
_RETENTION_SECONDS = 3600
#: The longest retention. Dates have an end.
_LONGEST_RETENTION_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """One limit in credits."""

    limit: Limit
    #: Attribute names in the bucket's item.
    used: str
    consumed: str
    #: Credits per microsecond, per thousandth of a token, and of a full bucket.
    rate: int
    price: int
    depth: int

    @classmethod
    def of(cls, limit: Limit) -> TokenBucket:
        """Return the token bucket of a limit."""
        price = limit.period_seconds * MICROSECONDS
        return cls(
            limit=limit,
            used=f"used_{limit.name}",
            consumed=f"consumed_{limit.name}",
            rate=limit.refill * MILLI,
            price=price,
            depth=limit.capacity * MILLI * price,
        )

    def full(self, now: int) -> int:
        """Return `used` of a full bucket."""
        return now * self.rate - self.depth

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs in a shard of this level."""
        return amount * self.price << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits, at most those of a full bucket; below zero in debt."""
        return min(self.depth, now * self.rate - used)

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token, rounded down."""
        return self.credits(used, now) // (self.price << level)

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available."""
        lacking = max(used, self.full(now)) + cost - now * self.rate
        return -(-lacking // self.rate) if lacking > 0 else 0

    def convert(self, used: int, now: int, new: TokenBucket, at: int) -> int:
        """Return `used` in the credits of another limit at a time, for the same tokens if they fit."""
        available = min(self.credits(used, now) * new.price // self.price, new.depth)
        return at * new.rate - available

    @property
    def fill_seconds(self) -> int:
        """The time that an empty bucket takes to fill."""
        return -(-self.depth // self.rate) // MICROSECONDS + 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of one bucket as token buckets; `text` is their stored form."""

    text: str
    #: When the stored limits were set; 0 for limits of a call or of the constructor.
    revision: int
    token_buckets: Mapping[str, TokenBucket]
    retention_seconds: int

    @property
    def limits(self) -> Limits:
        """The limits."""
        return tuple(token_bucket.limit for token_bucket in self.token_buckets.values())

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the bucket's item may expire, in seconds: after it was full for long."""
        seconds = self.retention_seconds
        for name, token_bucket in self.token_buckets.items():
            debt = used.get(name)
            if debt is not None and debt > now * token_bucket.rate + token_bucket.depth:
                wait = token_bucket.wait(debt, now, token_bucket.depth) // MICROSECONDS
                seconds = max(seconds, wait + _RETENTION_SECONDS)
        return now // MICROSECONDS + min(seconds, _LONGEST_RETENTION_SECONDS)


@lru_cache(maxsize=4096)
def rules_of(limits: Limits, revision: int) -> Rules:
    """Return the rules of some limits."""
    token_buckets = {limit.name: TokenBucket.of(limit) for limit in limits}
    longest = max(token_bucket.fill_seconds for token_bucket in token_buckets.values())
    return Rules(render(limits), revision, token_buckets, _RETENTION_FILLS * longest + _RETENTION_SECONDS)


@lru_cache(maxsize=4096)
def rules_from(text: str, revision: int) -> Rules:
    """Return the rules that a bucket was stored with."""
    return rules_of(parse(text), revision)
