"""Compile each field of a model to a codec between Python values and canonical DynamoDB values.

The class definition chooses the codecs and raises DeclarationError for a type without a DynamoDB form.
`decode` returns values of the field's type. Unions, Any and types that only Pydantic knows use its slower
TypeAdapter. A union rejects a value that would be decoded as another member. Any is decoded to DynamoDB's
types.

None and the empty set are stored as absent attributes. If the field has another default, None is stored as
NULL. An absent set is always the empty set, because DELETE removes an empty set.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, Union, get_args, get_origin

import pydantic
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo

from solotable._entities.declare.annotations import (
    arms_of,
    bare,
    has_serializer,
    inner_metadata,
    is_plain_model,
    nests,
    parts,
)
from solotable._entities.declare.field_storage import Compressed, Encrypted, Offloaded
from solotable._entities.declare.fields import (
    STEPS,
    TTL,
    Attr,
    Counter,
    Created,
    Epoch,
    Iso,
    Json,
    Unique,
    Updated,
    Version,
)
from solotable._values import AttributeValue
from solotable._values.lazy_dataclass import dataclass

from .containers import (
    CODEC_ERRORS,
    Codec,
    Decode,
    Encode,
    FieldSite,
    cannot_decode,
    cannot_store,
    list_codec,
    map_codec,
    model_codec,
    or_none,
    or_null,
    reject,
    set_codec,
    tuple_codec,
    type_name,
    wrong_type,
)
from .scalars import SCALARS, Scalar, enum_scalar, literal_scalar, scalar_of
from .times import TTL_SECONDS, time_scalar

MARKERS: Final = (
    Version,
    TTL,
    Json,
    Created,
    Updated,
    Counter,
    Unique,
    Attr,
    Compressed,
    Encrypted,
    Offloaded,
    Iso,
    Epoch,
)
#: Markers that a field may have beside another.
_COMBINED: Final = (Attr, Unique, Compressed, Encrypted, Offloaded, Iso, Epoch)
_LISTS: Final = (list, abc.Sequence, abc.MutableSequence)
_MAPS: Final = (dict, abc.Mapping, abc.MutableMapping)
_SETS: Final[dict[Any, type]] = {set: set, frozenset: frozenset, abc.Set: set, abc.MutableSet: set}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """A field compiled to an attribute of the stored item."""

    field: str
    #: The attribute's name in the stored item.
    wire: str
    #: Whether the item has the attribute; otherwise the primary key contains the value.
    stored: bool
    #: Whether the members of a nested model are stored under their aliases.
    by_alias: bool = False
    #: The DynamoDB type if it is always the same, apart from NULL.
    kind: str | None
    optional: bool
    #: Returns None for an absent attribute.
    encode: Encode
    decode: Decode
    #: Returns the value of an absent attribute, in place of the field's default.
    missing: Callable[[], Any] | None = None
    version: bool = False
    ttl: bool = False
    json: bool = False
    created: bool = False
    updated: bool = False
    counter: bool = False
    unique: Unique | None = None
    #: The marker of a field that DynamoDB cannot compare: it is compressed, encrypted or offloaded.
    compressed: Compressed | None = None
    encrypted: Encrypted | None = None
    offloaded: Offloaded | None = None
    #: The codec of the content if that is a scalar; `decode` has better errors.
    scalar: Scalar | None = None
    #: The precision of a time in microseconds, if it is declared.
    step: int = 0

    @property
    def opaque(self) -> str | None:
        """The reason why DynamoDB cannot compare or change the value in place; None if it can."""
        if self.encrypted is not None:
            return "encrypted"
        if self.offloaded is not None:
            return "offloaded"
        return None if self.compressed is None else "compressed"


def attribute_of(owner: str, field: str, info: FieldInfo, *, flat: bool, by_alias: bool = False) -> Attribute:
    """Compile one field of a model; `flat` rejects lists, maps and models that are not `Json()`."""
    return _attribute(FieldSite(f"{owner}.{field}", flat, by_alias), field, info)


def _attribute(site: FieldSite, field: str, info: FieldInfo) -> Attribute:
    markers = _markers(site, info)
    step = 0
    rest = tuple(meta for meta in info.metadata if not isinstance(meta, MARKERS))
    if Json in markers:
        from .pydantic_codecs import json_text

        codec = json_text(site, info.annotation, rest)
    elif Offloaded in markers:
        from .opaque.offloading import offloaded_codec

        codec = offloaded_codec(site, markers[Offloaded])
        codec = replace(codec, optional=type(None) in arms_of(info.annotation))
    else:
        codec = _compile(site, info.annotation, rest)
        time_format = markers.get(Iso) or markers.get(Epoch)
        if TTL in markers and _is_moment(info.annotation):
            codec, step = replace(_scalar(site, TTL_SECONDS), optional=codec.optional), STEPS["s"]
        elif time_format is not None:
            codec = replace(_scalar(site, time_scalar(time_format)), optional=codec.optional)
            step = time_format.step
    if Compressed in markers:
        from .opaque.frames import compressed_codec

        codec = compressed_codec(site, codec, markers[Compressed])
    if Encrypted in markers:
        from .opaque.encryption import secret_codec

        codec = secret_codec(site, codec)
    encode, decode, missing = codec.encode, codec.decode, codec.missing
    if codec.optional:
        # An absent attribute is decoded as the default, so None can be absent only if the default is None.
        null = not info.is_required() and (info.default is not None or info.default_factory is not None)
        encode, decode = or_none(codec.encode, null=null), or_null(codec.decode)
        missing = _none if info.is_required() else None
    name = markers.get(Attr)
    return Attribute(
        field=field,
        wire=(name and name.name) or (site.by_alias and (info.serialization_alias or info.alias)) or field,
        by_alias=site.by_alias,
        stored=name is None or name.stored,
        kind=codec.kind,
        optional=codec.optional,
        encode=encode,
        decode=decode,
        missing=missing,
        version=Version in markers,
        ttl=TTL in markers,
        json=Json in markers,
        created=Created in markers,
        updated=Updated in markers,
        counter=Counter in markers,
        unique=markers.get(Unique),
        compressed=markers.get(Compressed),
        encrypted=markers.get(Encrypted),
        offloaded=markers.get(Offloaded),
        scalar=codec.scalar,
        step=step,
    )


def _markers(site: FieldSite, info: FieldInfo) -> dict[type, Any]:
    found: dict[type, Any] = {}
    for meta in (*info.metadata, *inner_metadata(info.annotation)):
        if isinstance(meta, type) and meta in MARKERS:
            reject(site, f"is marked with the class {meta.__name__}", f"write {meta.__name__}(...)")
        if meta is pydantic.Json or isinstance(meta, pydantic.Json):
            reject(site, "is pydantic's Json", "write Annotated[..., Json()] with solotable's Json")
        if isinstance(meta, MARKERS):
            if type(meta) in found:
                reject(site, f"is marked {type(meta).__name__} twice", "remove one of them")
            found[type(meta)] = meta
    opaque = [marker.__name__ for marker in (Offloaded, Compressed, Encrypted) if marker in found]
    roles = [marker.__name__ for marker in found if marker not in _COMBINED]
    if opaque and roles not in ([], ["Json"]):
        reject(site, f"is marked {opaque[0]} and {roles[0]}", "use a field for each")
    if Offloaded in found:
        _check_offloaded(site, info, [*opaque[1:], *roles])
    if opaque and Unique in found:
        what = f"is marked {opaque[0]} and Unique, but a lock item would hold its value"
        reject(site, what, "add a field with a keyed hash of the value and mark that Unique")
    if len(roles) > 1:
        reject(site, f"is marked {' and '.join(roles)}", "use a field for each")
    arms = [arm for arm in arms_of(info.annotation) if arm is not type(None)]
    if Version in found and (arms != [int] or len(arms_of(info.annotation)) > 1):
        reject(site, f"is a Version of type {type_name(info.annotation)}", "declare it as int")
    if Counter in found and (len(arms) != 1 or arms[0] not in (int, Decimal)):
        reject(site, f"is a Counter of type {type_name(info.annotation)}", "declare it as int or Decimal")
    moment = _is_moment(info.annotation)
    if TTL in found and not moment and arms != [int]:
        reject(site, f"is a TTL of type {type_name(info.annotation)}", "declare it as datetime or int")
    _check_time_format(site, info, found, moment=moment)
    for stamp in (Created, Updated):
        if stamp in found and not moment:
            what = f"is stamped {stamp.__name__} but is of type {type_name(info.annotation)}"
            reject(site, what, "declare it as datetime")
    return found


def _check_offloaded(site: FieldSite, info: FieldInfo, others: Sequence[str]) -> None:
    arms = [arm for arm in arms_of(info.annotation) if arm is not type(None)]
    if len(arms) != 1 or not getattr(arms[0], "__solotable_blob__", False):
        what = f"is marked Offloaded but is of type {type_name(info.annotation)}"
        reject(site, what, "declare it as Blob")
    if others:
        what = f"is marked Offloaded and {others[0]}"
        reject(site, what, "compress or encrypt the content before you make the Blob, or in the storage")


def _check_time_format(site: FieldSite, info: FieldInfo, found: Mapping[type, Any], *, moment: bool) -> None:
    formats = [marker for marker in (Iso, Epoch) if marker in found]
    if not formats:
        return
    name = formats[0].__name__
    if len(formats) > 1:
        reject(site, "is marked Iso and Epoch", "remove one of them")
    if not moment:
        reject(
            site, f"is marked {name} but is of type {type_name(info.annotation)}", "declare it as datetime"
        )
    if Json in found:
        reject(site, f"is marked {name} and Json", "remove one of them")
    if TTL in found and found.get(Epoch) != Epoch("s"):
        reject(site, f"is a TTL and marked {name}", "remove it: a time to live is always epoch seconds")


def _compile(site: FieldSite, annotation: Any, metadata: Sequence[Any] = ()) -> Codec:
    annotation, metadata = bare(annotation, metadata)
    if has_serializer(metadata):
        return _adapted(site, annotation, metadata)
    arms = arms_of(annotation)
    if type(None) in arms and len(arms) > 1:
        present = tuple(arm for arm in parts(annotation) if arm is not type(None))
        return replace(_compile(site, Union[present], metadata), optional=True)
    if len(arms) > 1:
        from .pydantic_codecs import union

        return union(site, annotation, metadata)
    origin = get_origin(annotation) or annotation
    if (scalar := scalar_of(annotation)) is not None:
        return _scalar(site, scalar)
    if annotation is bool:
        return _bool(site)
    if annotation is pydantic.NaiveDatetime:
        reject(site, "is a naive datetime", "declare it as datetime and give its values a time zone")
    scalar = _choice(origin, annotation)
    if scalar is not None:
        return _scalar(site, scalar)
    if origin in _SETS:
        return _set(site, _SETS[origin], annotation)
    if site.flat and nests(origin):
        reject(
            site,
            f"is {type_name(annotation)}, which flat mode does not store",
            "mark it Json() or split it into fields",
        )
    args = get_args(annotation)
    if origin in _LISTS or (origin is tuple and (not args or args[-1] is Ellipsis)):
        member = _member(site, args[0] if args else Any)
        return list_codec(site, member, container=tuple if origin is tuple else list)
    if origin is tuple:
        return tuple_codec(site, [_member(site, arg) for arg in args if arg != ()])
    if origin in _MAPS:
        return _map(site, annotation)
    if is_plain_model(origin):
        return _model(site, origin)
    return _adapted(site, annotation, metadata)


def _adapted(site: FieldSite, annotation: Any, metadata: Sequence[Any]) -> Codec:
    if getattr(annotation, "__solotable_blob__", False):
        reject(site, "is a Blob without a storage", "write Annotated[Blob, Offloaded(storage)]")
    # Few entities have such a field; do not load Pydantic's TypeAdapter for the others.
    from .pydantic_codecs import adapted

    return adapted(site, annotation, metadata)


def _member(site: FieldSite, annotation: Any) -> Codec:
    for meta in inner_metadata(annotation):
        if isinstance(meta, MARKERS):
            reject(site, f"has {type(meta).__name__} on its members", "mark the field itself")
    return _compile(site, annotation)


def _is_moment(annotation: Any) -> bool:
    arms = [arm for arm in arms_of(annotation) if arm is not type(None)]
    return len(arms) == 1 and scalar_of(arms[0]) is SCALARS[datetime]


def _choice(origin: Any, annotation: Any) -> Scalar | None:
    if origin is Literal:
        return literal_scalar(get_args(annotation))
    if isinstance(origin, type) and issubclass(origin, Enum):
        return enum_scalar(origin)
    return None


def _scalar(site: FieldSite, scalar: Scalar) -> Codec:
    where, kind, text, read = site.where, scalar.kind, scalar.encode, scalar.decode

    def encode(value: Any) -> AttributeValue:
        try:
            return {kind: text(value)}
        except CODEC_ERRORS as error:
            raise cannot_store(where, value, error) from error

    def encode_str(value: Any) -> AttributeValue:
        # Most fields are plain strings; this path takes 80 ns instead of 110.
        return {"S": value} if value.__class__ is str and value.isascii() else encode(value)

    def decode(value: AttributeValue) -> Any:
        try:
            return read(value[kind])
        except KeyError:
            raise wrong_type(site, value, kind) from None
        except CODEC_ERRORS as error:
            raise cannot_decode(where, value[kind], error) from error

    plain_str = scalar is SCALARS[str]
    return Codec(kind, encode_str if plain_str else encode, decode, scalar=scalar)


def _bool(site: FieldSite) -> Codec:
    def encode(value: Any) -> AttributeValue:
        if value is True or value is False:
            return {"BOOL": value}
        raise cannot_store(site.where, value, ValueError(f"it is {type(value).__name__}, not bool"))

    def decode(value: AttributeValue) -> Any:
        try:
            return value["BOOL"]
        except KeyError:
            raise wrong_type(site, value, "BOOL") from None

    return Codec("BOOL", encode, decode)


def _set(site: FieldSite, container: type, annotation: Any) -> Codec:
    args = get_args(annotation)
    member = _member(site, args[0]) if args else None
    if member is None or member.scalar is None or member.optional:
        fix = "use a set of str, numbers or bytes, or mark it Json()"
        reject(site, f"is {type_name(annotation)}", fix)
    return set_codec(site, container, member.scalar)


def _map(site: FieldSite, annotation: Any) -> Codec:
    args = get_args(annotation) or (str, Any)
    name = _member(site, args[0])
    if name.scalar is None or name.scalar.kind == "B" or name.optional:
        reject(site, f"is {type_name(annotation)}", "use str for a map's names, or mark it Json()")
    return map_codec(site, name.scalar, _member(site, args[1]))


def _model(site: FieldSite, model: type[pydantic.BaseModel]) -> Codec:
    codecs = site.models.get(model)
    if codecs is not None:
        # A recursive model: its codec exists by the time the first value is encoded.
        return _recursive(codecs)
    codecs = site.models[model] = []
    codecs.append(model_codec(site, model, _members(site, model)))
    del site.models[model]
    return codecs[0]


def _recursive(codecs: Sequence[Codec]) -> Codec:
    def encode(value: Any) -> AttributeValue | None:
        return codecs[0].encode(value)

    def decode(value: AttributeValue) -> Any:
        return codecs[0].decode(value)

    return Codec("M", encode, decode)


def _members(site: FieldSite, model: type[pydantic.BaseModel]) -> list[Attribute]:
    try:
        model.model_rebuild()
    except (PydanticUndefinedAnnotation, PydanticUserError) as incomplete:
        reject(
            site,
            f"is {model.__name__}, which is not complete: {incomplete}",
            "define the missing class first",
        )
    attributes = [
        _attribute(replace(site, where=f"{site.where}.{name}"), name, info)
        for name, info in model.model_fields.items()
    ]
    taken: dict[str, str] = {}
    for attribute in attributes:
        if _is_top_level(attribute):
            inner = replace(site, where=f"{site.where}.{attribute.field}")
            reject(
                inner, "has a marker for fields that the store writes", "mark a field of the entity instead"
            )
        first = taken.setdefault(attribute.wire, attribute.field)
        if first != attribute.field:
            both = f"stores {first} and {attribute.field} as {attribute.wire!r}"
            reject(site, both, "give each another Attr(...)")
    return attributes


def _is_top_level(attribute: Attribute) -> bool:
    """Return whether only a field of an entity may have the markers of this one."""
    stamped = attribute.version or attribute.created or attribute.updated
    return stamped or attribute.encrypted is not None or attribute.offloaded is not None


def _none() -> None:
    return None
