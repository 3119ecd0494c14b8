"""Choose the codec of a field in a key by the field's type; reject types without a codec."""

from __future__ import annotations

import re
import types
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, Flag, IntEnum
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import AwareDatetime, FutureDate, FutureDatetime, PastDate, PastDatetime

from solotable._entities.declare.annotations import bare, inner_metadata, is_email_str
from solotable._entities.declare.fields import Epoch, Iso
from solotable._entities.keys.key import KeyFormat
from solotable.errors import DataError, DeclarationError

from .codecs import (
    TIMES,
    ChoiceCodec,
    DateCodec,
    DecimalCodec,
    DigitsCodec,
    EpochCodec,
    FoldedCodec,
    FoldedTextCodec,
    HexCodec,
    NumberCodec,
    PartCodec,
    RawTextCodec,
    TextCodec,
    TimestampCodec,
    UuidCodec,
    escape,
    is_delimited,
)

_INTEGER = re.compile(r"(\+?)0([1-9][0-9]?)d")
_FRACTION = re.compile(r"(\+?)0([1-9][0-9]?)\.([0-9][0-9]?)f")
#: The format of keys that have no other.
NATIVE = KeyFormat()
_TIMESPECS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
#: The digits of the times from 2001 to 2286, which all have the same number of them.
_EPOCH_DIGITS = {"s": 10, "ms": 13}
#: The value types of Pydantic's constrained types.
_PLAIN: dict[Any, type] = {
    AwareDatetime: datetime,
    PastDatetime: datetime,
    FutureDatetime: datetime,
    PastDate: date,
    FutureDate: date,
}


def choose_codec(
    annotation: Any, spec: str = "", *, where: str, field: str = "", key_format: KeyFormat = NATIVE
) -> PartCodec:
    """Return the codec of a field in a template, or raise DeclarationError with the reason.

    `where` names the key (`Section.by_order`); its part before the dot names the entity in messages.
    """
    codec = _native_codec(annotation, spec, where=where, field=field)
    return codec if key_format == NATIVE else _formatted(codec, key_format, where)


def _formatted(codec: PartCodec, key_format: KeyFormat, where: str) -> PartCodec:
    """Return the codec of the same values in another format of keys."""
    fold = None if key_format.case is None else key_format.fold
    common: dict[str, Any] = {"name": codec.name, "slot": codec.slot, "optional": codec.optional}
    if isinstance(codec, TextCodec):
        if not key_format.escape:
            return RawTextCodec(delimiter=key_format.delimiter, fold=fold, **common)
        return codec if fold is None else FoldedTextCodec(fold=fold, **common)
    if isinstance(codec, ChoiceCodec):
        plain = {value: key_format.fold(value) for value in codec.texts}
        texts = {value: escape(text) if key_format.escape else text for value, text in plain.items()}
        for text in texts.values():
            if not is_delimited(text, key_format.delimiter):
                raise DeclarationError(
                    f"{where}: {codec.slot} has the choice {text!r}, which contains the delimiter "
                    f"{key_format.delimiter!r} of the key; rename it, or use another delimiter."
                )
        if len(set(texts.values())) < len(texts):
            raise DeclarationError(
                f"{where}: {codec.slot} has choices that differ only in case, but the key is folded; "
                f"rename one."
            )
        values = {texts[value]: codec.values[codec.texts[value]] for value in texts}
        return replace(codec, texts=texts, values=values, choices=tuple(texts.values()))
    if fold is None or codec.kind in ("number", "digits", "decimal", "epoch", "date"):
        return codec
    return FoldedCodec(inner=codec, fold=fold, width=codec.width, **common)


def _native_codec(annotation: Any, spec: str, *, where: str, field: str) -> PartCodec:
    plain, optional = unwrap(annotation)
    slot = "{" + field + (f":{spec}" if spec else "") + "}"
    entity = where.rpartition(".")[0] or where
    common: dict[str, Any] = {
        "name": f"{entity}.{field}" if field else where,
        "slot": slot,
        "optional": optional,
    }

    def rejection(reason: str) -> DeclarationError:
        return DeclarationError(f"{where}: {slot} {reason}")

    if isinstance(plain, type) and issubclass(plain, IntEnum):
        return _enumerated_digits(plain, _digits(spec, field, common, rejection), rejection)
    if plain is int:
        return NumberCodec(**common) if spec == "d" else _digits(spec, field, common, rejection)
    if plain is Decimal:
        return _decimal(spec, field, common, rejection)
    if plain is datetime:
        return _timestamp(annotation, spec, field, common, rejection)
    codec = _plain_codec(plain, common, rejection)
    if spec:
        raise rejection(f"has a format, but {_named(plain)} takes none; write {{{field}}}")
    return codec


def _timestamp(
    annotation: Any, spec: str, field: str, common: dict[str, Any], rejection: Any
) -> TimestampCodec:
    metadata = (*bare(annotation, ())[1], *inner_metadata(annotation))
    marks = [meta for meta in metadata if isinstance(meta, Iso | Epoch)]
    mark = marks[0] if marks else Iso()
    if isinstance(mark, Epoch):
        padded = _INTEGER.fullmatch(spec)
        if spec and (padded is None or padded[1]):
            raise rejection(f"is stored as Epoch({mark.precision!r}); write {{{field}}} or {{{field}:015d}}")
        digits = int(padded[2]) if padded else _EPOCH_DIGITS[mark.precision]
        precision = _TIMESPECS[mark.precision]
        return EpochCodec(precision=precision, digits=digits, padded=bool(padded), width=digits, **common)
    if spec and spec not in _TIMESPECS:
        raise rejection(f"has an unknown format for a datetime; use {field}:s, {field}:ms or {field}:us")
    precision = _TIMESPECS[spec or mark.precision]
    width = TIMES[precision][1] - 1 + len(mark.offset)
    return TimestampCodec(precision=precision, offset=mark.offset, width=width, **common)


def _plain_codec(plain: Any, common: dict[str, Any], rejection: Any) -> PartCodec:
    if plain is str:
        return TextCodec(**common)
    if plain is date:
        return DateCodec(width=10, **common)
    if plain is UUID:
        return UuidCodec(width=36, **common)
    if plain is bytes:
        return HexCodec(**common)
    if get_origin(plain) is Literal:
        return _choice({value: value for value in get_args(plain)}, common, rejection)
    if isinstance(plain, type) and issubclass(plain, Enum) and not issubclass(plain, Flag):
        return _choice({member.value: member for member in plain}, common, rejection)
    if plain is bool:
        raise rejection("is a bool, which cannot be part of a key; use a Literal of two words")
    if plain is float:
        raise rejection("is a float, which has no exact text; use a Decimal with a width, such as {x:010.2f}")
    raise rejection(
        f"is a {_named(plain)}, which cannot be part of a key; use a str, an int or Decimal with a width, a "
        "datetime, date, UUID, bytes, a Literal of strings or an Enum of strings"
    )


def _choice(values: dict[Any, Any], common: dict[str, Any], rejection: Any) -> ChoiceCodec:
    if not values or not all(isinstance(value, str) for value in values):
        raise rejection("has choices that are not all strings; use strings, or an IntEnum with a width")
    try:
        texts = {str.__str__(value): escape(value) for value in values}
    except DataError as error:
        raise rejection(f"has a choice that cannot be stored: {error}") from None
    return ChoiceCodec(
        texts=texts,
        values={texts[value]: meant for value, meant in values.items()},
        choices=tuple(texts.values()),
        **common,
    )


def _digits(spec: str, field: str, common: dict[str, Any], rejection: Any) -> DigitsCodec:
    found = _INTEGER.fullmatch(spec)
    if found is None or (found[1] and found[2] == "1"):
        raise rejection(
            f"is an int, which sorts correctly only with a fixed width; write {{{field}:06d}} for up to six "
            f"digits, {{{field}:+06d}} if it can be negative, or {{{field}:d}} if the order does not matter"
        )
    width = int(found[2])
    return DigitsCodec(digits=width, limit=10**width, width=width, signed=bool(found[1]), **common)


def _enumerated_digits(enum: type[IntEnum], codec: DigitsCodec, rejection: Any) -> DigitsCodec:
    try:
        choices = tuple(codec.encode(int(member)) for member in enum)
    except DataError as error:
        raise rejection(f"is too narrow for a member of {enum.__name__}: {error}") from None
    return replace(codec, choices=choices, enum=enum)


def _decimal(spec: str, field: str, common: dict[str, Any], rejection: Any) -> DecimalCodec:
    found = _FRACTION.fullmatch(spec)
    if found is None:
        raise rejection(
            f"is a Decimal, which sorts correctly only with a fixed width; write {{{field}:010.2f}} for ten "
            f"characters with two decimals, or {{{field}:+010.2f}} if it can be negative"
        )
    signed, width, decimals = bool(found[1]), int(found[2]), int(found[3])
    digits = width - (1 if decimals else 0)
    if digits - decimals - signed < 1:
        raise rejection("has no digit before the point; declare a greater width")
    return DecimalCodec(digits=digits, decimals=decimals, signed=signed, width=width, **common)


def unwrap(annotation: Any) -> tuple[Any, bool]:
    """Return the plain type of an annotation, and whether None is allowed."""
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation = get_args(annotation)[0]
        elif origin is Union or origin is types.UnionType:
            rest = [each for each in get_args(annotation) if each is not type(None)]
            if len(rest) != 1:
                return annotation, optional
            annotation, optional = rest[0], True
        elif origin is Literal and None in get_args(annotation):
            rest = [each for each in get_args(annotation) if each is not None]
            if not rest:
                return annotation, optional
            annotation, optional = Literal[tuple(rest)], True
        elif hasattr(annotation, "__supertype__"):  # NewType
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":  # `type Name = ...`, from Python 3.12 on
            annotation = annotation.__value__
        elif is_email_str(annotation):
            annotation = str
        elif isinstance(annotation, type) and annotation in _PLAIN:
            annotation = _PLAIN[annotation]
        else:
            return annotation, optional


def _named(annotation: Any) -> str:
    return (
        annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
    )
