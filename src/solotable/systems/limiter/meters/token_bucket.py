"""Token bucket: tokens come in at a constant rate, up to a capacity.

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

from dataclasses import dataclass

from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, Limit

from .meter import Meter, Settlement


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
    splits: bool = True
    turns: bool = False

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

    def fresh(self, now: int) -> int:
        """Return the value that a full bucket is charged from: that of a full bucket."""
        return now * self.rate - self.depth

    def floor(self, used: int, now: int) -> int:
        """Return the lowest value that an addition is exact for: that of a full bucket."""
        return now * self.rate - self.depth

    def ceiling(self, used: int, now: int) -> int:
        """Return `used` of an empty bucket: the supply."""
        return now * self.rate

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs in a shard of this level."""
        return amount * self.price << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits, at most those of a full bucket; below zero in debt."""
        return min(self.depth, now * self.rate - used)

    def used_for(self, available: int, now: int) -> int:
        """Return `used` of a bucket with these credits."""
        return now * self.rate - available

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token, rounded down."""
        return self.credits(used, now) // (self.price << level)

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge; what is given back to a full bucket has no effect."""
        return max(used, self.full(now)) + cost if cost > 0 else used + cost

    def period(self, used: int, now: int) -> int:
        """Return 0: a token bucket has no periods."""
        return 0

    def turned(self, used: int, now: int) -> int:
        """Return `used`: a token bucket has no periods."""
        return used

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return the addition for a cost; what is given back to a full bucket has no effect."""
        return Settlement(cost, self.full(now) if cost > 0 else None)

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available."""
        lacking = max(used, self.full(now)) + cost - now * self.rate
        return -(-lacking // self.rate) if lacking > 0 else 0

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` in the credits of another limit at a time, for the same tokens if they fit."""
        return new.used_for(min(self.credits(used, now) * new.price // self.price, new.depth), at)

    @property
    def fill_seconds(self) -> int:
        """The time that an empty bucket takes to fill."""
        return -(-self.depth // self.rate) // MICROSECONDS + 1
