"""Limits: how many tokens a bucket holds and how fast it refills; and amounts of tokens.

All numbers are whole: those of a limit, and an amount is in thousandths of a token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from decimal import Context, Decimal, Inexact
from typing import Any, Self

from solotable.errors import DataError

from .names import limit_name, shorten

#: Tokens are counted in thousandths.
MILLI = 1000
MICROSECONDS = 1_000_000
#: The most tokens of a limit, and the longest period: all numbers fit in DynamoDB's 38 digits.
MOST_TOKENS = 10**12
LONGEST_PERIOD_SECONDS = 366 * 86_400
MOST_LIMITS = 10
#: Ends the stored text of a soft limit.
_SOFT = "~soft"

#: Not the program's own context, which may round.
_EXACT = Context(prec=60, traps=[Inexact])

#: An amount of tokens as callers give it, in thousandths at the finest.
Amount = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Limit:
    """A token bucket: it holds `capacity` tokens, and `refill` tokens come in per `period_seconds`.

    A limit of capacity 0 denies every call that names it. A call that exceeds a `soft` limit is admitted.
    """

    name: str
    capacity: int
    refill: int
    period_seconds: int
    soft: bool = False
    #: When an operator reset the limit, in microseconds: a bucket with an earlier time starts full.
    reset_at: int = dataclass_field(default=0, repr=False)

    def __post_init__(self) -> None:
        limit_name(self.name)
        denies = self.capacity == 0
        for field, least, most in (
            ("capacity", 0, MOST_TOKENS),
            ("refill", 0 if denies else 1, MOST_TOKENS),
            ("period_seconds", 1, LONGEST_PERIOD_SECONDS),
        ):
            value = getattr(self, field)
            if type(value) is not int or not least <= value <= most:
                raise DataError(
                    f"The {field} of limit {self.name!r} is a whole number from {least} to {most}; "
                    f"got {shorten(value)}."
                )
        if denies and self.soft:
            raise DataError(
                f"Limit {self.name!r} has capacity 0, which denies every call, so it cannot be soft; "
                f"give it a capacity."
            )

    @classmethod
    def per_second(cls, name: str, rate: int, *, burst: int | None = None) -> Self:
        """Return a limit of so many tokens per second."""
        return cls(name, rate if burst is None else burst, rate, 1)

    @classmethod
    def per_minute(cls, name: str, rate: int, *, burst: int | None = None) -> Self:
        """Return a limit of so many tokens per minute."""
        return cls(name, rate if burst is None else burst, rate, 60)

    @classmethod
    def per_hour(cls, name: str, rate: int, *, burst: int | None = None) -> Self:
        """Return a limit of so many tokens per hour."""
        return cls(name, rate if burst is None else burst, rate, 3600)

    @classmethod
    def per_day(cls, name: str, rate: int, *, burst: int | None = None) -> Self:
        """Return a limit of so many tokens per day."""
        return cls(name, rate if burst is None else burst, rate, 86_400)

    @classmethod
    def custom(cls, name: str, *, capacity: int, refill: int, period_seconds: int) -> Self:
        """Return a limit with every number given."""
        return cls(name, capacity, refill, period_seconds)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `str` returns: `rpm=100/60`, or `rpm=100/60+150` if it holds more than it refills."""
        name, equals, rest = text.partition("=")
        rest, at, reset_at = rest.partition("@")
        soft, rest = rest.endswith(_SOFT), rest.removesuffix(_SOFT)
        rate, slash, tail = rest.partition("/")
        period, plus, burst = tail.partition("+")
        numbers = [rate, period, *([burst] if plus else []), *([reset_at] if at else [])]
        # isdecimal is also true of other scripts' digits.
        if not (equals and slash and all(each.isascii() and each.isdecimal() for each in numbers)):
            raise DataError(
                f"{text!r} is not a limit; write name=tokens/seconds, or name=tokens/seconds+burst."
            )
        return cls(
            name,
            int(burst) if plus else int(rate),
            int(rate),
            int(period),
            soft,
            int(reset_at) if at else 0,
        )

    def __str__(self) -> str:
        burst = "" if self.capacity == self.refill else f"+{self.capacity}"
        return f"{self.name}={self.refill}/{self.period_seconds}{burst}{self.suffix}"

    @property
    def suffix(self) -> str:
        """The end of the stored text, whatever kind of limit it is."""
        soft = _SOFT if self.soft else ""
        return f"{soft}@{self.reset_at}" if self.reset_at else soft

    def as_dict(self) -> dict[str, Any]:
        """Return the limit as JSON has it."""
        found = asdict(self)
        del found["reset_at"]
        if not self.soft:
            del found["soft"]
        return found


#: The limits of one bucket, by name.
Limits = tuple[Limit, ...]


def limits_of(given: Iterable[Limit]) -> Limits:
    """Return limits in the order of their names; raise DataError for none, too many, or a name twice."""
    found = tuple(sorted(given, key=lambda limit: limit.name))
    if not found:
        raise DataError("At least one limit is needed; delete the limits to have none.")
    if len(found) > MOST_LIMITS:
        raise DataError(f"A bucket has at most {MOST_LIMITS} limits; got {len(found)}.")
    names = [limit.name for limit in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"Limit {twice!r} is given twice.")
    return found


def render(limits: Limits) -> str:
    """Return limits in their stored form."""
    return ";".join(map(str, limits))


def parse(text: str) -> Limits:
    """Parse what `render` returned."""
    return limits_of(map(Limit.parse, text.split(";")))


def milli(amount: Amount, name: str = "an amount") -> int:
    """Return an amount in thousandths of a token; raise DataError for a finer one, or another type."""
    if type(amount) is not int and not isinstance(amount, (float, Decimal)):
        raise DataError(f"{name} is a number of tokens; got {shorten(amount)}.")
    if isinstance(amount, int):
        found: int | None = amount * MILLI
    else:
        found = _exact_milli(amount if isinstance(amount, Decimal) else Decimal(str(amount)))
    if found is None:
        raise DataError(f"{name} is a number of tokens with at most three decimals; got {shorten(amount)}.")
    if abs(found) > MOST_TOKENS * MILLI:
        raise DataError(f"{name} is at most {MOST_TOKENS} tokens; got {shorten(amount)}.")
    return found


def _exact_milli(amount: Decimal) -> int | None:
    if not amount.is_finite():
        return None
    if amount.copy_abs() > MOST_TOKENS:
        return MOST_TOKENS * MILLI + 1
    try:
        exact = _EXACT.multiply(amount, MILLI)
    except Inexact:
        return None
    return int(exact) if exact == exact.to_integral_value() else None


def in_tokens(amount: int) -> int | float:
    """Return thousandths as tokens, a whole number if possible.

    >>> in_tokens(1500), in_tokens(-2000)
    (1.5, -2)
    """
    return amount / MILLI if amount % MILLI else amount // MILLI


def amounts_by_limit(
    known: Collection[str], consume: Mapping[str, Amount], *, signed: bool = False
) -> dict[str, int]:
    """Return what a call takes from each known limit that it names, in thousandths and without zeros."""
    unknown = next((name for name in consume if name not in known), None)
    if unknown is not None:
        raise DataError(f"Limit {unknown!r} does not exist here; there are: {', '.join(sorted(known))}.")
    found = {name: milli(amount, f"The amount of {name!r}") for name, amount in consume.items()}
    if not signed:
        negative = next((name for name, amount in found.items() if amount < 0), None)
        if negative is not None:
            raise DataError(
                f"The amount of {negative!r} is below zero; give tokens back with lease.release()."
            )
    return {name: amount for name, amount in found.items() if amount}
