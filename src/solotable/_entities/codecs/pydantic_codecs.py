"""Codecs that use Pydantic's TypeAdapter: unions, Any, custom types, and fields stored as JSON.

A class definition raises DeclarationError for a type that Pydantic cannot serialize.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Final, get_origin

import pydantic
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
from pydantic.functional_serializers import PlainSerializer
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import is_typeddict

from solotable import _values
from solotable._entities.declare.annotations import arms_of, nests
from solotable._values import AttributeValue
from solotable.errors import DataError, StoredDataError

from .containers import (
    CODEC_ERRORS,
    Codec,
    FieldSite,
    cannot_decode,
    cannot_store,
    declaration_error,
    reject,
    type_name,
    wrong_type,
)
from .scalars import plain, scalar_of

#: A JSON text with more brackets than this is parsed before it is stored.
_DEEPEST_JSON: Final = 100


class _TypeCheckOnly(GenerateJsonSchema):
    """Checks the types and accepts a default without a JSON form."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 -- as Pydantic declares it


def _adapter(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> pydantic.TypeAdapter[Any]:
    whole: Any = Annotated[(annotation, *metadata)] if metadata else annotation
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(whole)
        # Pydantic validates more than it can serialize, such as Callable; its JSON schema shows that.
        adapter.json_schema(mode="serialization", schema_generator=_TypeCheckOnly)
    except (
        PydanticSchemaGenerationError,
        PydanticUserError,
        PydanticUndefinedAnnotation,
        TypeError,
    ) as error:
        what = f"is {type_name(annotation)}, which has no DynamoDB form"
        raise declaration_error(site, what, "use a type that Pydantic can serialize to JSON") from error
    return adapter


def adapted(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Return the codec of a type that only Pydantic can serialize: Any, dataclasses, custom types."""
    for arm in arms_of(annotation):
        origin = get_origin(arm) or arm
        if site.flat and (nests(origin) and not any(isinstance(m, PlainSerializer) for m in metadata)):
            what = f"is {type_name(annotation)}, which flat mode does not store"
            reject(site, what, "mark it Json() or split it into fields")
    free = annotation in (Any, object)
    adapter = _adapter(site, annotation, metadata)
    where, flat = site.where, site.flat

    def encode(value: Any) -> AttributeValue:
        try:
            given = adapter.dump_python(value, by_alias=True, round_trip=True, warnings="error")
            encoded = _values.dump(plain(given))
        except (*CODEC_ERRORS, DataError) as error:
            raise cannot_store(where, value, error) from error
        if flat and ("M" in encoded or "L" in encoded):
            raise cannot_store(
                where, value, ValueError("flat mode stores no lists and no maps; mark it Json()")
            )
        return encoded

    def decode(value: AttributeValue) -> Any:
        if flat and ("M" in value or "L" in value):
            raise wrong_type(site, value, "neither a list nor a map")
        try:
            stored = _values.load(value)
            return stored if free else adapter.validate_python(stored)
        except CODEC_ERRORS as error:
            raise cannot_decode(where, value, error) from error

    nested = is_typeddict(annotation) or is_dataclass(annotation)
    return Codec("M" if nested else None, encode, decode, optional=free)


def union(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Return the codec of a union; it rejects a value that would be decoded as another member's type."""
    kinds = [
        arm for arm in arms_of(annotation) if (scalar := scalar_of(arm)) is not None and scalar.kind == "S"
    ]
    if str in kinds and len(kinds) > 1:
        each = ", ".join(map(type_name, kinds))
        what = f"is {type_name(annotation)}, and each of {each} is stored as a string"
        reject(site, what, "use one of them, because they cannot be distinguished when stored")
    codec = adapted(site, annotation, metadata)

    def encode(value: Any) -> AttributeValue | None:
        encoded = codec.encode(value)
        if encoded is None:
            return None
        try:
            decoded = codec.decode(encoded)
        except StoredDataError as error:  # the value is not stored yet, so the caller gets a DataError
            raise cannot_store(site.where, value, error) from error
        if decoded != value:
            reason = f"it would be decoded as {decoded!r}, because the union's types are stored the same way"
            raise cannot_store(site.where, value, ValueError(reason))
        return encoded

    return replace(codec, encode=encode)


def json_text(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Return the codec of a field that is stored as one JSON text."""
    adapter = _adapter(site, annotation, metadata)
    # The model validates decoded values, so leave out its last validators, or they would run twice.
    ends = len(metadata)
    while ends and isinstance(metadata[ends - 1], pydantic.AfterValidator):
        ends -= 1
    stored = adapter if ends == len(metadata) else _adapter(site, annotation, metadata[:ends])
    read = stored.validator.validate_json
    where = site.where

    def encode(value: Any) -> AttributeValue:
        try:
            given = plain(adapter.dump_python(value, by_alias=True, round_trip=True, warnings="error"))
            text = json.dumps(given, default=_json_leaf, ensure_ascii=False, separators=(",", ":"))
            # Pydantic parses about 200 levels. Reject a text that it could not parse again.
            if text.count("[") + text.count("{") > _DEEPEST_JSON:
                adapter.validate_json(text)
        except RecursionError:
            raise DataError(
                f"{where} is nested too deeply to parse it from JSON again; flatten it."
            ) from None
        except CODEC_ERRORS as error:
            raise cannot_store(where, value, error) from error
        return {"S": text}

    def decode(value: AttributeValue) -> Any:
        try:
            return read(value["S"])
        except KeyError:
            raise wrong_type(site, value, "S") from None
        except CODEC_ERRORS as error:
            raise cannot_decode(where, value["S"], error) from error

    return Codec("S", encode, decode, optional=type(None) in arms_of(annotation))


def _json_leaf(value: Any) -> Any:
    match value:
        case set():
            return sorted(value)
        case Decimal():
            return str(value)
        case bytes():
            # Pydantic parses bytes from JSON as UTF-8; reject other bytes.
            return value.decode()
        case _:
            raise TypeError(f"JSON has no {type(value).__name__}")
