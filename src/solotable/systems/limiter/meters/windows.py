"""Fixed windows and calendar quotas: so many tokens in each period, which ends at a known time.

The supply rises in steps: each period brings `depth` credits, and what is left of them is lost at its end.
With `k` periods before the current one:

    full(now)    = k * depth           `used` of an untouched period; a lower value counts as untouched
    ceiling(now) = (k + 1) * depth     all credits of the period; a higher value is a debt to later periods

What was taken in a period that is over is not given back: it would add to the tokens of another period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from solotable.systems.limiter.admin.calendar_period import CalendarPeriod
from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, Limit

from .meter import Meter, Settlement

#: A shard's part of a thousandth is whole.
_PRICE = 64


class Periods(Protocol):
    """Consecutive periods of time, numbered."""

    def index(self, now: int) -> int:
        """Return the number of the period of a time."""

    def start(self, index: int) -> int:
        """Return when a period begins."""


class FixedPeriods:
    """Periods of equal length since the epoch."""

    __slots__ = ("_microseconds",)

    def __init__(self, seconds: int) -> None:
        self._microseconds = seconds * MICROSECONDS

    def index(self, now: int) -> int:
        """Return the number of the period of a time."""
        return now // self._microseconds

    def start(self, index: int) -> int:
        """Return when a period begins."""
        return index * self._microseconds


class CachedPeriods:
    """The periods of a calendar; the last one that was asked for is cached."""

    __slots__ = ("_last", "_periods")

    def __init__(self, periods: CalendarPeriod) -> None:
        self._periods = periods
        #: Start, end and number, replaced as a whole: other threads read it.
        self._last = (0, 0, 0)

    def index(self, now: int) -> int:
        """Return the number of the period of a time."""
        start, end, found = self._last
        if not start <= now < end:
            found = self._periods.index(now)
            self._last = (self._periods.start(found), self._periods.start(found + 1), found)
        return found

    def start(self, index: int) -> int:
        """Return when a period begins."""
        return self._periods.start(index)


@dataclass(frozen=True, slots=True)
class Window:
    """A limit with so many tokens in each period."""

    limit: Limit
    used: str
    consumed: str
    periods: Periods
    price: int
    depth: int
    splits: bool = True
    turns: bool = False

    @classmethod
    def of(cls, limit: Limit) -> Window:
        """Return the meter of a fixed window or of a calendar."""
        period = limit.calendar_period
        return cls(
            limit=limit,
            used=f"used_{limit.name}",
            consumed=f"consumed_{limit.name}",
            periods=FixedPeriods(limit.period_seconds) if period is None else CachedPeriods(period),
            price=_PRICE,
            depth=limit.capacity * MILLI * _PRICE,
        )

    def full(self, now: int) -> int:
        """Return `used` of an untouched period."""
        return self.periods.index(now) * self.depth

    def fresh(self, now: int) -> int:
        """Return the value that an untouched period is charged from."""
        return self.full(now)

    def floor(self, used: int, now: int) -> int:
        """Return the lowest value that an addition is exact for: that of an untouched period."""
        return self.full(now)

    def ceiling(self, used: int, now: int) -> int:
        """Return `used` of a period without tokens."""
        return self.full(now) + self.depth

    def period(self, used: int, now: int) -> int:
        """Return the number of the period."""
        return self.periods.index(now)

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs in a shard of this level."""
        return amount * self.price << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits, at most those of a period; below zero in debt."""
        return min(self.depth, self.full(now) + self.depth - used)

    def used_for(self, available: int, now: int) -> int:
        """Return `used` of a period with these credits."""
        return self.full(now) + self.depth - available

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token, rounded down."""
        return self.credits(used, now) // (self.price << level)

    def turned(self, used: int, now: int) -> int:
        """Return `used` in the current period: it needs no change."""
        return used

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge; what is given back to an untouched period has no effect."""
        return max(used, self.full(now)) + cost if cost > 0 else used + cost

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return the addition for a cost; nothing is given back to another period."""
        if cost > 0:
            return Settlement(cost, self.full(now), None)
        return Settlement(cost if period is None or period == self.periods.index(now) else 0)

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available: until the period that has enough."""
        if self.depth == 0:
            return 0
        needed = max(used, self.full(now)) + cost
        index = -(-needed // self.depth) - 1
        return max(0, self.periods.start(index) - now) if index > self.periods.index(now) else 0

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` in the credits of another limit at a time.

        A limit with the same periods keeps what was consumed, any other the tokens that are left.
        """
        if isinstance(new, Window) and self.limit.same_periods(new.limit):
            taken = max(0, used - self.full(now))
            return new.full(at) + min(taken, new.depth) + max(0, taken - self.depth)
        return new.used_for(min(self.credits(used, now) * new.price // self.price, new.depth), at)

    @property
    def fill_seconds(self) -> int:
        """The length of a period."""
        return self.limit.period_seconds + 1
