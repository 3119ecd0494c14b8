"""Report every constraint that a request breaks, in DynamoDB's words and order.

Runs after `checker` has found a broken constraint, on a payload with correct JSON types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple
from zlib import crc32

from solotable._protocol import errors
from solotable.errors import ServiceError, invalid

from .kinds import Attributes, Constraint, ListOf, MapOf, Struct, Text, Value, Whole

#: DynamoDB reports no more than this.
MOST_REPORTED: Final = 10


def broken_constraints(rule: Struct, payload: dict[str, Any]) -> ServiceError:
    """Return the error that lists the broken constraints of a payload."""
    for name, member in rule.members.items():
        if isinstance(member, Text) and member.demanded and name not in payload:
            return invalid(
                f"The parameter '{name}' is required but was not present in the request", family="counted"
            )
    failures = list(islice(_members(rule, payload, _Path("", "")), MOST_REPORTED))
    if any(member.required and name not in payload for name, member in rule.members.items()):
        # DynamoDB: a request that lacks a member never reaches the newer validator; conformance:
        # member_constraints/UpdateItem: an empty table name and no key.
        failures = [Failure(each.older, each.older) for each in failures]
    return combine_failures(failures)


class Failure(NamedTuple):
    """One broken constraint, in the words of the older and of the newer validator."""

    older: str
    newer: str
    #: Whether the newer validator reports nothing else.
    alone: bool = False


class _Path(NamedTuple):
    """The path of a member: with lower first letters, and as the wire spells it."""

    older: str
    newer: str

    def then(self, text: str) -> _Path:
        return _Path(self.older + text, self.newer + text)

    def member(self, name: str) -> _Path:
        return _Path(f"{self.older}{name[0].lower()}{name[1:]}", self.newer + name)


def combine_failures(failures: list[Failure]) -> ServiceError:
    """Return the error that lists these failures."""
    plural = "s" if len(failures) > 1 else ""
    opening = f"{len(failures)} validation error{plural} detected: "
    older = opening + "; ".join(each.older for each in failures)
    for each in failures:
        if each.alone:
            return invalid(older, newer=each.newer)
    return invalid(
        older,
        newer=opening + "; ".join(each.newer for each in failures),
        family="counted",
    )


def make_failure(shown: str | None, path: str, constraint: str, *, newer: str | None = None) -> Failure:
    """Return one failure; a missing value shows as null, without quotes.

    `newer` is the value as the newer validator shows it, if that differs.
    """
    tail = f" at '{path}' failed to satisfy constraint: {constraint}"
    older = "Value null" if shown is None else f"Value '{shown}'"
    return Failure(older + tail, (older if newer is None else f"Value '{newer}'") + tail)


def text_failures(rule: Text, text: str, path: str) -> Iterator[Failure]:
    """Yield the broken constraints of a text."""
    return (make_failure(text, path, constraint) for constraint in _broken_in_text(rule, text))


def _text_failures(rule: Text, text: str, path: _Path) -> Iterator[Failure]:
    for constraint in _broken_in_text(rule, text):
        older, newer, _ = make_failure(text, path.older, constraint)
        if rule.listed is not None:
            newer = f"Failed to satisfy constraint: {_one_of(rule.listed)}"
        elif rule.terse and constraint == _at_least(1):
            newer = _terse(path, constraint)
        yield Failure(older, newer, rule.alone and newer != older)


def _failure(rule: Whole | ListOf | MapOf, value: Any, path: _Path, constraint: str) -> Failure:
    found = make_failure(
        _format_value(rule, value, newer=False),
        path.older,
        constraint,
        newer=_format_value(rule, value, newer=True),
    )
    if isinstance(rule, MapOf) or not rule.terse:
        return found
    return Failure(found.older, _terse(path, constraint))


def _terse(path: _Path, constraint: str) -> str:
    return f"Value at '{path.newer}' failed to satisfy constraint: {constraint}"


def _members(rule: Struct, payload: dict[str, Any], path: _Path) -> Iterator[Failure]:
    for name, member in rule.members.items():
        here = path.member(name)
        value = payload.get(name)
        if value is not None:
            yield from _failures(member, value, here)
        elif member.required:
            yield make_failure(None, here.older, "Member must not be null")


def _failures(rule: Constraint, value: Any, path: _Path) -> Iterator[Failure]:
    match rule:
        case Text():
            yield from _text_failures(rule, value, path)
        case Whole():
            if rule.least is not None and value < rule.least:
                yield _failure(
                    rule, value, path, f"Member must have value greater than or equal to {rule.least}"
                )
            if rule.most is not None and value > rule.most:
                yield _failure(rule, value, path, f"Member must have value less than or equal to {rule.most}")
        case ListOf():
            for constraint in _broken_lengths(len(value), rule.shortest, rule.longest):
                yield _failure(rule, value, path, constraint)
            for place, member in enumerate(value, start=1):
                yield from _failures(rule.member, member, path.then(f".{place}.member"))
        case MapOf():
            yield from _map_failures(rule, value, path)
        case Struct():
            yield from _members(rule, value, path.then("."))
        case _:
            return


def _map_failures(rule: MapOf, value: dict[str, Any], path: _Path) -> Iterator[Failure]:
    for constraint in _broken_lengths(len(value), rule.shortest, None):
        yield _failure(rule, value, path, constraint)
    if rule.keys is not None and any(list(_broken_in_text(rule.keys, name)) for name in value):
        yield _failure(rule, value, path, f"Map keys must satisfy constraint: [{_all_of(rule.keys)}]")
    if rule.values is not None:
        fewest, most = rule.values
        if any(not fewest <= len(member) <= most for member in value.values()):
            both = f"{_at_most(most)}, {_at_least(fewest)}"
            yield _failure(rule, value, path, f"Map value must satisfy constraint: [{both}]")
    for name, member in value.items():
        yield from _failures(rule.member, member, path.then(f".{name}.member"))


def _broken_in_text(rule: Text, text: str) -> Iterator[str]:
    if rule.enum is not None and text not in rule.enum:
        yield _one_of(rule.enum)
    yield from _broken_lengths(len(text), rule.shortest, rule.longest)
    if rule.pattern is not None and re.fullmatch(rule.matcher or rule.pattern, text) is None:
        yield _matching(rule.pattern)


def _broken_lengths(length: int, shortest: int | None, longest: int | None) -> Iterator[str]:
    if shortest is not None and length < shortest:
        yield _at_least(shortest)
    if longest is not None and length > longest:
        yield _at_most(longest)


def _all_of(keys: Text) -> str:
    parts = []
    if keys.longest is not None:
        parts.append(_at_most(keys.longest))
    if keys.shortest is not None:
        parts.append(_at_least(keys.shortest))
    if keys.pattern is not None:
        parts.append(_matching(keys.pattern))
    return ", ".join(parts)


def _at_least(length: int) -> str:
    return f"Member must have length greater than or equal to {length}"


def _at_most(length: int) -> str:
    return f"Member must have length less than or equal to {length}"


def _one_of(values: tuple[str, ...]) -> str:
    return f"Member must satisfy enum value set: [{', '.join(values)}]"


def _matching(pattern: str) -> str:
    return f"Member must satisfy regular expression pattern: {pattern}"


def _format_value(rule: Constraint, value: Any, *, newer: bool) -> str:
    """Render a value as Java's toString does; the newer validator shows what is in a structure."""
    match rule:
        case ListOf():
            return "[" + ", ".join(_format_value(rule.member, member, newer=newer) for member in value) + "]"
        case MapOf():
            pairs = (
                f"{name}={_format_value(rule.member, member, newer=newer)}" for name, member in value.items()
            )
            return "{" + ", ".join(pairs) + "}"
        case Attributes():
            pairs = (f"{name}={_format_object('AttributeValue', member)}" for name, member in value.items())
            return "{" + ", ".join(pairs) + "}"
        case Struct() if newer:
            pairs = (
                f"{name[0].lower()}{name[1:]}="
                + (_format_value(member, value[name], newer=True) if name in value else "null")
                for name, member in rule.members.items()
            )
            return f"{rule.java}({', '.join(pairs)})"
        case Struct():
            return _format_object(rule.java, value)
        case Value():
            return _format_object("AttributeValue", value)
        case _:
            return str(value)


def _format_object(java: str, value: Any) -> str:
    # DynamoDB: shows the class and a hash; any stable number will do. The hash of the members' names is
    # enough, and does not recurse.
    return f"{errors.JAVA}{java}@{crc32(','.join(value).encode(errors='surrogatepass')):x}"
