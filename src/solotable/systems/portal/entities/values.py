"""Values that entities share: ids, names of products, tags, and times in one canonical form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from solotable.systems.texts import clean_line, clean_value

Status = Literal["Draft", "Approved", "Deprecated", "Expired"]
STATUSES: tuple[Status, ...] = ("Draft", "Approved", "Deprecated", "Expired")
ExpiryPolicy = Literal["soft_expire", "hard_expire"]
#: Matches every suite, or every concept, of a subscription.
ANY_PRODUCT = "*"
MAX_TAGS = 50
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def parse_time(value: object) -> object:
    """Return a time in UTC; a day is its first moment. A number or a time without an offset is an error.

    C3.10: one canonical form, whatever the client sends.

    >>> parse_time("2026-11-17T10:00:00.5+01:00").isoformat()
    '2026-11-17T09:00:00.500000+00:00'
    >>> parse_time("2026-11-17").isoformat()
    '2026-11-17T00:00:00+00:00'
    """
    if isinstance(value, str):
        text = value.strip()
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError("is not a time in ISO 8601, such as 2026-11-17T10:00:00Z") from None
        if "T" not in text.upper() and ":" not in text:
            value = value.replace(tzinfo=UTC)
    if not isinstance(value, datetime):
        raise ValueError("is not a time in ISO 8601, such as 2026-11-17T10:00:00Z")
    if value.tzinfo is None:
        raise ValueError("has no offset from UTC; end it with Z")
    try:
        moment = value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside of the years 1970 to 2199") from None
    if not _EARLIEST <= moment < _LATEST:
        raise ValueError("is outside of the years 1970 to 2199")
    return moment


def _unique(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


def _not_any(name: str) -> str:
    if name == ANY_PRODUCT:
        raise ValueError("must not be '*', which stands for every product")
    return name


#: No `#` and no `:`, which separate the parts of keys and of notification ids.
UserId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_.@+-]+$")]
ContentId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
Time = Annotated[datetime, BeforeValidator(parse_time)]
# Lengths stand before the cleaning: they are of the string, and messages count characters.
Line = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(clean_line)]
VersionText = Annotated[str, Field(min_length=1, max_length=50), BeforeValidator(clean_line)]
Text = Annotated[str, Field(max_length=5000), BeforeValidator(clean_value)]
#: Any characters: keys escape them (C3.4).
ProductName = Annotated[
    str, Field(min_length=1, max_length=100), BeforeValidator(clean_line), AfterValidator(_not_any)
]
#: `*` stands for every product.
ProductFilter = Annotated[str, Field(min_length=1, max_length=100), BeforeValidator(clean_line)]
Tag = Annotated[str, Field(min_length=1, max_length=50), BeforeValidator(clean_line)]
#: At most 50, each once.
Tags = Annotated[list[Tag], Field(max_length=MAX_TAGS), AfterValidator(_unique)]
