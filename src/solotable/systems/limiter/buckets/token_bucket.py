"""The arithmetic of a token bucket: pure, in whole numbers, exact for ever.

Time is a supply. A limit that refills `refill` tokens each period is given `refill * 1000` credits by every
microsecond, and a thousandth of a token costs as many credits as the period has microseconds. All that a
bucket has to remember of a limit is how much of the supply was used up: one integer, `used`.

    supply(now) = now * rate            what time has given since the epoch
    full(now)   = supply(now) - depth   `used` of a bucket that is full; below that it counts as full
    there is    = supply(now) - used    below zero it is in debt

Nothing is divided until somebody reads a number of tokens, so no remainder is ever lost (C1.8), and a limit
has no refill time that another limit's write could move (C1.12). A clock that goes back gives less supply,
and nothing else.

A shard of a bucket that was halved `level` times has the same `used` and the same time to fill as the whole
would have; what it takes costs `2 ** level` times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, Limit, Limits, parse, render

#: A bucket that nobody uses is kept for so many times as long as it takes to fill.
_KEPT_FILLS = 7
#: And so much longer than it takes: a clock that is ahead must not forget a debt.
_KEPT_SECONDS = 3600
#: And never longer, though it fills in a million years: dates have an end.
_MOST_KEPT_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """One limit in a bucket's own units."""

    limit: Limit
    #: The attributes of the bucket's item.
    used: str
    consumed: str
    #: Credits by each microsecond, for each thousandth of a token, and of a full bucket.
    rate: int
    price: int
    depth: int

    @classmethod
    def of(cls, limit: Limit) -> TokenBucket:
        """Return the token_bucket of a limit."""
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
        """Return `used` of a bucket that is full."""
        return now * self.rate - self.depth

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs in a shard of this level."""
        return amount * self.price << level

    def credits(self, used: int, now: int) -> int:
        """Return what there is, at most a full bucket; below zero it is a debt."""
        return min(self.depth, now * self.rate - used)

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return what there is in thousandths of a token, rounded down."""
        return self.credits(used, now) // (self.price << level)

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return in how many microseconds there is enough; none if there is now."""
        missing = max(used, self.full(now)) + cost - now * self.rate
        return -(-missing // self.rate) if missing > 0 else 0

    def moved(self, used: int, now: int, new: TokenBucket, at: int) -> int:
        """Return `used` in another limit's units, or at another time, with the same tokens if they fit."""
        held = min(self.credits(used, now) * new.price // self.price, new.depth)
        return at * new.rate - held

    @property
    def fill_seconds(self) -> int:
        """How long an empty bucket takes to be full."""
        return -(-self.depth // self.rate) // MICROSECONDS + 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of one bucket, ready to be reckoned with; `text` is how they are stored."""

    text: str
    #: When the stored limits were set; 0 for those that a call or the constructor gave.
    revision: int
    token_buckets: Mapping[str, TokenBucket]
    kept_seconds: int

    @property
    def limits(self) -> Limits:
        """The limits themselves."""
        return tuple(token_bucket.limit for token_bucket in self.token_buckets.values())

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the bucket may be forgotten, in seconds: when it was full for long."""
        kept = self.kept_seconds
        for name, token_bucket in self.token_buckets.items():
            # A debt that takes longer than everything else is kept anyway?
            if (line := used.get(name)) is not None and line > now * token_bucket.rate + token_bucket.depth:
                kept = max(
                    kept, token_bucket.wait(line, now, token_bucket.depth) // MICROSECONDS + _KEPT_SECONDS
                )
        return now // MICROSECONDS + min(kept, _MOST_KEPT_SECONDS)


@lru_cache(maxsize=4096)
def rules_of(limits: Limits, revision: int) -> Rules:
    """Return the rules of some limits."""
    token_buckets = {limit.name: TokenBucket.of(limit) for limit in limits}
    longest = max(token_bucket.fill_seconds for token_bucket in token_buckets.values())
    return Rules(
        text=render(limits),
        revision=revision,
        token_buckets=token_buckets,
        kept_seconds=_KEPT_FILLS * longest + _KEPT_SECONDS,
    )


@lru_cache(maxsize=4096)
def rules_from(text: str, revision: int) -> Rules:
    """Return the rules that a bucket was stored with."""
    return rules_of(parse(text), revision)
