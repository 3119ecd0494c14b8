"""Sliding windows: this window's tokens, and those of the one before by the part that is inside.

At a fraction f of the current window, `current + (1 - f) * before` is at most the amount. That is exact if
the tokens of the window before were taken evenly. It never admits more than the amount at once, nor in one
window of the grid. In any other interval of the same length it admits less than twice the amount.

One number has it all: `used` = (window * 10**13 + before) * 10**13 + current. A charge in the same window is
an addition. The first charge in a new window moves `current` to `before`, under the condition that the stored
value is unchanged. A debt is forgotten after two windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .counted_period import CountedPeriod
from .meter import Meter, Settlement

#: Above every number of credits; with the window it has at most 38 digits until the year 9999.
_BASE = 10**13
_WINDOW = _BASE * _BASE


class _Counts(NamedTuple):
    window: int
    before: int
    current: int

    @property
    def value(self) -> int:
        return (self.window * _BASE + self.before) * _BASE + self.current


def _counts(used: int) -> _Counts:
    return _Counts(used // _WINDOW, used // _BASE % _BASE, used % _BASE)


@dataclass(frozen=True, slots=True)
class SlidingWindow(CountedPeriod):
    """A limit on the weighted tokens of two windows."""

    turns: bool = True

    def full(self, now: int) -> int:
        """Return the line: at or below it, neither this window nor the one before was used."""
        return (now // self.length - 1) * _WINDOW

    def fresh(self, now: int) -> int:
        """Return the value that an untouched limit is charged from."""
        return now // self.length * _WINDOW

    def floor(self, used: int, now: int) -> int:
        """Return the lowest value of the same window after the same window before."""
        return used // _BASE * _BASE

    def ceiling(self, used: int, now: int) -> int:
        """Return the highest value that a charge may reach now."""
        counts = _counts(used)
        return used // _BASE * _BASE + self._allowed(counts, now)

    def _allowed(self, counts: _Counts, now: int) -> int:
        """Return the most of the current window; by a clock that is behind, as at the window's start."""
        rest = min(self.length, (counts.window + 1) * self.length - now)
        return self.depth - -(-counts.before * rest // self.length)

    def period(self, used: int, now: int) -> int:
        """Return the number of the window."""
        return used // _WINDOW

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs."""
        return amount << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits; below zero in debt."""
        counts = _counts(self.turned(used, now))
        return self._allowed(counts, now) - counts.current

    def used_for(self, available: int, now: int) -> int:
        """Return `used` of a limit with these credits, as if the others were taken in this window."""
        taken = min(_BASE - 1, max(0, self.depth - available))
        return self.full(now) if taken == 0 else self.fresh(now) + taken

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token."""
        return self.credits(used, now) >> level

    def turned(self, used: int, now: int) -> int:
        """Return `used` in the current window, with what was taken in the one before."""
        counts, window = _counts(used), now // self.length
        if counts.window >= window:
            return used
        before = counts.current if counts.window == window - 1 else 0
        return _Counts(window, before, 0).value

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge, or after credits were given back."""
        base = self.turned(used, now) if cost > 0 else used
        return base + self.settle(base, now, cost, None).delta

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return the addition for a cost; what was taken is given back to its own window."""
        counts = _counts(used)
        if cost < 0 and period == counts.window - 1:
            given = min(-cost, counts.before)
            if given != -cost:
                return Settlement(-given * _BASE, used, used)
            start = counts.window * _WINDOW
            return Settlement(-given * _BASE, start + given * _BASE, start + _WINDOW - 1)
        if cost < 0 and period is not None and period != counts.window:
            is_over = counts.window > period + 1
            return Settlement(0, (period + 2) * _WINDOW) if is_over else Settlement(0, used, used)
        delta = min(cost, _BASE - 1 - counts.current) if cost > 0 else max(cost, -counts.current)
        if delta != cost:
            return Settlement(delta, used, used)
        floor = used // _BASE * _BASE
        return Settlement(delta, floor - min(0, delta), floor + _BASE - 1 - max(0, delta))

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available: at most the rest of this window and the next."""
        window, before, current = _counts(self.turned(used, now))
        for end in ((window + 1) * self.length, (window + 2) * self.length):
            spare = self.depth - current - cost
            start = max(now, end - self.length)
            if spare >= 0:
                found = max(start, end - spare * self.length // before) if before else start
                if found < end:
                    return found - now
            before, current = current, 0
        return max(0, (window + 2) * self.length - now)

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` in the credits of another limit at a time: the same windows keep their counts."""
        if isinstance(new, SlidingWindow) and new.length == self.length and at == now:
            return used
        return new.used_for(min(self.credits(used, now) * new.price, new.depth), at)

    @property
    def fill_seconds(self) -> int:
        """The length of two windows."""
        return 2 * self.limit.period_seconds + 1
