"""The limits of one bucket as meters, and how long an unused bucket is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from solotable.systems.limiter.admin.limits import MICROSECONDS, Limit, LimitKind, Limits, parse, render

from .concurrency import Concurrency
from .meter import Meter
from .session import Session
from .sliding import SlidingWindow
from .token_bucket import TokenBucket
from .windows import Window

#: An unused bucket is kept for this many times its time to fill, and for this time more: a writer with a
#: clock that is ahead must not delete a debt.
_RETENTION_FILLS = 7
_RETENTION_SECONDS = 3600
#: The longest retention. Dates have an end.
_LONGEST_RETENTION_SECONDS = 100 * 366 * 86_400


_METERS: dict[LimitKind, Callable[[Limit], Meter]] = {
    "token_bucket": TokenBucket.of,
    "fixed_window": Window.of,
    "calendar": Window.of,
    "session": Session.of,
    "sliding_window": SlidingWindow.of,
    "concurrency": Concurrency.of,
}


def meter_of(limit: Limit) -> Meter:
    """Return the meter of a limit, by its kind."""
    return _METERS[limit.kind](limit)


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of one bucket as meters; `text` is their stored form."""

    text: str
    #: When the stored limits were set; 0 for limits of a call or of the constructor.
    revision: int
    meters: Mapping[str, Meter]
    retention_seconds: int
    #: Whether the bucket may be split into shards.
    splits: bool
    #: Concurrency limits, whose tokens leases hold.
    held: Mapping[str, Concurrency]

    @property
    def limits(self) -> Limits:
        """The limits."""
        return tuple(meter.limit for meter in self.meters.values())

    def expires(self, now: int, used: Mapping[str, int]) -> int:
        """Return when the bucket's item may expire, in seconds: after it was full for long."""
        seconds = self.retention_seconds
        for name, meter in self.meters.items():
            debt = used.get(name)
            if debt is not None and debt > meter.ceiling(debt, now) + meter.depth:
                wait = meter.wait(debt, now, meter.depth) // MICROSECONDS
                seconds = max(seconds, wait + _RETENTION_SECONDS)
        return now // MICROSECONDS + min(seconds, _LONGEST_RETENTION_SECONDS)


@lru_cache(maxsize=4096)
def rules_of(limits: Limits, revision: int) -> Rules:
    """Return the rules of some limits."""
    meters = {limit.name: meter_of(limit) for limit in limits}
    longest = max(meter.fill_seconds for meter in meters.values())
    retention = _RETENTION_FILLS * longest + _RETENTION_SECONDS
    splits = all(meter.splits for meter in meters.values())
    held = {name: meter for name, meter in meters.items() if isinstance(meter, Concurrency)}
    return Rules(render(limits), revision, meters, retention, splits, held)


@lru_cache(maxsize=4096)
def rules_from(text: str, revision: int) -> Rules:
    """Return the rules that a bucket was stored with."""
    return rules_of(parse(text), revision)
