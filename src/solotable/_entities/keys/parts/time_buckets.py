"""Time buckets in a partition key: `{at:day}`, `{at:hour}` and `{at:month}`, always in UTC.

Many times share a bucket, so the sort key must contain the field in full.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

from .choose_codec import unwrap
from .codecs import PartCodec

Size = Literal["hour", "day", "month"]
Source = Literal["datetime", "date", "ULID"]

SIZES: dict[str, Size] = {"hour": "hour", "day": "day", "month": "month"}
_WIDTHS: dict[Size, int] = {"hour": 13, "day": 10, "month": 7}
_CROCKFORD = {digit: value for value, digit in enumerate("0123456789ABCDEFGHJKMNPQRSTVWXYZ")}
_ULID_LENGTH, _ULID_TIME = 26, 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BucketText(str):
    """The text of a bucket, in place of a time."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketCodec(PartCodec):
    """Encodes a time to its bucket; decodes a bucket to its text."""

    kind: ClassVar[str] = "bucket"
    size: Size
    source: Source

    def encode(self, value: Any) -> str:
        return str(value) if isinstance(value, BucketText) else self.text(self.number(self.moment(value)))

    def parse(self, text: str) -> BucketText:
        if self.text(_NUMBERS_OF_TEXT[self.size](text)) != text:
            raise ValueError(text)
        return BucketText(text)

    def moment(self, value: Any) -> datetime:
        """Return the time of a value, or raise DataError for another type."""
        if self.source == "datetime":
            if not isinstance(value, datetime):
                raise self.type_error(value, "datetime")
            if value.utcoffset() is None:
                raise self.error(value, "has no time zone; add one, such as UTC")
            try:
                return value.astimezone(UTC)
            except OverflowError:
                raise self.error(
                    value, "is outside the years 0001 to 9999 in UTC; use a time within them"
                ) from None
        if self.source == "date":
            if not isinstance(value, date) or isinstance(value, datetime):
                raise self.type_error(value, "date")
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        return self._time_of_ulid(value)

    def number(self, moment: datetime) -> int:
        """Return the number of a time's bucket, counted in buckets of its size."""
        if self.size == "month":
            return moment.year * 12 + moment.month - 1
        days = moment.toordinal()
        return days if self.size == "day" else days * 24 + moment.hour

    def text(self, number: int) -> str:
        """Return the text of the bucket with this number."""
        if self.size == "month":
            return f"{number // 12:04d}-{number % 12 + 1:02d}"
        if self.size == "day":
            return date.fromordinal(number).isoformat()
        return f"{date.fromordinal(number // 24).isoformat()}T{number % 24:02d}"

    def _time_of_ulid(self, value: Any) -> datetime:
        if not isinstance(value, str) or len(value) != _ULID_LENGTH or not _CROCKFORD.keys() >= set(value):
            raise self.type_error(value, "ULID of 26 upper-case characters")
        milliseconds = 0
        for digit in value[:_ULID_TIME]:
            milliseconds = milliseconds * 32 + _CROCKFORD[digit]
        try:
            return _EPOCH + timedelta(milliseconds=milliseconds)
        except OverflowError:
            raise self.error(value, "has a time after the year 9999, so it is not a ULID") from None


def _number_of_hour(text: str) -> int:
    return date.fromisoformat(text[:10]).toordinal() * 24 + int(text[11:])


def _number_of_day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def _number_of_month(text: str) -> int:
    first = date.fromisoformat(f"{text}-01")
    return first.year * 12 + first.month - 1


_NUMBERS_OF_TEXT: dict[Size, Callable[[str], int]] = {
    "hour": _number_of_hour,
    "day": _number_of_day,
    "month": _number_of_month,
}
_SOURCES: dict[Any, Source] = {datetime: "datetime", date: "date", str: "ULID"}


def bucket_codec(annotation: Any, spec: str, *, where: str, field: str) -> BucketCodec:
    """Return the codec of a time bucket, or raise DeclarationError."""
    plain, optional = unwrap(annotation)
    slot = f"{{{field}:{spec}}}"
    source = _SOURCES.get(plain)
    if source is None:
        raise DeclarationError(
            f"{where}: {slot} is a time bucket, but {field} has no time; "
            "use a datetime, a date, or a str that is a ULID"
        )
    if source == "date" and spec == "hour":
        raise DeclarationError(f"{where}: {slot}: a date has no hours; use {field}:day or {field}:month")
    size = SIZES[spec]
    return BucketCodec(
        size=size,
        source=source,
        width=_WIDTHS[size],
        optional=optional,
        name=f"{where.rpartition('.')[0] or where}.{field}",
        slot=slot,
    )
