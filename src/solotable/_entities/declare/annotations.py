"""Split type annotations: unions into members, Annotated into type and metadata."""

from __future__ import annotations

import sys
import types
from collections import abc
from collections.abc import Sequence
from dataclasses import is_dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

import pydantic
from typing_extensions import TypeAliasType, is_typeddict


def bare(annotation: Any, metadata: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Remove Annotated, NewType and type aliases; return the type and all metadata."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata = (*more, *metadata)
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        else:
            return annotation, metadata


def parts(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union with their Annotated, or the type itself."""
    inner, _ = bare(annotation, ())
    if get_origin(inner) in (Union, types.UnionType):
        return tuple(part for arm in get_args(inner) for part in parts(arm))
    if get_origin(inner) is Literal and None in get_args(inner):
        choices = tuple(choice for choice in get_args(inner) if choice is not None)
        return (Literal[choices], type(None)) if choices else (type(None),)
    return (annotation,)


def arms_of(annotation: Any) -> tuple[Any, ...]:
    return tuple(bare(part, ())[0] for part in parts(annotation))


def inner_metadata(annotation: Any) -> list[Any]:
    """Return the metadata of all union members; `Annotated[int, TTL()] | None` has TTL."""
    return [meta for part in parts(annotation) for meta in bare(part, ())[1]]


def nests(origin: Any) -> bool:
    if is_typeddict(origin) or is_dataclass(origin):
        return True
    if not isinstance(origin, type) or issubclass(origin, (str, bytes, bytearray, Enum)):
        return False
    return issubclass(origin, (pydantic.BaseModel, abc.Iterable)) and not issubclass(origin, abc.Set)


def is_plain_model(origin: Any) -> bool:
    """Return whether a type is a model without a custom serializer."""
    if not isinstance(origin, type) or not issubclass(origin, pydantic.BaseModel):
        return False
    decorators = origin.__pydantic_decorators__
    serializers = decorators.model_serializers or decorators.field_serializers
    return not serializers and not issubclass(origin, pydantic.RootModel)


def hashable(annotation: Any) -> bool:
    return isinstance(annotation, abc.Hashable)


def is_email_str(annotation: Any) -> bool:
    """Return whether a type is Pydantic's EmailStr, without loading its module, which takes 10 ms."""
    networks = sys.modules.get("pydantic.networks")
    return networks is not None and annotation is networks.EmailStr


def has_serializer(metadata: Sequence[Any]) -> bool:
    """Return whether the metadata contains a Pydantic serializer."""
    if not metadata:
        return False
    from pydantic.functional_serializers import PlainSerializer, WrapSerializer

    return any(isinstance(meta, (PlainSerializer, WrapSerializer)) for meta in metadata)
