"""Pace: the write units that a worker may use in a second, and the reaction to throttling."""

from __future__ import annotations

from collections.abc import Callable

#: A throttled worker halves its rate, and gains a tenth of it in each second without throttling.
_DECREASE = 0.5
_INCREASE_PER_SECOND = 0.1
#: The rate of a throttled worker that had no limit, from the units of its last second.
_LEAST_RATE = 1.0
#: After so many seconds without throttling, the note in the status is removed.
QUIET_SECONDS = 30.0


class Pacer:
    """A token bucket whose rate can change while it is used.

    `spend` returns how long to wait after units were used. The bucket holds a tenth of a second, so that the
    use stays below the rate in every second.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._limit: float | None = None
        self._throttled_rate: float | None = None
        self._units = 0.0
        self._filled = clock()
        self._second = (int(self._filled), 0.0)
        self._last_second = 0.0
        self.throttled_at: float | None = None

    def limit(self, rate: float | None) -> None:
        """Set the write units in a second; None removes the limit."""
        self._limit = rate

    @property
    def rate(self) -> float | None:
        """The write units that may be used in a second now; None without a limit."""
        rates = [rate for rate in (self._limit, self._throttled_rate) if rate is not None]
        return min(rates, default=None)

    def spend(self, units: float) -> float:
        """Use units, and return the seconds to wait before the next request."""
        now = self._clock()
        self._measure(now, units)
        self._recover(now)
        rate = self.rate
        if rate is None:
            self._units, self._filled = 0.0, now
            return 0.0
        self._units = min(rate / 10, self._units + max(0.0, now - self._filled) * rate) - units
        self._filled = now
        return max(0.0, -self._units / rate)

    def throttle(self) -> None:
        """Slow down: a request was throttled."""
        used = max(self._last_second, self._second[1], _LEAST_RATE)
        before = self._throttled_rate or self._limit or used
        self._throttled_rate = max(_LEAST_RATE, before * _DECREASE)
        self.throttled_at = self._clock()

    def _measure(self, now: float, units: float) -> None:
        second, used = self._second
        if int(now) != second:
            self._last_second, self._second = used, (int(now), units)
        else:
            self._second = second, used + units

    def _recover(self, now: float) -> None:
        if self._throttled_rate is None or self.throttled_at is None:
            return
        elapsed = max(0.0, now - max(self._filled, self.throttled_at))
        self._throttled_rate *= (1 + _INCREASE_PER_SECOND) ** elapsed
        if now - self.throttled_at > QUIET_SECONDS:
            self._throttled_rate = self.throttled_at = None
