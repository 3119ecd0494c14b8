"""Codecs of sets, lists, maps and models, and the errors of all codecs.

`field_codecs` chooses the codec of a type. A codec raises an error for a value without a DynamoDB form.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast, get_args

import pydantic
from pydantic_core import PydanticSerializationError

from solotable import _values
from solotable._values import AttributeValue, sort_members
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError, ServiceError, StoredDataError

from .scalars import Scalar, plain

if TYPE_CHECKING:
    from .field_codecs import Attribute

#: Errors of encoding and decoding; the codec turns each into a DataError that names the field.
CODEC_ERRORS: Final = (ArithmeticError, ServiceError, TypeError, ValueError, PydanticSerializationError)
_LONGEST_SHOWN = 60

Encode = Callable[[Any], AttributeValue | None]
Decode = Callable[[AttributeValue], Any]


@dataclass(frozen=True, slots=True)
class Codec:
    """The codec of one type; the attribute's codec handles None."""

    kind: str | None
    encode: Encode
    decode: Decode
    missing: Callable[[], Any] | None = None
    optional: bool = False
    #: Set for types that can be members of a set or keys of a map.
    scalar: Scalar | None = None


@dataclass(frozen=True, slots=True)
class FieldSite:
    """The field of a codec: its name for errors, and the models that contain it."""

    where: str
    flat: bool
    #: Whether fields are stored under their aliases.
    by_alias: bool = False
    models: dict[type, list[Codec]] = field(default_factory=dict)


def set_codec(site: FieldSite, container: type, scalar: Scalar) -> Codec:
    """Return the codec of a set of scalars; the empty set is an absent attribute."""
    kind, text, read, where = scalar.kind + "S", scalar.encode, scalar.decode, site.where

    def encode(value: Any) -> AttributeValue | None:
        if not value:
            return None
        try:
            if isinstance(value, (str, bytes)):
                raise TypeError(f"it is {type(value).__name__}, not a set")
            # Unequal datetimes can have the same text, in an hour that daylight saving time repeats.
            contents = {text(member) for member in value}
        except CODEC_ERRORS as error:
            raise cannot_store(where, value, error) from error
        return {kind: sorted(contents) if kind == "SS" else sort_members(kind, list(contents))}

    def decode(value: AttributeValue) -> Any:
        try:
            return container(map(read, value[kind]))
        except KeyError:
            if "NULL" in value:
                return container()
            raise wrong_type(site, value, kind) from None
        except CODEC_ERRORS as error:
            raise cannot_decode(where, value[kind], error) from error

    return Codec(kind, encode, decode, missing=container)


def list_codec(site: FieldSite, member: Codec, *, container: type) -> Codec:
    """Return the codec of a list, or of a tuple of any length."""
    member = in_list(member)
    encode_member, decode_member, where = member.encode, member.decode, site.where

    def encode(value: Any) -> AttributeValue:
        if isinstance(value, (str, bytes)) or not isinstance(value, abc.Iterable):
            raise cannot_store(where, value, TypeError(f"it is {type(value).__name__}, not a list"))
        return {"L": [encode_member(member) for member in value]}

    def decode(value: AttributeValue) -> Any:
        try:
            members = value["L"]
        except KeyError:
            raise wrong_type(site, value, "L") from None
        return [decode_member(member) for member in members] if members else []

    if container is tuple:
        return Codec("L", encode, lambda value: tuple(decode(value)))
    return Codec("L", encode, decode)


def tuple_codec(site: FieldSite, parts: Sequence[Codec]) -> Codec:
    """Return the codec of a tuple with a type for each member."""
    members = [in_list(part) for part in parts]
    where = site.where

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, (tuple, list)) or len(value) != len(members):
            raise cannot_store(where, value, ValueError(f"it is not a tuple of {len(members)}"))
        return {"L": [codec.encode(member) for codec, member in zip(members, value, strict=True)]}

    def decode(value: AttributeValue) -> Any:
        if "L" not in value:
            raise wrong_type(site, value, "L")
        stored = value["L"]
        if len(stored) != len(members):
            raise cannot_decode(where, stored, ValueError(f"it is not a list of {len(members)}"))
        return tuple(codec.decode(member) for codec, member in zip(members, stored, strict=True))

    return Codec("L", encode, decode)


def map_codec(site: FieldSite, name: Scalar, member: Codec) -> Codec:
    """Return the codec of a dict; its keys are stored as strings."""
    member = in_list(member)
    text, read, encode_member, decode_member, where = (
        name.encode,
        name.decode,
        member.encode,
        member.decode,
        site.where,
    )

    def encode(value: Any) -> AttributeValue:
        try:
            members = {text(key): encode_member(member) for key, member in value.items()}
        except (*CODEC_ERRORS, AttributeError) as error:
            raise cannot_store(where, value, error) from error
        if "" in members:
            raise cannot_store(where, value, ValueError("DynamoDB rejects empty names in maps"))
        return {"M": members}

    def decode(value: AttributeValue) -> Any:
        if "M" not in value:
            raise wrong_type(site, value, "M")
        try:
            return {read(key): decode_member(member) for key, member in value["M"].items()}
        except CODEC_ERRORS as error:
            raise cannot_decode(where, value["M"], error) from error

    return Codec("M", encode, decode)


def input_name(model: type[pydantic.BaseModel], name: str) -> str:
    """Return the name of a field in the model's constructor."""
    if model.model_config.get("validate_by_alias") is False:
        return name
    alias = model.model_fields[name].validation_alias
    if isinstance(alias, pydantic.AliasChoices):
        alias = next((choice for choice in alias.choices if isinstance(choice, str)), None)
    return alias if isinstance(alias, str) else name


def model_codec(site: FieldSite, model: type[pydantic.BaseModel], attributes: Sequence[Attribute]) -> Codec:
    """Return the codec of a nested model; it encodes members like attributes of an entity."""
    steps = [(attribute.field, attribute.wire, attribute.encode) for attribute in attributes]
    names = {a.field: input_name(model, a.field) for a in attributes}
    wires = {attribute.wire for attribute in attributes}
    extra = model.model_config.get("extra") == "allow"
    where = site.where

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, model):
            raise cannot_store(where, value, TypeError(f"it is {type(value).__name__}, not {model.__name__}"))
        fields = value.__dict__
        members = {}
        for name, wire, encode_member in steps:
            # A model from model_construct() may lack a field.
            member = encode_member(fields.get(name))
            if member is not None:
                members[wire] = member
        try:
            for name, member in (value.model_extra or {}).items():
                members.setdefault(name, _values.dump(plain(member)))
        except (*CODEC_ERRORS, DataError) as error:
            raise cannot_store(where, value, error) from error
        return {"M": members}

    def decode(value: AttributeValue) -> Any:
        if "M" not in value:
            raise wrong_type(site, value, "M")
        stored = value["M"]
        given: dict[str, Any] = {}
        for attribute in attributes:
            if attribute.wire in stored:
                given[names[attribute.field]] = attribute.decode(stored[attribute.wire])
            elif attribute.missing is not None:
                given[names[attribute.field]] = attribute.missing()
        if extra:
            given |= {name: _values.load(stored[name]) for name in stored.keys() - wires}
        try:
            return model.model_validate(given)
        except pydantic.ValidationError as error:
            raise cannot_decode(where, stored, error) from error

    return Codec("M", encode, decode)


def in_list(codec: Codec) -> Codec:
    """Return the codec of a member of a list or map; None is stored as NULL."""
    encode = or_none(codec.encode, null=True) if codec.optional else codec.encode
    decode = or_null(codec.decode) if codec.optional else codec.decode
    if codec.missing is None:
        return replace(codec, encode=encode, decode=decode)

    def encode_empty(value: Any) -> AttributeValue:
        encoded = encode(value)
        return {"NULL": True} if encoded is None else encoded

    return replace(codec, encode=encode_empty, decode=decode)


def or_none(encode: Encode, *, null: bool) -> Encode:
    """Wrap an encoder to encode None as an absent attribute, or as NULL."""
    if null:
        return lambda value: {"NULL": True} if value is None else encode(value)
    return lambda value: None if value is None else encode(value)


def or_null(decode: Decode) -> Decode:
    """Wrap a decoder to decode NULL as None."""
    return lambda value: None if "NULL" in value else decode(value)


def type_name(annotation: Any) -> str:
    """Return a type as source code."""
    plain_type = isinstance(annotation, type) and not get_args(annotation)
    return cast(str, annotation.__name__) if plain_type else str(annotation).replace("typing.", "")


def declaration_error(site: FieldSite, problem: str, fix: str) -> DeclarationError:
    """Return the error for a wrong declaration."""
    return DeclarationError(f"{site.where} {problem}; {fix}.")


def reject(site: FieldSite, problem: str, fix: str) -> NoReturn:
    """Reject a declaration."""
    raise declaration_error(site, problem, fix)


def _reason(error: Exception) -> str:
    if isinstance(error, pydantic.ValidationError):
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        return f"{where}: {first['msg']}" if where else first["msg"]
    text = error.message if isinstance(error, ServiceError) else str(error)
    lines = [line.strip() for line in text.splitlines() if not line.endswith(":")]
    return lines[0].removesuffix(".") if lines else type(error).__name__


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def cannot_store(where: str, value: Any, error: Exception) -> DataError:
    """Return the error for a value that cannot be stored."""
    # Only Pydantic's messages never contain the value, so only they are public.
    reason = f": {_reason(error)}" if isinstance(error, pydantic.ValidationError) else ""
    return DataError(
        f"{where} cannot store {_shown(value)}: {_reason(error)}.",
        public_message=f"{where} cannot store the given value{reason}.",
    )


def cannot_decode(where: str, stored: Any, error: Exception) -> StoredDataError:
    """Return the error for a stored value that cannot be decoded."""
    return StoredDataError(
        f"{where} cannot decode the stored {_shown(stored)}: {_reason(error)}; "
        "correct the item or the field's type."
    )


def wrong_type(site: FieldSite, value: AttributeValue, kind: str) -> StoredDataError:
    """Return the error for a stored value of another DynamoDB type."""
    stored = next(iter(value), "nothing")
    if site.flat and stored in ("M", "L"):
        fix = "flat mode stores no lists and no maps; rewrite the item without them or mark the field Json()"
    elif stored == "NULL":
        fix = "declare the field optional or remove the attribute"
    else:
        fix = "change the field's type or migrate the stored items"
    return StoredDataError(f"{site.where} is stored as {stored}, but the model expects {kind}; {fix}.")
