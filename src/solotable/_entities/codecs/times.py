"""Codecs of times with a declared format: ISO 8601 text of a precision, and numbers since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from solotable._entities.declare.fields import Epoch, Iso, truncate

from .scalars import Scalar, read_int, read_utc

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}


def epoch_text(moment: datetime) -> str:
    """Return an aware datetime as whole seconds since 1970, cut to the second."""
    return str((_in_utc(moment) - _EPOCH) // timedelta(seconds=1))


def _read_epoch(text: str, step: int) -> datetime:
    return _EPOCH + timedelta(microseconds=int(Decimal(text) // 1) * step)


def _read_seconds(text: str) -> datetime:
    return _EPOCH + timedelta(seconds=read_int(text))


#: Epoch seconds, the format of DynamoDB's time to live.
TTL_SECONDS: Final = Scalar("N", epoch_text, _read_seconds)


def time_scalar(time_format: Iso | Epoch) -> Scalar:
    """Return the codec of a format; it rejects times that are finer, and reads them truncated."""
    step, unit = time_format.step, _UNITS[time_format.precision]

    def checked(value: Any) -> datetime:
        moment = _in_utc(value)
        if moment.microsecond % step:
            raise ValueError(f"it is finer than the {unit} of {time_format}; truncate it")
        return moment

    if isinstance(time_format, Epoch):
        width = timedelta(microseconds=step)
        return Scalar(
            "N",
            lambda value: str((checked(value) - _EPOCH) // width),
            lambda text: _read_epoch(text, step),
        )
    offset = time_format.offset

    def encode(value: Any) -> str:
        return checked(value).isoformat("T", unit)[:-6] + offset

    def decode(text: str) -> datetime:
        moment: datetime = truncate(read_utc(text, naive=not offset), step)
        return moment

    return Scalar("S", encode, decode)


def _in_utc(value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise ValueError(f"it is {type(value).__name__}")
    # astimezone() would treat a naive datetime as local time.
    if value.utcoffset() is None:
        raise ValueError("it has no time zone; add one, as in datetime.now(UTC)")
    return value if value.tzinfo is UTC else value.astimezone(UTC)
