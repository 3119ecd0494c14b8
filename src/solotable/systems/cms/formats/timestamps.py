"""The current time with the precision of keys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Now = Callable[[], datetime]


def now_ms() -> datetime:
    """Return the time in UTC, truncated to milliseconds as in keys."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
