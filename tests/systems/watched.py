"""An engine that is watched: every request is noted, and a test may slip in before one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solotable._protocol.requests import Request
from solotable.testing import RecordingEngine


class Watched(RecordingEngine):
    """Leaves the engine open, as it is the fixture's, and lets a test slip in before a request."""

    before: tuple[type[Request[Any]], Callable[[], object]] | None = None
    _skipped = 0

    def slip_in(self, kind: type[Request[Any]], action: Callable[[], object], *, after: int = 0) -> None:
        """Do something before the next request of a kind, or `after` some of them; it may raise."""
        self.before = (kind, action)
        self._skipped = after

    def handle(self, request: Request[Any], /) -> Any:
        if self.before is not None and isinstance(request, self.before[0]) and self._skipped:
            self._skipped -= 1
        elif self.before is not None and isinstance(request, self.before[0]):
            action, self.before = self.before[1], None
            action()
        return super().handle(request)

    def close(self) -> None:
        """Do nothing."""
