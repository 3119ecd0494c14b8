"""Log each request as one line with fields."""

from __future__ import annotations

import logging

from solotable._store.observation import Observation


class LogObserver:
    """Logs requests: successes at `level`, retried and failed ones at WARNING.

    `slow_seconds` logs slower requests at WARNING too. The record's `solotable` attribute has the observation
    for a structured formatter.
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        level: int = logging.DEBUG,
        slow_seconds: float | None = None,
    ) -> None:
        self._logger = logger or logging.getLogger("solotable.requests")
        self._level = level
        self._slow_seconds = slow_seconds

    def __call__(self, observation: Observation) -> None:
        """Log one request."""
        seen = observation
        slow = self._slow_seconds is not None and seen.seconds > self._slow_seconds
        # A failed condition is an answer, and not a fault.
        failed = seen.error is not None and seen.error != "ConditionFailed"
        level = logging.WARNING if failed or slow or seen.attempt > 1 else self._level
        if not self._logger.isEnabledFor(level):
            return
        parts = [seen.operation, ",".join(seen.tables)]
        named = (
            ("index", seen.index),
            ("entity", seen.entity),
            ("pattern", seen.pattern),
            ("error", seen.error),
        )
        parts += [f"{name}={value}" for name, value in named if value is not None]
        parts += [f"ms={seen.seconds * 1000:.1f}", f"items={seen.items}"]
        parts += [f"rcu={seen.consumed.rcu:g}", f"wcu={seen.consumed.wcu:g}"]
        if seen.attempt > 1:
            parts.append(f"attempt={seen.attempt}")
        self._logger.log(level, " ".join(parts), extra={"solotable": seen})
