"""Codecs by way of Pydantic: unions, Any, types that only it can write, and fields kept as JSON text.

What Pydantic validates but cannot write is refused when the class is defined.
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
    declared,
    other,
    reject,
    type_name,
)
from .scalars import plain, scalar_of

#: So many brackets may be nested in one another and still be read.
_DEEPEST_JSON: Final = 100


class _Quiet(GenerateJsonSchema):
    """Judges types only; a default that is no JSON is no fault here."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 -- pydantic's own


def _adapter(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> pydantic.TypeAdapter[Any]:
    whole: Any = Annotated[(annotation, *metadata)] if metadata else annotation
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(whole)
        # Pydantic can validate more than it can write: Callable, for one. Its JSON schema knows.
        adapter.json_schema(mode="serialization", schema_generator=_Quiet)
    except (
        PydanticSchemaGenerationError,
        PydanticUserError,
        PydanticUndefinedAnnotation,
        TypeError,
    ) as refused:
        what = f"is {type_name(annotation)}, which has no DynamoDB form"
        raise declared(site, what, "use a type that Pydantic can write as JSON") from refused
    return adapter


def adapted(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Compile what only Pydantic knows how to write: unions, Any, dataclasses, custom types."""
    for arm in arms_of(annotation):
        origin = get_origin(arm) or arm
        if site.flat and (nests(origin) and not any(isinstance(m, PlainSerializer) for m in metadata)):
            what = f"is {type_name(annotation)}, which flat mode does not store"
            reject(site, what, "mark it Json() or spread it")
    free = annotation in (Any, object)
    adapter = _adapter(site, annotation, metadata)
    where, flat = site.where, site.flat

    def encode(value: Any) -> AttributeValue:
        try:
            given = adapter.dump_python(value, by_alias=True, round_trip=True, warnings="error")
            encoded = _values.dump(plain(given))
        except (*CODEC_ERRORS, DataError) as refused:
            raise cannot_store(where, value, refused) from refused
        if flat and ("M" in encoded or "L" in encoded):
            raise cannot_store(
                where, value, ValueError("flat mode stores no list and no map; mark it Json()")
            )
        return encoded

    def decode(value: AttributeValue) -> Any:
        if flat and ("M" in value or "L" in value):
            raise other(site, value, "no list and no map")
        try:
            stored = _values.load(value)
            return stored if free else adapter.validate_python(stored)
        except CODEC_ERRORS as refused:
            raise cannot_decode(where, value, refused) from refused

    nested = is_typeddict(annotation) or is_dataclass(annotation)
    return Codec("M" if nested else None, encode, decode, optional=free)


def union(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Compile a union, whose values must come back as what they were."""
    kinds = [
        arm for arm in arms_of(annotation) if (scalar := scalar_of(arm)) is not None and scalar.kind == "S"
    ]
    if str in kinds and len(kinds) > 1:
        what = f"is {type_name(annotation)}, and each of {', '.join(map(type_name, kinds))} is stored as text"
        reject(site, what, "keep one of them, as they cannot be told apart when read")
    codec = adapted(site, annotation, metadata)

    def encode(value: Any) -> AttributeValue | None:
        encoded = codec.encode(value)
        if encoded is None:
            return None
        try:
            read = codec.decode(encoded)
        except StoredDataError as refused:  # nothing is stored yet: it is the value that does not fit
            raise cannot_store(site.where, value, refused) from refused
        if read != value:
            reason = f"it would come back as {read!r}, for the union's types are stored alike"
            raise cannot_store(site.where, value, ValueError(reason))
        return encoded

    return replace(codec, encode=encode)


def json_text(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    """Compile what is kept as one text of JSON."""
    adapter = _adapter(site, annotation, metadata)
    # The model judges what was read: its last rules are asked there, and not twice.
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
            # Pydantic's reader ends at some 200 levels: what it could not read back is not written.
            if text.count("[") + text.count("{") > _DEEPEST_JSON:
                adapter.validate_json(text)
        except RecursionError:
            raise DataError(f"{where} is nested too deeply to be read back from JSON; flatten it.") from None
        except CODEC_ERRORS as refused:
            raise cannot_store(where, value, refused) from refused
        return {"S": text}

    def decode(value: AttributeValue) -> Any:
        try:
            return read(value["S"])
        except KeyError:
            raise other(site, value, "S") from None
        except CODEC_ERRORS as refused:
            raise cannot_decode(where, value["S"], refused) from refused

    return Codec("S", encode, decode, optional=type(None) in arms_of(annotation))


def _json_leaf(value: Any) -> Any:
    match value:
        case set():
            return sorted(value)
        case Decimal():
            return str(value)
        case bytes():
            # As Pydantic reads bytes from JSON; others than UTF-8 are refused here.
            return value.decode()
        case _:
            raise TypeError(f"JSON has no {type(value).__name__}")
