"""Sessions: so many tokens in a period that begins with the first use and has a fixed length.

`used` is the start of the session and what was consumed in it: start * 10**20 + consumed. The length is not
part of it, so a change of the length applies to the session that is running. A debt ends with its session.
"""

from __future__ import annotations

from dataclasses import dataclass

from .counted_period import CountedPeriod
from .meter import Meter, Settlement

#: Above every number of credits; with the start it has at most 38 digits until the year 9999.
_START = 10**20


@dataclass(frozen=True, slots=True)
class Session(CountedPeriod):
    """A limit with so many tokens in each session."""

    def full(self, now: int) -> int:
        """Return the highest `used` of a session that is over."""
        return (now - self.length + 1) * _START - 1

    def fresh(self, now: int) -> int:
        """Return the value that a new session is charged from."""
        return now * _START

    def floor(self, used: int, now: int) -> int:
        """Return `used` at the start of the session."""
        return used // _START * _START

    def ceiling(self, used: int, now: int) -> int:
        """Return `used` of the session without tokens."""
        return used // _START * _START + self.depth

    def period(self, used: int, now: int) -> int:
        """Return the start of the session."""
        return used // _START

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs."""
        return amount << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits, at most those of a session; below zero in debt."""
        return self.depth if used <= self.full(now) else self.depth - used % _START

    def used_for(self, available: int, now: int) -> int:
        """Return `used` of a session with these credits: not begun if it has all, else beginning now."""
        return self.full(now) if available >= self.depth else now * _START + self.depth - available

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token."""
        return self.credits(used, now) >> level

    def turned(self, used: int, now: int) -> int:
        """Return `used` in the current session: it needs no change."""
        return used

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge, or after credits were given back to the same session."""
        if cost > 0 and used <= self.full(now):
            return self.fresh(now) + min(cost, _START - 1)
        return used + self.settle(used, now, cost, None).delta

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return the addition for a cost; nothing is given back to another session."""
        start, taken = used // _START, used % _START
        if cost < 0 and period is not None and period != start:
            return Settlement(0, (period + 1) * _START) if start > period else Settlement(0, used, used)
        delta = min(cost, _START - 1 - taken) if cost > 0 else max(cost, -taken)
        if delta != cost:
            return Settlement(delta, used, used)
        floor = start * _START
        return Settlement(delta, floor - min(0, delta), floor + _START - 1 - max(0, delta))

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available: until the end of the session."""
        if cost <= self.credits(used, now):
            return 0
        return max(0, used // _START + self.length - now)

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` in the credits of another limit at a time: a session keeps its start."""
        if used <= self.full(now):
            return new.used_for(new.depth, at)
        if isinstance(new, Session):
            return used + (at - now) * _START
        return new.used_for(min(self.credits(used, now) * new.price, new.depth), at)

    @property
    def fill_seconds(self) -> int:
        """The length of a session."""
        return self.limit.period_seconds + 1
