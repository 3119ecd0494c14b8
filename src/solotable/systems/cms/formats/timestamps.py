"""The time as keys hold it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]


def now_ms() -> datetime:
    """Return the time in UTC, cut to the milliseconds that a key has room for."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
