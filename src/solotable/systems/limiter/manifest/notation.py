"""Limits as users write them: `rpm=100/minute` besides the stored `rpm=100/60`. Pure, both ways."""

from __future__ import annotations

from solotable.errors import DataError
from solotable.systems.limiter.admin.calendar_period import NOMINAL_SECONDS, CalendarPeriod
from solotable.systems.limiter.admin.limits import KIND_WORDS, Limit, LimitKind, Limits
from solotable.systems.limiter.admin.schedule import Schedule, ScheduleWindow

_NAMES = {1: "second", 60: "minute", 3600: "hour", 86_400: "day"}
_SECONDS = {name: seconds for seconds, name in _NAMES.items()}
_SECONDS |= {"s": 1, "sec": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400}
_KINDS: dict[str, LimitKind] = {word: kind for kind, word in KIND_WORDS.items()}
#: How to write a limit, for messages.
FORM = (
    "name=tokens/period, as in rpm=100/minute or rpm=100/60; +150 after it is the most that it holds, "
    "~soft makes it soft; other kinds are rpm=100/fixed:minute, rpm=100/sliding:minute, "
    "quota=100/calendar:month:15,Europe/Berlin, chat=50/session:hour, jobs=5/concurrency:60"
)


def parse_limit(text: str) -> Limit:
    """Parse a limit as users write it.

    >>> str(parse_limit("rpm=100/min")), str(parse_limit("rpd = 1_000 / day+2000"))
    ('rpm=100/60', 'rpd=1000/86400+2000')
    >>> str(parse_limit("rpm=100/fixed:minute")), str(parse_limit("quota=1_000/calendar:month:31"))
    ('rpm=100/fixed:60', 'quota=1000/calendar:month:31')
    """
    name, equals, rate = text.partition("=")
    if not equals:
        raise DataError(f"{text!r} is not a limit; write {FORM}.")
    return parse_rate(name.strip(), rate)


def parse_rate(name: str, rate: str) -> Limit:
    """Parse what follows the name; a rate without a period is per minute."""
    given = f"{name}={rate}"
    rate, tilde, suffix = rate.partition("~")
    soft = suffix.strip().lower() == "soft"
    amount, slash, rest = rate.partition("/")
    word, colon, period = rest.strip().partition(":")
    kind = _KINDS.get(word.strip().lower())
    if slash and kind is not None and (soft or not tilde) and (colon or kind == "concurrency"):
        return _parse_kind(given, name, kind, amount, period.strip(), soft=soft)
    rate, plus, burst = rate.partition("+")
    tokens, slash, period = rate.partition("/")
    refill, seconds = _parse_whole(tokens), seconds_of(period) if slash else 60
    capacity = _parse_whole(burst) if plus else refill
    if refill is None or seconds is None or capacity is None or (tilde and not soft):
        raise DataError(f"{given!r} is not a limit; write {FORM}.")
    return Limit(name, capacity, refill, seconds, soft)


def _parse_kind(given: str, name: str, kind: LimitKind, amount: str, period: str, *, soft: bool) -> Limit:
    capacity = _parse_whole(amount)
    found = CalendarPeriod.parse(period) if kind == "calendar" else None
    if found is not None:
        seconds: int | None = NOMINAL_SECONDS[found.per]
    else:
        seconds = seconds_of(period) if period else 60
    if capacity is None or seconds is None:
        raise DataError(f"{given!r} is not a limit; write {FORM}.")
    return Limit(name, capacity, capacity, seconds, soft, kind=kind, calendar_period=found)


def seconds_of(period: str) -> int | None:
    """Return a period in seconds: a number of them, or second, minute, hour or day; None for another text.

    >>> seconds_of("90"), seconds_of("Hours"), seconds_of("fortnight")
    (90, 3600, None)
    """
    name = period.strip().lower()
    found = _SECONDS.get(name) or _SECONDS.get(name.removesuffix("s"))
    return _parse_whole(name) if found is None else found


def format_limit(limit: Limit) -> str:
    """Return a limit as users write it.

    >>> format_limit(Limit("rpm", 150, 100, 60)), format_limit(Limit("rpm", 10, 10, 90))
    ('rpm=100/minute+150', 'rpm=10/90')
    """
    burst = "" if limit.capacity == limit.refill else f"+{limit.capacity}"
    soft = "~soft" if limit.soft else ""
    kind = "" if limit.kind == "token_bucket" else f"{KIND_WORDS[limit.kind]}:"
    period = str(limit.calendar_period or _NAMES.get(limit.period_seconds) or limit.period_seconds)
    return f"{limit.name}={limit.refill}/{kind}{period}{burst}{soft}"


def format_rules(rules: Limits | Schedule) -> str:
    """Return limits, or a schedule, on one line.

    >>> from solotable.systems.limiter.admin.schedule import ScheduleWindow
    >>> format_rules(Schedule([Limit("rpm", 9, 9, 60)], [ScheduleWindow("sat", [Limit("rpm", 1, 1, 60)])]))
    'rpm=9/minute; sat (UTC): rpm=1/minute'
    """
    if not isinstance(rules, Schedule):
        return " ".join(map(format_limit, rules))
    windows = (f"{each.when} ({rules.timezone}): {format_rules(each.limits)}" for each in rules.windows)
    return "; ".join((format_rules(rules.limits), *windows))


def parse_window(text: str) -> ScheduleWindow:
    """Parse a window as users write it: days and times, then its limits.

    >>> parse_window("mon-fri 08:00-18:00 rpm=10/minute").when
    'mon-fri 08:00-18:00'
    """
    words = text.split()
    first = next((index for index, word in enumerate(words) if "=" in word), len(words))
    return ScheduleWindow(" ".join(words[:first]), map(parse_limit, words[first:]))


def _parse_whole(text: str) -> int | None:
    # isdecimal is also true of other scripts' digits; no limit has more digits.
    plain = text.strip().replace("_", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= 20 else None
