"""Sample arguments for patterns: two different values for every parameter, by its type.

The linter calls a pattern with both. Parts of its query that differ come from the caller; the others are
constants.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints
from uuid import UUID

from pydantic import AwareDatetime, EmailStr

from solotable._entities.declare.annotations import arms_of, bare
from solotable._entities.declare.plan import Plan
from solotable._entities.patterns.pattern import Pattern

#: The most choices of one parameter that the linter tries; a pattern may branch on each.
_MOST_CHOICES = 16
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class CannotSample(Exception):
    """A parameter has no sample; the text says why."""


def samples(pattern: Pattern, plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield arguments by name: for each way to call the pattern, two sets of values."""
    wanted = [each for each in pattern.parameters if each.kind not in _VARIADIC]
    types = {each.name: _type_of(each, pattern, plan) for each in wanted}
    pairs = {name: _two(kind, name) for name, kind in types.items()}
    calls: list[Mapping[str, tuple[Any, Any]]] = [pairs]
    required = {each.name for each in wanted if each.default is inspect.Parameter.empty}
    if len(required) < len(wanted):
        calls.append({name: pairs[name] for name in required})
    for name, kind in types.items():
        nothing = [None] if NoneType in arms_of(kind) and name in required else []
        choices = [*_choices(kind)[:_MOST_CHOICES], *nothing]
        calls += [{**pairs, name: (choice, choice)} for choice in choices]
    positional = {each.name for each in wanted if each.kind is inspect.Parameter.POSITIONAL_ONLY}
    if positional:
        raise CannotSample(f"its parameter {min(positional)!r} is positional-only")
    for call in calls:
        for number in (0, 1):
            yield {name: pair[number] for name, pair in call.items()}


def _type_of(parameter: inspect.Parameter, pattern: Pattern, plan: Plan) -> Any:
    info = plan.entity.model_fields.get(parameter.name)
    if parameter.annotation is inspect.Parameter.empty:
        if info is None:
            raise CannotSample(f"its parameter {parameter.name!r} has no type")
        return info.annotation
    holder = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    known = {"Self": plan.entity, **pattern.function.__globals__}
    try:
        kind = get_type_hints(holder, globalns=known, include_extras=True)[parameter.name]
    except (NameError, TypeError, SyntaxError, AttributeError):
        raise CannotSample(
            f"the type of its parameter {parameter.name!r} cannot be read: {parameter.annotation}"
        ) from None
    # For a field with choices, a plain str must be one of them: the field's codec rejects other texts.
    if bare(kind, ())[0] is str and info is not None and _choices(info.annotation):
        return info.annotation
    return kind


def _two(kind: Any, name: str) -> tuple[Any, Any]:
    """Return two different values of a type; the same value twice if the type has only one."""
    arms = [each for each in arms_of(kind) if each is not NoneType] or [kind]
    plain = bare(arms[0], ())[0]
    if choices := _choices(plain):
        return choices[0], choices[-1]
    if get_origin(plain) is tuple and (inner := [each for each in get_args(plain) if each is not ...]):
        inside = [_two(each, name) for each in inner]
        return tuple(one for one, _ in inside), tuple(other for _, other in inside)
    if get_origin(plain) is list and get_args(plain):
        one, other = _two(get_args(plain)[0], name)
        return [one], [other]
    found = _PLAIN.get(plain) if isinstance(plain, type) else None
    if found is None:
        raise CannotSample(f"its parameter {name!r} has no sample of type {kind!r}")
    return found if plain is not str else (f"{name}-one", f"{name}-two")


def _choices(kind: Any) -> list[Any]:
    plain = [each for each in arms_of(kind) if each is not NoneType]
    if len(plain) != 1:
        return []
    if plain[0] is bool:
        return [False, True]
    if get_origin(plain[0]) is Literal:
        return list(get_args(plain[0]))
    if isinstance(plain[0], type) and issubclass(plain[0], Enum):
        return list(plain[0])
    return []


_PLAIN: dict[Any, tuple[Any, Any]] = {
    str: ("one", "two"),
    EmailStr: ("one@example.com", "two@example.com"),
    int: (1, 2),
    float: (1.0, 2.0),
    Decimal: (Decimal(1), Decimal(2)),
    bytes: (b"1", b"2"),
    datetime: (_MOMENT, _MOMENT + timedelta(days=1)),
    AwareDatetime: (_MOMENT, _MOMENT + timedelta(days=1)),
    date: (_MOMENT.date(), _MOMENT.date() + timedelta(days=1)),
    timedelta: (timedelta(days=1), timedelta(days=2)),
    UUID: (UUID(int=1), UUID(int=2)),
}
