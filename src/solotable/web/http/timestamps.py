"""Timestamps in requests: with a time zone, between the years 2000 and 2200."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def _to_utc(timestamp: datetime) -> datetime:
    # The first and last hours of the calendar overflow when they are converted to UTC.
    if not _EARLIEST <= timestamp <= _LATEST:
        raise ValueError("must be between the years 2000 and 2200")
    return timestamp.astimezone(UTC)


Timestamp = Annotated[AwareDatetime, AfterValidator(_to_utc)]
