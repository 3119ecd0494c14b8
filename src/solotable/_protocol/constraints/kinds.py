"""The words in which request shapes are written down; data only, `check` reads it.

A constraint says what JSON may stand somewhere and under which constraints. `required` members must be
there, and are reported with the other constraints; `demanded` ones are asked for before all others.
Of `terse` ones the newer validator does not show the value, and spells the name as the wire does. Of
those that are `alone` it reports nothing else.
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
    shortest: int | None = None
    longest: int | None = None
    terse: bool = False
    alone: bool = False
    #: What the newer validator lists instead of `enum`, without a name or a value.
    listed: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number; `java` is the class that rejections name."""

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
    """Named members; `java` is the class that rejections name. The order is the order of reports."""

    java: str
    members: Mapping[str, Constraint]
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """A member of AWS's API that solotable lacks; whatever stands there is rejected by its name."""

    name: str
    required: bool = False


Constraint = Union[Text, Whole, Real, Flag, Value, Attributes, ListOf, MapOf, Struct, Unsupported]
