"""Concurrency limits: so many tokens in use at once, held by leases that end or expire.

`used` is the sum of all holds. Each hold is an attribute of the item, `+<limit>:<id>`, with the time when it
expires and its tokens: expires * 10**16 + tokens. A process that dies frees its tokens when its holds expire;
the next charge removes expired holds, in the same write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from .counted_period import CountedPeriod
from .meter import Meter, Settlement

#: The first character of a hold's attribute name.
HOLD = "+"
#: Above every number of tokens.
_EXPIRY = 10**16
#: How many expired holds one write removes, and the most if the charge needs the tokens of more:
#: DynamoDB accepts 300 operators in a condition. If it needs even more, other writes remove some before.
_REMOVED = 20
MOST_REMOVED = 100


class Hold(NamedTuple):
    """The tokens that a lease holds, as stored."""

    attribute: str
    value: int

    @property
    def expires(self) -> int:
        """When it expires, in microseconds."""
        return self.value // _EXPIRY

    @property
    def amount(self) -> int:
        """Its thousandths of a token."""
        return self.value % _EXPIRY


class Held(int):
    """`used` of a concurrency limit, with the holds that it is the sum of."""

    holds: Sequence[Hold]

    def __new__(cls, used: int, holds: Sequence[Hold]) -> Self:
        """Return the sum with its holds."""
        found = super().__new__(cls, used)
        found.holds = holds
        return found


def holds_of(used: int) -> Sequence[Hold]:
    """Return the holds of a stored sum."""
    return used.holds if isinstance(used, Held) else ()


def expired_holds(used: int, now: int, lacking: int) -> list[Hold]:
    """Return holds that have expired, as many as one write removes; the largest if tokens are lacking."""
    expired = [hold for hold in holds_of(used) if hold.expires <= now]
    if lacking <= 0 or len(expired) <= _REMOVED:
        return expired[:_REMOVED]
    return sorted(expired, key=lambda hold: -hold.amount)[:MOST_REMOVED]


@dataclass(frozen=True, slots=True)
class Concurrency(CountedPeriod):
    """A limit on tokens that are in use."""

    def hold(self, name: str, amount: int, now: int) -> Hold:
        """Return the hold of a lease that begins, or is extended, now."""
        return Hold(self.attribute(name), (now + self.length) * _EXPIRY + amount)

    def attribute(self, name: str) -> str:
        """Return the attribute of a lease's hold."""
        return f"{HOLD}{self.limit.name}:{name}"

    def full(self, now: int) -> int:
        """Return `used` without holds."""
        return 0

    def fresh(self, now: int) -> int:
        """Return `used` without holds."""
        return 0

    def floor(self, used: int, now: int) -> int:
        """Return `used` without holds."""
        return 0

    def ceiling(self, used: int, now: int) -> int:
        """Return `used` with all tokens held."""
        return self.depth

    def period(self, used: int, now: int) -> int:
        """Return 0: a concurrency limit has no periods."""
        return 0

    def cost(self, amount: int, level: int = 0) -> int:
        """Return what an amount costs."""
        return amount << level

    def credits(self, used: int, now: int) -> int:
        """Return the available credits; those of expired holds are available."""
        return self.depth - used + sum(hold.amount for hold in holds_of(used) if hold.expires <= now)

    def used_for(self, available: int, now: int) -> int:
        """Return `used` without holds: only leases hold tokens."""
        return 0

    def tokens(self, used: int, now: int, level: int = 0) -> int:
        """Return the available thousandths of a token."""
        return self.credits(used, now) >> level

    def turned(self, used: int, now: int) -> int:
        """Return `used`: a concurrency limit has no periods."""
        return used

    def charged(self, used: int, now: int, cost: int) -> int:
        """Return `used` after a charge, or after tokens were given back."""
        return max(0, used + cost)

    def settle(self, used: int, now: int, cost: int, period: int | None) -> Settlement:
        """Return no addition: what a lease holds changes with its hold."""
        return Settlement(0)

    def wait(self, used: int, now: int, cost: int) -> int:
        """Return the microseconds until a cost is available, if no lease ends before it expires."""
        lacking = cost - self.credits(used, now)
        if lacking <= 0:
            return 0
        for hold in sorted(holds_of(used), key=lambda hold: hold.expires):
            if hold.expires > now:
                lacking -= hold.amount
                if lacking <= 0:
                    return hold.expires - now
        return self.length

    def convert(self, used: int, now: int, new: Meter, at: int) -> int:
        """Return `used` under another limit: the same holds; another kind of limit starts untouched."""
        return used if isinstance(new, Concurrency) else new.used_for(new.depth, at)

    @property
    def fill_seconds(self) -> int:
        """The longest time of a hold."""
        return self.limit.period_seconds + 1
