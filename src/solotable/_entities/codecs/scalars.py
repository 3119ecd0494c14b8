"""Codecs of Python's scalar types to the canonical content of S, N and B.

A value that does not fit raises ValueError. A codec never rounds and never guesses a time zone.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any, Final
from uuid import UUID

import pydantic
import pydantic_core

from solotable._entities.declare.annotations import hashable, is_email_str
from solotable._entities.declare.fields import is_from_scope
from solotable._values import canonical_number
from solotable._values.lazy_dataclass import dataclass

_MICROSECOND: Final = timedelta(microseconds=1)
_MICROSECOND_DIGITS = 6
PLAIN_INT: Final = 10**38


@dataclass(frozen=True, slots=True)
class Scalar:
    """The codec of a type that is always stored as S, always as N or always as B."""

    kind: str
    encode: Callable[[Any], str]
    decode: Callable[[str], Any]


def utc_text(moment: datetime) -> str:
    """Return an aware datetime as fixed-width UTC text, which sorts by time.

    >>> utc_text(datetime(2026, 11, 15, 13, 11, 10, 123456, UTC))
    '2026-11-15T13:11:10.123456Z'
    """
    # astimezone() would treat a naive datetime as local time.
    offset = moment.utcoffset()
    if offset is None:
        raise ValueError("it has no time zone; add one, as in datetime.now(UTC)")
    if offset:
        moment = moment.astimezone(UTC)
    return moment.isoformat("T", "microseconds")[:26] + "Z"


def read_utc(text: str, *, naive: bool = False) -> datetime:
    """Parse an aware datetime, in UTC; accepts any ISO 8601 text with an offset, or without if `naive`."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        if naive:
            return moment.replace(tzinfo=UTC)
        raise ValueError("it has no time zone")
    return moment.astimezone(UTC)


def str_text(value: Any) -> str:
    """Return a plain str, also for a subclass."""
    if value.__class__ is str:
        if not value.isascii():
            # Raises for a lone surrogate, which Pydantic accepts.
            value.encode()
        return value
    if is_from_scope(value):
        raise ValueError("no tenant is set; write through db.tenant(...) or pass the value")
    return str.__str__(_need(value, str))


def int_text(value: Any) -> str:
    """Return an int in canonical digits."""
    if value.__class__ is not int:
        if isinstance(value, bool):
            raise ValueError("it is a bool")
        value = int(_need(value, int))
    return str(value) if -PLAIN_INT < value < PLAIN_INT else canonical_number(str(value))


def read_int(text: str) -> int:
    """Parse a DynamoDB number that must be whole."""
    try:
        return int(text)
    except ValueError:
        number = Decimal(text)
        if number != number.to_integral_value():
            raise ValueError("it is not a whole number") from None
        return int(number)


def float_text(value: Any) -> str:
    """Return the shortest number that parses to the same float."""
    text = repr(value) if value.__class__ is float else repr(float(_need(value, (float, int))))
    if "." in text and "e" not in text:
        # The text is canonical, except for the zero after a whole number and the sign of zero.
        return text if not text.endswith(".0") else text[:-2] if value else "0"
    if text in ("nan", "inf", "-inf"):
        raise ValueError("DynamoDB has no such number; leave the field out or use None")
    return canonical_number(text)


def decimal_text(value: Any) -> str:
    """Return a Decimal in canonical digits; reject more than 38 digits instead of rounding."""
    if not isinstance(value, Decimal):
        value = Decimal(int_text(value))
    if not value.is_finite():
        raise ValueError("DynamoDB has no such number; leave the field out or use None")
    return canonical_number(str(value))


def bytes_text(value: Any) -> str:
    """Return bytes as base64."""
    return b64encode(_need(value, (bytes, bytearray))).decode("ascii")


def _date_text(value: Any) -> str:
    if isinstance(value, datetime):
        raise ValueError("it is a datetime, not a date; use its .date()")
    return date.isoformat(_need(value, date))


def _time_text(value: Any) -> str:
    return time.isoformat(_need(value, time), timespec="microseconds")


def timedelta_text(value: Any) -> str:
    """Return a timedelta as exact decimal seconds."""
    micros = _need(value, timedelta) // _MICROSECOND
    whole, fraction = divmod(abs(micros), 10**_MICROSECOND_DIGITS)
    text = f"{whole}.{fraction:06d}".rstrip("0") if fraction else str(whole)
    return "-" + text if micros < 0 else text


def _read_timedelta(text: str) -> timedelta:
    whole, _, fraction = text.partition(".")
    if len(fraction) > _MICROSECOND_DIGITS:
        raise ValueError("it is finer than a microsecond")
    return timedelta(microseconds=int(whole + fraction.ljust(_MICROSECOND_DIGITS, "0")))


def _uuid_text(value: Any) -> str:
    return str(_need(value, UUID))


def _secret_text(value: Any) -> str:
    return str_text(_need(value, pydantic.SecretStr).get_secret_value())


def _secret_bytes(value: Any) -> str:
    return bytes_text(_need(value, pydantic.SecretBytes).get_secret_value())


def _need(value: Any, wanted: type | tuple[type, ...]) -> Any:
    if not isinstance(value, wanted):
        raise ValueError(f"it is {type(value).__name__}")
    return value


def _same(text: str) -> str:
    return text


_STR: Final = Scalar("S", str_text, _same)
_DATETIME: Final = Scalar("S", utc_text, read_utc)
_DATE: Final = Scalar("S", _date_text, date.fromisoformat)

SCALARS: Final[Mapping[Any, Scalar]] = {
    str: _STR,
    int: Scalar("N", int_text, read_int),
    float: Scalar("N", float_text, float),
    Decimal: Scalar("N", decimal_text, Decimal),
    bytes: Scalar("B", bytes_text, b64decode),
    datetime: _DATETIME,
    pydantic.AwareDatetime: _DATETIME,
    pydantic.PastDatetime: _DATETIME,
    pydantic.FutureDatetime: _DATETIME,
    date: _DATE,
    pydantic.PastDate: _DATE,
    pydantic.FutureDate: _DATE,
    time: Scalar("S", _time_text, time.fromisoformat),
    timedelta: Scalar("N", timedelta_text, _read_timedelta),
    UUID: Scalar("S", _uuid_text, UUID),
    pydantic.SecretStr: Scalar("S", _secret_text, pydantic.SecretStr),
    pydantic.SecretBytes: Scalar("B", _secret_bytes, lambda text: pydantic.SecretBytes(b64decode(text))),
}


def scalar_of(annotation: Any) -> Scalar | None:
    """Return the scalar of a type; None when it has none."""
    if is_email_str(annotation):
        return _STR
    return SCALARS.get(annotation) if hashable(annotation) else None


def enum_scalar(enum: type[Enum]) -> Scalar | None:
    """Return the scalar of an Enum's values; None when they are not all of one type."""
    scalar = _scalar_of_all([member.value for member in enum])
    if scalar is None:
        return None
    value_text, value_read = scalar.encode, scalar.decode
    members = {value_text(member.value): member for member in enum}

    def text(value: Any) -> str:
        # Models with `use_enum_values` hold the plain value.
        return value_text(value._value_ if value.__class__ is enum else enum(value).value)

    def read(stored: str) -> Enum:
        member = members.get(stored)
        # Call the Enum for combined flags and `_missing_`.
        return enum(value_read(stored)) if member is None else member

    return Scalar(scalar.kind, text, read)


def literal_scalar(choices: Sequence[Any]) -> Scalar | None:
    """Return the scalar of a Literal; None when its choices are not all of one type."""
    scalar = _scalar_of_all([choice.value if isinstance(choice, Enum) else choice for choice in choices])
    if scalar is None:
        return None
    texts = {
        choice: scalar.encode(choice.value if isinstance(choice, Enum) else choice) for choice in choices
    }
    values = {text: choice for choice, text in texts.items()}

    def text(value: Any) -> str:
        found = texts.get(value)
        if found is None:
            raise ValueError(f"it is not one of {', '.join(map(repr, choices))}")
        return found

    def read(stored: str) -> Any:
        if stored not in values:
            raise ValueError(f"it is not one of {', '.join(map(repr, choices))}")
        return values[stored]

    return Scalar(scalar.kind, text, read)


def _scalar_of_all(values: Sequence[Any]) -> Scalar | None:
    types = {
        next((base for base in (str, int, bytes) if isinstance(value, base)), type(value)) for value in values
    }
    if len(types) != 1 or any(isinstance(value, bool) for value in values):
        return None
    return SCALARS.get(types.pop())


_SET_MEMBERS: Final[Mapping[type, str]] = {str: "S", int: "N", float: "N", Decimal: "N", bytes: "B"}


def plain(value: Any) -> Any:
    """Convert Pydantic's output so that every leaf is a str, int, float, Decimal, bool, bytes or None."""
    match value:
        case None | bool():
            return value
        case Enum():
            return plain(value.value)
        case str():
            return str_text(value)
        case float() if not isfinite(value):
            raise ValueError("DynamoDB has no NaN and no infinity; leave the field out or use None")
        case int() | float() | Decimal() | bytes():
            return value
        case Mapping():
            return {plain_name(name): plain(member) for name, member in value.items()}
        case AbstractSet() | list() | tuple() | deque():
            return _plain_members(value)
        case datetime():
            return utc_text(value)
        case timedelta():
            # In Pydantic's format, so that Pydantic recognises it in a union.
            return pydantic_core.to_jsonable_python(value)
        case _:
            scalar = SCALARS.get(type(value))
            return pydantic_core.to_jsonable_python(value) if scalar is None else _content(scalar, value)


def _plain_members(value: AbstractSet[Any] | Sequence[Any]) -> Any:
    members = [plain(member) for member in value]
    kinds = {_SET_MEMBERS.get(type(member)) for member in members}
    # DynamoDB has no other sets and no empty set; Pydantic decodes a list to a set.
    if isinstance(value, AbstractSet) and len(kinds) == 1 and None not in kinds:
        return set(members)
    return members


def _content(scalar: Scalar, value: Any) -> Any:
    text = scalar.encode(value)
    return b64decode(text) if scalar.kind == "B" else text


def plain_name(name: Any) -> str:
    """Return a mapping's key as a name in a DynamoDB map."""
    text = plain(name)
    if isinstance(text, (str, int, Decimal)) and not isinstance(text, bool) and text != "":
        return str(text)
    raise ValueError(f"a name in a map must be a string that is not empty, got {name!r}")
