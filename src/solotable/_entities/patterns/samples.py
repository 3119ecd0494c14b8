"""Sample values for the arguments of patterns, for reports and estimates.

A str is `{name}`; other types have a small, valid value. The same name always gives the same sample.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from uuid import UUID

from solotable.errors import DataError

if typing.TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity

    from .pattern import Pattern

#: The distance between the two samples of one argument; small, because a key may have only one digit.
_APART = 4
_START = datetime(2000, 1, 1, tzinfo=UTC)
_COLLECTIONS: dict[Any, Any] = {list: list, set: set, frozenset: frozenset, tuple: tuple}


def sample(annotation: Any, name: str, number: int = 0, *, other: bool = False) -> Any:
    """Return a value of this type; a different `number` or `other` gives a different value.

    >>> sample(str, "survey_id", 0), sample(int | None, "order", 2)
    ('{survey_id}', 3)
    """
    kind, metadata = _bare(annotation)
    origin = get_origin(kind)
    if origin is Literal:
        choices = get_args(kind)
        return choices[(number + other) % len(choices)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        members = list(kind)
        return members[(number + other) % len(members)]
    if kind in (str, Any, object):
        return _fitting(f"{{{name}}}" + "'" * other, metadata)
    value = _scalar(kind, number, other=other)
    if value is not None:
        return value
    container = origin or kind
    if container in _COLLECTIONS:
        inner = [arg for arg in get_args(kind) if arg is not Ellipsis] or [str]
        count = len(inner) if container is tuple else 1
        return _COLLECTIONS[container](sample(inner[at], name, number, other=other) for at in range(count))
    if container in (dict, Mapping):
        return {}
    raise DataError(f"The type {kind!r} of {name} has no sample; pass its value.")


def argument_types(entity: type[Entity], pattern: Pattern) -> dict[str, Any]:
    """Return the types of a pattern's parameters; str for a parameter without an annotation."""
    function = pattern.function
    found: dict[str, Any] = {}
    for parameter in pattern.parameters:
        annotation = parameter.annotation
        if annotation is parameter.empty:
            found[parameter.name] = str
            continue
        holder: Any = SimpleNamespace(__annotations__={parameter.name: annotation})
        try:
            hints = typing.get_type_hints(
                holder, function.__globals__, {entity.__name__: entity}, include_extras=True
            )
        except NameError as error:
            raise DataError(
                f"{entity.__name__}.{pattern.name}: the type of {parameter.name} is unknown: {error}."
            ) from error
        found[parameter.name] = hints[parameter.name]
    return found


def shown_type(annotation: Any) -> str:
    """Return a type as source code.

    >>> shown_type(Decimal | None), shown_type(Literal["a", "b"])
    ('Decimal | None', "Literal['a', 'b']")
    """
    kind, _ = _bare(annotation, keep_optional=True)
    if isinstance(kind, type) and get_origin(kind) is None:
        return kind.__name__
    if get_origin(kind) in (Union, types.UnionType):
        return " | ".join("None" if arm is type(None) else shown_type(arm) for arm in get_args(kind))
    return str(kind).replace("typing.", "").replace("datetime.", "")


def _bare(annotation: Any, *, keep_optional: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without Annotated and `| None`, and its metadata."""
    metadata: tuple[Any, ...] = ()
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            metadata += tuple(more)
        elif not keep_optional and get_origin(annotation) in (Union, types.UnionType):
            annotation = next(arm for arm in get_args(annotation) if arm is not type(None))
        else:
            return annotation, metadata


def _fitting(text: str, metadata: tuple[Any, ...]) -> str:
    """Pad or cut a str to the lengths of Pydantic's Field."""
    for part in metadata:
        for each in (part, *getattr(part, "metadata", ())):
            shortest, longest = getattr(each, "min_length", None), getattr(each, "max_length", None)
            text = text.ljust(shortest, "x") if shortest else text
            text = text[:longest] if longest else text
    return text


def _scalar(kind: Any, number: int, *, other: bool) -> Any:
    number += _APART * other
    day = _START + timedelta(days=number)
    values: dict[Any, Any] = {
        int: number + 1,
        float: number + 0.5,
        Decimal: Decimal(number + 1),
        bool: not other,
        bytes: b"%d" % number,
        datetime: day,
        date: day.date(),
        time: time(number % 24),
        timedelta: timedelta(seconds=number + 1),
        UUID: UUID(int=number + 1),
    }
    try:
        return values.get(kind)
    except TypeError:  # an unhashable annotation
        return None
