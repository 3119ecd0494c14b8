"""A clock that a test controls, and that waiting advances."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: The start of every clock, so that a test sees the same times in every run.
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock for an engine and a store; calling it returns seconds since the epoch.

    >>> clock = Clock()
    >>> clock.tick(90)
    >>> clock.now.isoformat(), clock() == clock.now.timestamp()
    ('2026-01-01T00:01:30+00:00', True)
    """

    def __init__(self, start: datetime = START) -> None:
        self._now = _aware(start)

    def __call__(self) -> float:
        return self._now.timestamp()

    @property
    def now(self) -> datetime:
        """The time, in UTC."""
        return self._now

    def tick(self, seconds: float | timedelta = 1) -> None:
        """Advance the clock."""
        passed = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        if passed < timedelta():
            raise ValueError(
                f"tick() takes a positive time, got {seconds!r}; use set() to move the clock back."
            )
        self._now += passed

    def set(self, now: datetime) -> None:
        """Set the clock to an earlier or later time."""
        self._now = _aware(now)

    def sleep(self, seconds: float) -> None:
        """Advance the clock without waiting."""
        self.tick(seconds)

    def __repr__(self) -> str:
        return f"Clock({self._now.isoformat()})"


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; write datetime(..., tzinfo=UTC).")
    return moment.astimezone(UTC)
