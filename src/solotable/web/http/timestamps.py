"""Moments as requests give them: with a time zone, and of our time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def _in_our_time(moment: datetime) -> datetime:
    # The first and last hours of the calendar overflow when they are turned to UTC.
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError("is between the years 2000 and 2200")
    return moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(_in_our_time)]
