"""What every kind of limit answers from one stored whole number, `used`.

Credits are the unit of `used`: a thousandth of a token costs `price` credits, and an untouched limit has
`depth` credits. Time is in microseconds since the epoch. A charge writes one of two forms, each exact under
its own condition:

    untouched, used <= full(now):   used = fresh(now) + cost     if used <= full(now)
    otherwise:                      used = used + cost           if floor <= used <= ceiling - cost

A settlement is the same without the ceiling. Writers only assume which form applies; the condition verifies.
A sliding window has a third form, for the first charge of a window: used = turned + cost, if `used` is
unchanged.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from solotable.systems.limiter.admin.limits import Limit


class Settlement(NamedTuple):
    """An addition to `used`, exact while `used` is in a range; None: without a bound."""

    delta: int
    lowest: int | None = None
    highest: int | None = None


class Meter(Protocol):
    """One limit in credits."""

    @property
    def limit(self) -> Limit:
        """The limit."""

    @property
    def used(self) -> str:
        """The name of the attribute with the used credits."""

    @property
    def consumed(self) -> str:
        """The name of the attribute with the consumed thousandths of tokens."""

    @property
    def price(self) -> int:
        """The credits of a thousandth of a token; a multiple of 2 ** 6, so that a shard's part is whole."""

    @property
    def depth(self) -> int:
        """The credits of an untouched limit."""

    @property
    def fill_seconds(self) -> int:
        """The seconds after which a limit without debt is untouched again."""

    @property
    def splits(self) -> bool:
        """Whether a bucket with this limit may be split into shards."""

    @property
    def turns(self) -> bool:
        """Whether a new period may change `used` of a limit that is not untouched."""

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs in a shard of this level."""

    def full(self, now: int) -> int:
        """Return the line: at or below it, the limit is untouched."""

    def fresh(self, now: int) -> int:
        """Return the value that an untouched limit is charged from."""

    def floor(self, used: int, now: int) -> int:
        """Return the lowest value of the same period: a higher one may be charged by an addition."""

    def ceiling(self, used: int, now: int) -> int:
        """Return the highest value that a charge may reach now."""

    def period(self, used: int, now: int) -> int:
        """Return the period that `used` was counted in: what was taken in it is given back to it."""

    def turned(self, used: int, now: int) -> int:
        """Return `used` in the current period."""

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return the addition for a cost without admission; below zero, what was taken in a period."""

    def credits(self, used: int, now: int) -> int:
        """Return the available credits, at most `depth`; below zero in debt."""

    def used_for(self, available: int, now: int) -> int:
        """Return `used` of a limit with these credits: the inverse of `credits`."""

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token, rounded down."""

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge, or after credits were given back."""

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available: refused until then, admitted from then on."""

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` in the credits of another limit at a time, for the same tokens if they fit."""
