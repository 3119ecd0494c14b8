"""Kinds of constraints on the members of requests, as data for `checker` and `report`.

A missing `required` member is reported with the other broken constraints, a missing `demanded` member before
all others. The newer validator does not show the value of a `terse` member, and spells its name as the wire
does. It reports an `alone` member and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Union

from solotable._values.lazy_dataclass import dataclass

#: The pattern of the names of tables and indexes.
NAME_PATTERN: Final = "[a-zA-Z0-9_.-]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    required: bool = False
    demanded: bool = False
    enum: tuple[str, ...] | None = None
    pattern: str | None = None
    #: An equivalent of `pattern` that matches in linear time, where AWS's does not.
    matcher: str | None = None
    shortest: int | None = None
    longest: int | None = None
    terse: bool = False
    alone: bool = False
    #: The values that the newer validator lists instead of `enum`, without name and value.
    listed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number; `java` is the class in errors."""

    java: Literal["Integer", "Long"] = "Integer"
    required: bool = False
    least: int | None = None
    most: int | None = None
    terse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One attribute value."""

    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """A map from names to attribute values: an item, a key, the values of an expression."""

    required: bool = False
    #: Whether the check also measures it, as a write needs it of an item.
    measured: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    member: Constraint
    required: bool = False
    shortest: int | None = None
    longest: int | None = None
    terse: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """A map; `keys` and `values` constrain each key's text and each value's length."""

    member: Constraint
    required: bool = False
    shortest: int | None = None
    keys: Text | None = None
    values: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Struct:
    """Named members, in the order of reports; `java` is the class in errors."""

    java: str
    members: Mapping[str, Constraint]
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A member of AWS's API that solotable lacks; any value is rejected by the member's name."""

    name: str
    required: bool = False


Constraint = Union[Text, Whole, Real, Flag, Value, Attributes, ListOf, MapOf, Struct, Unsupported]
