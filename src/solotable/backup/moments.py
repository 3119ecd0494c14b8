"""Moments in text: ISO 8601, a time ago, or a sequence number."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from solotable.errors import RecoveryError

_AGO = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|second|m|min|minute|h|hour|d|day)s?(?:\s+ago)?")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}


def parse_moment(text: str, now: datetime | None = None) -> datetime | int | None:
    """Parse `2030-01-31T12:00:00Z`, `10 minutes ago`, `36h`, `#1234` (a sequence number) or `now` (None).

    A time without a zone is in UTC.

    >>> parse_moment("#17")
    17
    >>> parse_moment("10 minutes ago", datetime(2030, 1, 31, 12, tzinfo=UTC))
    datetime.datetime(2030, 1, 31, 11, 50, tzinfo=datetime.timezone.utc)
    """
    given = text.strip().lower()
    if given in ("now", "latest"):
        return None
    if re.fullmatch(r"#\d+", given):
        return int(given[1:])
    ago = _AGO.fullmatch(given)
    try:
        if ago is not None:
            seconds = float(ago[1]) * _SECONDS.get(ago[2], 86_400)
            return (now or datetime.now(UTC)) - timedelta(seconds=seconds)
        found = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise RecoveryError(
            f"A moment is a time (2030-01-31T12:00:00Z), a time ago (10 minutes ago, 36h), a sequence number "
            f"(#1234) or now; got {text!r}."
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
