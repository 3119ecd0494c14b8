"""Circuit breaker: after the table did not respond, calls that may continue without it do so at once.

A call that cannot reach the table has tried for some seconds. For one second after that, calls with
`on_unavailable="allow"` do not try; those with "block" always do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from solotable.errors import SolotableError, TransportError

SECONDS = 1.0


class CircuitBreaker:
    """Open for a moment after the table did not respond, in this process."""

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: float | None = None

    def record_failure(self, error: SolotableError) -> None:
        """Open it if the table did not respond; an error response is a response."""
        if isinstance(error, TransportError):
            self._until = self._clock() + SECONDS

    def record_success(self) -> None:
        """Close it."""
        self._until = None

    @property
    def is_open(self) -> bool:
        """Whether the table did not respond a moment ago."""
        return self._until is not None and self._clock() < self._until
