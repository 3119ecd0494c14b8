"""Codecs of key parts: unique texts that sort like their values and decode exactly.

Strings are escaped: no text contains a character up to and including `%`, except the `%` of an escape. So
`#` occurs in no value and `$` in no key, and `X$` is an exact upper bound of `X` and of all `X#...`.
Numbers and times have a fixed width. A codec never rounds, cuts or guesses.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any, ClassVar
from uuid import UUID

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError

_SURROGATE = re.compile("[\ud800-\udfff]")
_ODD = re.compile("[\x00-%\ud800-\udfff]")
#: Finds the first character that a key does not contain as it is.
has_odd_character = _ODD.search
_ESCAPED = re.compile("%([01][0-9A-F]|2[0-5])")
_ESCAPED_TEXT = re.compile("(?:[^\x00-%\ud800-\udfff]|%(?:[01][0-9A-F]|2[0-5]))*")
_ESCAPES = {code: f"%{code:02X}" for code in range(0x26)}
_NINES = str.maketrans("0123456789", "9876543210")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Precision of timestamps: the unit in microseconds, and the length of the text.
TIMES = {"seconds": (1_000_000, 20), "milliseconds": (1_000, 24), "microseconds": (1, 27)}


def escape(text: str) -> str:
    """Percent-encode every character from U+0000 through `%`. The order of UTF-8 bytes stays the same.

    >>> escape("50% of #7")
    '50%25%20of%20%237'
    """
    if _ODD.search(text) is None:
        return text
    if (found := _SURROGATE.search(text)) is not None:
        raise DataError(
            f"{_shown(text)} has the lone surrogate U+{ord(found[0]):04X}, which UTF-8 cannot store; "
            "decode the text correctly first"
        )
    return text.translate(_ESCAPES)


def unescape(text: str) -> str:
    """Reverse `escape`; raise ValueError for a text that `escape` never returns."""
    if _ODD.search(text) is None:
        return text
    if _ESCAPED_TEXT.fullmatch(text) is None:
        raise ValueError(f"{_shown(text)} is not escaped text")
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an int of more than 4300 digits
        return f"{type(value).__name__} of too many digits"
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCodec(ABC):
    """The codec of one field in a key."""

    #: The kind for the linter: text, number, digits, decimal, timestamp, epoch, date, uuid, hex, choice
    #: or folded.
    kind: ClassVar[str]
    #: The entity and field for messages: `Section.order`.
    name: str
    #: The field in the template for messages: `{order:06d}`.
    slot: str
    #: Whether the field may be None; then the item has no such key.
    optional: bool = False
    #: The number of characters of each encoded value; None when it varies.
    width: int | None = None
    #: Every text that `encode` can return, for a declared set.
    choices: tuple[str, ...] | None = None

    @property
    def step(self) -> int:
        """The precision of times in microseconds; 0 for other values."""
        return 0

    @abstractmethod
    def encode(self, value: Any) -> str:
        """Return the value's text, or raise DataError."""

    @abstractmethod
    def parse(self, text: str) -> Any:
        """Return the value of a well-formed text, or raise ValueError."""

    def decode(self, text: str) -> Any:
        """Return the value of a text; raise ValueError for a text that `encode` never returns."""
        try:
            value = self.parse(text)
            exact = self.encode(value) == text
        except (ValueError, ArithmeticError, DataError):  # Decimal raises an ArithmeticError
            exact, value = False, None
        if not exact:
            raise ValueError(f"{_shown(text)} is not an encoded {self.slot}")
        return value

    def error(self, value: object, reason: str) -> DataError:
        """Return the error for a value."""
        return DataError(
            f"{self.name} = {_shown(value)} {reason}", public_message=f"{self.name} cannot be part of a key."
        )

    def type_error(self, value: object, wanted: str) -> DataError:
        """Return the error for a value of another type."""
        return self.error(
            value, f"is a {type(value).__name__}, but {self.slot} needs {wanted}; convert it first"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TextCodec(PartCodec):
    """A str, escaped."""

    kind: ClassVar[str] = "text"

    def encode(self, value: Any) -> str:
        if value.__class__ is not str and not isinstance(value, str):
            raise self.type_error(value, "str")
        if _ODD.search(value) is None:
            return str.__str__(value)  # a plain str, also for a member of a str Enum
        if _SURROGATE.search(value) is not None:
            raise self.error(
                value,
                "has a lone surrogate, which UTF-8 cannot store; decode the text correctly first",
            )
        return value.translate(_ESCAPES)

    def parse(self, text: str) -> str:
        return unescape(text)

    def decode(self, text: str) -> str:
        return unescape(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedTextCodec(TextCodec):
    """A str, folded to one case and escaped; its case is lost in the key."""

    fold: Callable[[str], str]
    #: Whether folding may change a value; it must not change a tenant.
    folds: bool = True

    def encode(self, value: Any) -> str:
        return TextCodec.encode(self, _folded(self, value, self.fold, folds=self.folds))

    def decode(self, text: str) -> str:
        return PartCodec.decode(self, text)  # type: ignore[no-any-return]  # `parse` returns a str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTextCodec(PartCodec):
    """A str as it is, or folded to one case; a text that contains the delimiter is rejected."""

    kind: ClassVar[str] = "text"
    delimiter: str
    fold: Callable[[str], str] | None = None
    #: As in FoldedTextCodec.
    folds: bool = True

    def encode(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self.type_error(value, "str")
        text = str.__str__(value)
        if self.fold is not None:
            text = _folded(self, text, self.fold, folds=self.folds)
        if not is_delimited(text, self.delimiter):
            raise self.error(
                value,
                f"contains the delimiter {self.delimiter!r} of {self.slot}, or ends like the start of it, so "
                "another entity could have the same key; use a value without it",
            )
        if _SURROGATE.search(text) is not None:
            raise self.error(
                value,
                "has a lone surrogate, which UTF-8 cannot store; decode the text correctly first",
            )
        return text

    def parse(self, text: str) -> str:
        return text


def is_delimited(text: str, delimiter: str) -> bool:
    """Return whether a delimiter after the text is the first one in it.

    >>> is_delimited("a:", "::"), is_delimited("a:b", "::")
    (False, True)
    """
    return (text + delimiter).find(delimiter) == len(text)


def _folded(codec: PartCodec, value: Any, fold: Callable[[str], str], *, folds: bool) -> str:
    if not isinstance(value, str):
        raise codec.type_error(value, "str")
    text = fold(str.__str__(value))
    if not folds and text != value:
        raise codec.error(
            value, f"would be {text!r} in {codec.slot}, which another tenant could be; use {text!r}"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedCodec(PartCodec):
    """A value other than a str whose text is folded to one case, such as a time or a UUID."""

    kind: ClassVar[str] = "folded"
    inner: PartCodec
    fold: Callable[[str], str]

    @property
    def step(self) -> int:
        return self.inner.step

    def encode(self, value: Any) -> str:
        return self.fold(self.inner.encode(value))

    def parse(self, text: str) -> Any:
        # Times have upper-case letters; UUIDs and hexadecimal digits are the same in both cases.
        return self.inner.parse(text.upper())


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceCodec(PartCodec):
    """One of a declared set of texts: a Literal, or an Enum of str values."""

    # No width even if all texts have the same length: another choice must not break the template.
    kind: ClassVar[str] = "choice"
    texts: Mapping[str, str] = field(hash=False)
    values: Mapping[str, Any] = field(hash=False)

    def encode(self, value: Any) -> str:
        # With `use_enum_values`, Pydantic stores the plain value of an Enum's member.
        plain = value.value if isinstance(value, Enum) else value
        text = self.texts.get(plain) if isinstance(plain, str) else None
        if text is None or (isinstance(value, Enum) and self.values[text] != value):
            raise self.error(value, f"is not one of {_listed(self.texts)}; use one of these")
        return text

    def parse(self, text: str) -> Any:
        if text not in self.values:
            raise ValueError(text)
        return self.values[text]


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitsCodec(PartCodec):
    """An int of a declared width; a negative int is `-` and the nines' complement of its digits."""

    kind: ClassVar[str] = "digits"
    digits: int
    #: The smallest number with more digits.
    limit: int
    signed: bool
    enum: type[IntEnum] | None = None

    def encode(self, value: Any) -> str:
        if type(value) is int and 0 <= value < self.limit and self.enum is None:
            return str(value).zfill(self.digits)  # the usual case, twice as fast
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.type_error(value, "int")
        if self.enum is not None and value not in self.enum.__members__.values():
            raise self.error(value, f"is not a member of {self.enum.__name__}; use a member")
        number = int(value)
        if 0 <= number < self.limit:
            return str(number).zfill(self.digits)
        if self.signed and -(10 ** (self.digits - 1)) < number < 0:
            return "-" + f"{-number:0{self.digits - 1}d}".translate(_NINES)
        least = f"-{'9' * (self.digits - 1)}" if self.signed else "0"
        raise self.error(
            value,
            f"does not fit {self.slot}, which holds {least} to {'9' * self.digits}; "
            f"{_wider(self.signed, number < 0)}",
        )

    def parse(self, text: str) -> int:
        number = -int(text[1:].translate(_NINES)) if text.startswith("-") else int(text)
        return number if self.enum is None else self.enum(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberCodec(PartCodec):
    """An int without padding; its texts do not sort like the numbers."""

    kind: ClassVar[str] = "number"

    def encode(self, value: Any) -> str:
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.type_error(value, "int")
        try:
            return str(int(value))
        except ValueError:  # Python refuses to print an int of more than 4300 digits
            raise self.error(value, "is too long for a key; use a smaller value") from None

    def parse(self, text: str) -> int:
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalCodec(PartCodec):
    """A Decimal of a declared width and number of decimals; the sign works as in DigitsCodec."""

    kind: ClassVar[str] = "decimal"
    digits: int  # before and after the point together
    decimals: int
    signed: bool

    def encode(self, value: Any) -> str:
        if not isinstance(value, Decimal | int) or isinstance(value, bool):
            raise self.type_error(value, "Decimal")
        number = Decimal(value)
        if not number.is_finite():
            raise self.error(value, "is not finite, so it cannot be part of a key")
        negative = number < 0
        digits = self.digits - negative
        # Check this before any arithmetic: 1E+999999 would take a million digits.
        if (negative and not self.signed) or (number and number.adjusted() >= digits - self.decimals):
            raise self.error(value, f"does not fit {self.slot}; {_wider(self.signed, negative)}")
        text = f"{self._scaled(number, value):0{digits}d}"
        if self.decimals:
            text = f"{text[: -self.decimals]}.{text[-self.decimals :]}"
        return "-" + text.translate(_NINES) if negative else text

    def _scaled(self, number: Decimal, value: object) -> int:
        _, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        shift = exponent + self.decimals
        if not number:
            return 0
        if shift < 0 and any(digits[shift:]):
            raise self.error(
                value,
                f"has more than the {self.decimals} decimals of {self.slot}; round it or declare more",
            )
        scaled = digits[:shift] if shift < 0 else digits + (0,) * shift
        return int("".join(map(str, scaled)))

    def parse(self, text: str) -> Decimal:
        return Decimal("-" + text[1:].translate(_NINES) if text.startswith("-") else text)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimestampCodec(PartCodec):
    """An aware datetime, in UTC with a declared precision."""

    kind: ClassVar[str] = "timestamp"
    precision: str
    offset: str = "Z"

    @property
    def step(self) -> int:
        return TIMES[self.precision][0]

    def encode(self, value: Any) -> str:
        return self.moment(value).isoformat(timespec=self.precision)[:-6] + self.offset

    def moment(self, value: Any) -> datetime:
        """Return the time of a value in UTC; reject one that is finer than the precision."""
        if not isinstance(value, datetime):
            raise self.type_error(value, "datetime")
        moment = value if value.tzinfo is UTC else self._in_utc(value)
        if moment.microsecond % TIMES[self.precision][0]:
            raise self.error(
                value,
                f"is finer than the {self.precision} of {self.slot}; round it or declare a finer format",
            )
        return moment

    def _in_utc(self, value: datetime) -> datetime:
        if value.utcoffset() is None:
            raise self.error(value, "has no time zone; add one, such as UTC")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            raise self.error(
                value, "is outside the years 0001 to 9999 in UTC; use a time within them"
            ) from None

    def parse(self, text: str) -> datetime:
        moment = datetime.fromisoformat(text)
        return moment if self.offset else moment.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochCodec(TimestampCodec):
    """An aware datetime, as the digits of its seconds or milliseconds since 1970."""

    kind: ClassVar[str] = "epoch"
    digits: int
    padded: bool

    def encode(self, value: Any) -> str:
        number = self._number(value)
        if not self._least <= number < 10**self.digits:
            raise self.error(
                value, f"does not have {self.digits} digits in {self.slot}; declare a width, such as 015d"
            )
        return str(number).zfill(self.digits)

    def parse(self, text: str) -> datetime:
        return _EPOCH + timedelta(microseconds=int(text) * self.step)

    def nearest(self, value: Any) -> datetime:
        """Return the value, or the first or last time that has the digits."""
        number = self._number(value)
        if number < self._least:
            return self.parse(str(self._least))
        return self.parse("9" * self.digits) if number >= 10**self.digits else self.moment(value)

    @property
    def _least(self) -> int:
        return 0 if self.padded else 10 ** (self.digits - 1)

    def _number(self, value: Any) -> int:
        return (self.moment(value) - _EPOCH) // timedelta(microseconds=self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class DateCodec(PartCodec):
    """A date, such as `2026-11-15`."""

    kind: ClassVar[str] = "date"

    def encode(self, value: Any) -> str:
        if not isinstance(value, date) or isinstance(value, datetime):
            raise self.type_error(value, "date")
        return value.isoformat()

    def parse(self, text: str) -> date:
        return date.fromisoformat(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class UuidCodec(PartCodec):
    """A UUID, in its canonical lower-case text."""

    kind: ClassVar[str] = "uuid"

    def encode(self, value: Any) -> str:
        if not isinstance(value, UUID):
            raise self.type_error(value, "UUID")
        return str(value)

    def parse(self, text: str) -> UUID:
        return UUID(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class HexCodec(PartCodec):
    """Bytes, as lower-case hexadecimal digits."""

    kind: ClassVar[str] = "hex"

    def encode(self, value: Any) -> str:
        if not isinstance(value, bytes):
            raise self.type_error(value, "bytes")
        return value.hex()

    def parse(self, text: str) -> bytes:
        return bytes.fromhex(text)


def _listed(texts: Mapping[str, str]) -> str:
    return ", ".join(map(repr, texts))


def _wider(signed: bool, negative: bool) -> str:
    if negative and not signed:
        return "add a + before the width for negative numbers"
    return "use a smaller value or declare a greater width"
