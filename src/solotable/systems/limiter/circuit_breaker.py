"""Whether the table was just out of reach: then not every call that may do without it waits for it in turn.

A call that finds the table out of reach has tried for some seconds. For a second after that, calls of
`on_unavailable="allow"` go on at once; those of "block" always ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from solotable.errors import SolotableError, TransportError

SECONDS = 1.0


class CircuitBreaker:
    """Remembers, in this process, that nobody answered."""

    __slots__ = ("_clock", "_until")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: float | None = None

    def note(self, error: SolotableError) -> None:
        """Take notice of why a call failed; a table that answers, if only by refusing, is in reach."""
        if isinstance(error, TransportError):
            self._until = self._clock() + SECONDS

    def end(self) -> None:
        """Take notice of an answer."""
        self._until = None

    def is_on(self) -> bool:
        """Whether nobody answered a moment ago."""
        return self._until is not None and self._clock() < self._until
