"""Send control requests with retries, at a pace that AWS accepts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import random
from typing import Any

from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable.errors import OutcomeUnknown, ServiceError, TransportError

_ATTEMPTS = 8
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.5, 30.0
#: AWS throttles after about 20 calls in a row, also if it rejects them; paced calls pass.
AMAZON_PACE_SECONDS = 0.2


@dataclass(kw_only=True)
class ControlClient:
    """Sends control requests to an engine; `sleep` and `clock` may be those of a test."""

    engine: Engine
    #: The least time between two calls.
    pace_seconds: float = AMAZON_PACE_SECONDS
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    _last: float = field(default=0.0, init=False)

    def call(self, operation: str, *, idempotent: bool = False, **members: Any) -> dict[str, Any]:
        """Send a request; repeat it after a transient error.

        After an unknown outcome it is repeated only if it is `idempotent`; reads always are.
        """
        is_safe = idempotent or operation.startswith(("Describe", "Get", "List"))
        attempt = 0
        while True:
            self._keep_pace()
            try:
                reply: dict[str, Any] = self.engine.handle(Control(operation=operation, members=members))
            except (ServiceError, TransportError) as error:
                attempt += 1
                if attempt >= _ATTEMPTS or not _may_repeat(error, is_safe=is_safe):
                    raise
                longest = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
                self.sleep(random() * longest)  # noqa: S311  # jitter
            else:
                return reply

    def find(self, operation: str, *codes: str, **members: Any) -> dict[str, Any]:
        """Send a read; return nothing if its error has one of these codes."""
        try:
            return self.call(operation, **members)
        except ServiceError as error:
            if error.code not in codes:
                raise
            return {}

    def _keep_pace(self) -> None:
        wait = self._last + self.pace_seconds - self.clock()
        if wait > 0:
            # A clock that was set back must not make this wait long.
            self.sleep(min(wait, self.pace_seconds))
        self._last = self.clock()


def _may_repeat(error: ServiceError | TransportError, *, is_safe: bool) -> bool:
    if isinstance(error, ServiceError):
        return error.retryable and (is_safe or error.status < 500)
    return is_safe or not isinstance(error, OutcomeUnknown)


def seconds_of(value: Any) -> float:
    """Return a time of a reply in seconds since the epoch; botocore returns datetimes."""
    return value.timestamp() if isinstance(value, datetime) else float(value)
