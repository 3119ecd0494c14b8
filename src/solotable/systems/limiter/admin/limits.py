"""Limits: how many tokens there are, of which kind, and when they come back; and amounts of tokens.

All numbers are whole: those of a limit, and an amount is in thousandths of a token.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from dataclasses import field as dataclass_field
from decimal import Context, Decimal, Inexact
from typing import Any, Literal, Self, get_args

from solotable.errors import DataError

from .calendar_period import NOMINAL_SECONDS, CalendarPeriod, Per
from .names import limit_name, shorten

#: Tokens are counted in thousandths.
MILLI = 1000
MICROSECONDS = 1_000_000
#: The most tokens of a limit, and the longest period: all numbers fit in DynamoDB's 38 digits.
MOST_TOKENS = 10**12
#: A sliding window stores two numbers of tokens in one number.
MOST_SLIDING_TOKENS = 10**9
LONGEST_PERIOD_SECONDS = 366 * 86_400
MOST_LIMITS = 10
#: Ends the stored text of a soft limit.
_SOFT = "~soft"

#: Not the program's own context, which may round.
_EXACT = Context(prec=60, traps=[Inexact])

#: An amount of tokens as callers give it, in thousandths at the finest.
Amount = int | float | Decimal


LimitKind = Literal["token_bucket", "fixed_window", "sliding_window", "calendar", "session", "concurrency"]
#: The kinds in stored texts; a token bucket has none.
KIND_WORDS: dict[LimitKind, str] = {
    "fixed_window": "fixed",
    "sliding_window": "sliding",
    "calendar": "calendar",
    "session": "session",
    "concurrency": "concurrency",
}
_KINDS: dict[str, LimitKind] = {word: kind for kind, word in KIND_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: how many tokens there are, and when they come back.

    A token bucket holds `capacity` tokens, and `refill` tokens come in per `period_seconds`. Every other kind
    has `capacity` tokens per period, and `refill` is the same number. `period_seconds` of a calendar is the
    longest length of its periods; that of a concurrency limit is how long a lease may hold its tokens.

    A limit of capacity 0 denies every call that names it. A call that exceeds a `soft` limit is admitted.
    """

    name: str
    capacity: int
    refill: int
    period_seconds: int
    soft: bool = False
    #: When an operator reset the limit, in microseconds: a bucket with an earlier time starts full.
    reset_at: int = dataclass_field(default=0, repr=False)
    kind: LimitKind = "token_bucket"
    #: Of a calendar: its periods.
    calendar_period: CalendarPeriod | None = None

    def __post_init__(self) -> None:
        limit_name(self.name)
        if self.kind not in get_args(LimitKind):
            raise DataError(
                f"The kind of limit {self.name!r} is one of {', '.join(get_args(LimitKind))}; "
                f"got {shorten(self.kind)}."
            )
        denies = self.capacity == 0
        highest = MOST_SLIDING_TOKENS if self.kind == "sliding_window" else MOST_TOKENS
        for field, least, most in (
            ("capacity", 0, highest),
            ("refill", 0 if denies else 1, highest),
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
        if self.kind != "token_bucket" and self.refill != self.capacity:
            raise DataError(
                f"The refill of limit {self.name!r} is its capacity, {self.capacity}, because its kind is "
                f"{self.kind}; got {self.refill}."
            )
        if (self.calendar_period is None) is (self.kind == "calendar"):
            raise DataError(f"Limit {self.name!r} has a calendar period exactly if its kind is calendar.")

    @classmethod
    def per_second(cls, name: str, rate: int, *, burst: int | None = None, soft: bool = False) -> Self:
        """Return a limit of so many tokens per second."""
        return cls(name, rate if burst is None else burst, rate, 1, soft)

    @classmethod
    def per_minute(cls, name: str, rate: int, *, burst: int | None = None, soft: bool = False) -> Self:
        """Return a limit of so many tokens per minute."""
        return cls(name, rate if burst is None else burst, rate, 60, soft)

    @classmethod
    def per_hour(cls, name: str, rate: int, *, burst: int | None = None, soft: bool = False) -> Self:
        """Return a limit of so many tokens per hour."""
        return cls(name, rate if burst is None else burst, rate, 3600, soft)

    @classmethod
    def per_day(cls, name: str, rate: int, *, burst: int | None = None, soft: bool = False) -> Self:
        """Return a limit of so many tokens per day."""
        return cls(name, rate if burst is None else burst, rate, 86_400, soft)

    @classmethod
    def custom(
        cls, name: str, *, capacity: int, refill: int, period_seconds: int, soft: bool = False
    ) -> Self:
        """Return a token bucket with every number given."""
        return cls(name, capacity, refill, period_seconds, soft)

    @classmethod
    def fixed_window(cls, name: str, amount: int, seconds: int, *, soft: bool = False) -> Self:
        """Return a limit of so many tokens in each window of so many seconds; windows begin at the epoch."""
        return cls(name, amount, amount, seconds, soft, kind="fixed_window")

    @classmethod
    def sliding_window(cls, name: str, amount: int, seconds: int, *, soft: bool = False) -> Self:
        """Return a limit on the tokens of this window and, weighted by its rest, of the window before."""
        return cls(name, amount, amount, seconds, soft, kind="sliding_window")

    @classmethod
    def calendar(
        cls,
        name: str,
        amount: int,
        per: Per,
        *,
        timezone: str = "UTC",
        anchor: int | str | None = None,
        soft: bool = False,
    ) -> Self:
        """Return a limit of so many tokens per hour, day, week, month or year of a calendar.

        `anchor` is where a period begins: a minute of the hour, an hour of the day (or `"06:30"`), a weekday
        (`"mon"`), a day of the month (31: the last one), a day of the year (`"04-06"`).
        """
        period = CalendarPeriod(per, timezone, anchor)  # type: ignore[arg-type]  # __post_init__ parses it
        seconds = NOMINAL_SECONDS[period.per]
        return cls(name, amount, amount, seconds, soft, kind="calendar", calendar_period=period)

    @classmethod
    def session(cls, name: str, amount: int, seconds: int, *, soft: bool = False) -> Self:
        """Return a limit of so many tokens per session, which begins with the first use and has a length."""
        return cls(name, amount, amount, seconds, soft, kind="session")

    @classmethod
    def concurrency(cls, name: str, amount: int, lease_seconds: int = 60) -> Self:
        """Return a limit of so many tokens in use at once; a lease holds its own for so many seconds."""
        return cls(name, amount, amount, lease_seconds, kind="concurrency")

    @classmethod
    def from_dict(cls, members: Mapping[str, Any]) -> Self:
        """Return the limit of what `as_dict` returns; `capacity` and `refill` default to each other."""
        given = {name: value for name, value in members.items() if value is not None}
        name, kind = given.get("name", ""), given.get("kind", "token_bucket")
        capacity: Any = given.get("capacity", given.get("refill"))
        if capacity is None:
            raise DataError(f"Limit {name!r} has no capacity.")
        soft = given.get("soft", False)
        if type(soft) is not bool:
            raise DataError(f"The soft of limit {name!r} is true or false; got {shorten(soft)}.")
        calendar = {key: given[key] for key in ("per", "timezone", "anchor") if key in given}
        if kind != "calendar":
            if calendar:
                raise DataError(f"Limit {name!r} has {', '.join(calendar)}, which only a calendar has.")
            if "period_seconds" not in given:
                raise DataError(f"Limit {name!r} has no period_seconds.")
            refill, seconds = given.get("refill", capacity), given["period_seconds"]
            return cls(name, capacity, refill, seconds, soft, kind=kind)
        if "per" not in calendar:
            raise DataError(f"Limit {name!r} has no per; a calendar is per hour, day, week, month or year.")
        found = cls.calendar(name, capacity, **calendar)
        for field in ("refill", "period_seconds"):
            if given.get(field, getattr(found, field)) != getattr(found, field):
                raise DataError(
                    f"The {field} of limit {name!r} is {getattr(found, field)}, because its kind is "
                    f"calendar; leave it out."
                )
        return replace(found, soft=soft)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse what `str` returns.

        A token bucket is `rpm=100/60`, or `rpm=100/60+150` if it holds more than it refills. Other kinds are
        `rpm=100/fixed:60`, `rpm=100/sliding:60`, `quota=100/calendar:month:15,Europe/Berlin`,
        `chat=50/session:3600` and `jobs=5/concurrency:60`.
        """
        name, equals, rest = text.partition("=")
        rest, at, reset_at = rest.partition("@")
        soft, rest = rest.endswith(_SOFT), rest.removesuffix(_SOFT)
        rate, slash, tail = rest.partition("/")
        end: dict[str, Any] = {"soft": soft, "reset_at": int(reset_at) if _is_number(reset_at) else 0}
        word, colon, period = tail.partition(":")
        kind: LimitKind = _KINDS.get(word, "token_bucket") if colon else "token_bucket"
        burst = plus = ""
        if kind == "token_bucket":
            period, plus, burst = tail.partition("+")
        numbers = [rate, *([burst] if plus else []), *([reset_at] if at else [])]
        if kind != "calendar":
            numbers.append(period)
        if not (equals and slash and all(map(_is_number, numbers))):
            raise DataError(
                f"{text!r} is not a limit; write name=tokens/seconds, or name=tokens/seconds+burst."
            )
        if kind == "calendar":
            found = CalendarPeriod.parse(period)
            seconds = NOMINAL_SECONDS[found.per]
            return cls(name, int(rate), int(rate), seconds, kind=kind, calendar_period=found, **end)
        return cls(name, int(burst) if plus else int(rate), int(rate), int(period), kind=kind, **end)

    def __str__(self) -> str:
        if self.kind != "token_bucket":
            period = self.period_seconds if self.calendar_period is None else self.calendar_period
            return f"{self.name}={self.capacity}/{KIND_WORDS[self.kind]}:{period}{self.suffix}"
        burst = "" if self.capacity == self.refill else f"+{self.capacity}"
        return f"{self.name}={self.refill}/{self.period_seconds}{burst}{self.suffix}"

    @property
    def suffix(self) -> str:
        """The end of the stored text, whatever kind of limit it is."""
        soft = _SOFT if self.soft else ""
        return f"{soft}@{self.reset_at}" if self.reset_at else soft

    def same_periods(self, other: Limit) -> bool:
        """Return whether the periods of another limit begin and end with those of this one."""
        return (self.kind, self.period_seconds, self.calendar_period) == (
            other.kind,
            other.period_seconds,
            other.calendar_period,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the limit as JSON has it."""
        found: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "capacity": self.capacity,
            "refill": self.refill,
            "period_seconds": self.period_seconds,
        }
        if self.soft:
            found["soft"] = True
        return found if self.calendar_period is None else {**found, **asdict(self.calendar_period)}


def _is_number(text: str) -> bool:
    # isdecimal is also true of other scripts' digits.
    return text.isascii() and text.isdecimal()


#: The limits of one bucket, by name.
Limits = tuple[Limit, ...]


def limits_of(given: Iterable[Limit]) -> Limits:
    """Return limits in the order of their names; raise DataError for none, too many, or a name twice."""
    try:
        found = tuple(sorted(given, key=lambda limit: limit.name))
    except (TypeError, AttributeError):
        advice = "; set_limits and Limiter(limits=) take a Schedule too" if hasattr(given, "windows") else ""
        raise DataError(
            f"Limits are a list, such as [Limit.per_minute('rpm', 60)]; got {shorten(given)}{advice}."
        ) from None
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
