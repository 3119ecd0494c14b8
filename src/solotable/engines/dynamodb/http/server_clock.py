"""The server's clock, from the Date of its responses; pure except for this machine's clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

#: A Date has whole seconds, and servers keep it for one. A smaller difference is not known.
_LEAST_SECONDS: Final = 2.0
#: A machine's clock that moved by more than this against its steady clock was set.
_LEAP_SECONDS: Final = 1.0


class ServerClock:
    """How far the server's clock is ahead of this machine's: an interval that responses narrow."""

    __slots__ = ("_clock", "_date", "_drift", "_high", "_low", "_steady")

    def __init__(
        self, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._steady = steady
        self._date: bytes | None = None
        self._drift = 0.0
        self._low = self._high = 0.0

    def observe(self, date: bytes | None, sent: float) -> None:
        """Learn from the Date of a response to a request that was sent at a time of this machine's clock."""
        if date is None or date == self._date:
            return
        try:
            moment = parsedate_to_datetime(date.decode("latin-1")).timestamp()
        except ValueError:
            return
        received = self._clock()
        drift = received - self._steady()
        low, high = moment - received, moment + 1 - sent
        if self._date is not None and abs(drift - self._drift) < _LEAP_SECONDS:
            narrowed = max(low, self._low), min(high, self._high)
            # An empty interval means that a clock was set or has drifted: the last response counts.
            low, high = narrowed if narrowed[0] <= narrowed[1] else (low, high)
        self._date, self._drift, self._low, self._high = date, drift, low, high

    def offset(self) -> float:
        """Return the seconds to add to this machine's clock: the least that the responses require, or 0."""
        if self._low <= _LEAST_SECONDS and self._high >= -_LEAST_SECONDS:
            return 0.0
        if abs(self._clock() - self._steady() - self._drift) >= _LEAP_SECONDS:
            return 0.0
        return self._low if self._low > 0 else self._high
