"""A clock that shows what a test tells it, and that waiting moves on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: Where every clock starts, so that a test sees the same times in every run.
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock for an engine and a store: called, it gives seconds since the epoch.

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
        """Let time pass."""
        passed = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        if passed < timedelta():
            raise ValueError(f"Time does not run backwards: {seconds!r}; use set().")
        self._now += passed

    def set(self, now: datetime) -> None:
        """Put the clock to a time, earlier or later."""
        self._now = _aware(now)

    def sleep(self, seconds: float) -> None:
        """Wait, which takes no time outside of the test."""
        self.tick(seconds)

    def __repr__(self) -> str:
        return f"Clock({self._now.isoformat()})"


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone; write datetime(..., tzinfo=UTC).")
    return moment.astimezone(UTC)
