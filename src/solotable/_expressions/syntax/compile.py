"""Compile all expressions of one request; they share their placeholders.

A placeholder that no expression uses is an error, whatever the item is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from solotable._expressions.ast import Condition, KeyCondition, Projection, Update
from solotable._values import AttributeValue, canonical
from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import LONGEST_ATTRIBUTE_NAME, LONGEST_PLACEHOLDER
from solotable._values.number import is_plain_number
from solotable.errors import ServiceError, invalid

from .bind import bind_condition, bind_projection, bind_update, check_used
from .grammar import Label, utf8_size
from .key_conditions import build_key_condition, compile_key
from .parse import parse_condition, parse_projection, parse_update
from .parse_cache import cache_trees
from .unbound import ParsedCondition, UsedPlaceholders

_NAME = re.compile(r"#[0-9A-Za-z_]+\Z").match
_VALUE = re.compile(r":[0-9A-Za-z_]+\Z").match
_NO_VALUES: Final[dict[str, AttributeValue]] = {}
_NO_NAMES: Final[dict[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The expressions of a request as bound trees; None for those it does not have."""

    condition: Condition | None = None
    filter: Condition | None = None
    key: KeyCondition | None = None
    projection: Projection | None = None
    update: Update | None = None
    #: The canonical values by placeholder; the trees have the same objects.
    values: Mapping[str, AttributeValue] | None = None


def compile_expressions(
    *,
    condition: str | None = None,
    filter: str | None = None,  # noqa: A002 - DynamoDB's own word for it
    key: str | None = None,
    projection: str | None = None,
    update: str | None = None,
    names: dict[str, str] | None = None,
    values: dict[str, AttributeValue] | None = None,
) -> Compiled:
    """Return the trees of a request's expressions, or raise DynamoDB's error for them.

    The order of the checks is DynamoDB's: names, values, each expression, unused placeholders, and last
    whether the key condition is one.
    """
    given_names = _NO_NAMES if names is None else _check_names(names)
    given_values = _NO_VALUES if values is None else _check_values(values)
    used: list[UsedPlaceholders] = []
    bound_update = None
    if update is not None:
        parsed_update = parse_update(update)
        used.append(parsed_update.used)
        bound_update = bind_update(parsed_update, given_names, given_values)

    def bound(text: str, label: Label) -> tuple[ParsedCondition, Condition]:
        parsed = parse_condition(text, label)
        used.append(parsed.used)
        if parsed.used.names or parsed.used.values:
            return parsed, bind_condition(parsed, label, given_names, given_values)
        return parsed, _bind_constant(text, label)

    bound_condition = None if condition is None else bound(condition, "ConditionExpression")[1]
    key_pair = None if key is None else bound(key, "KeyConditionExpression")
    bound_filter = None if filter is None else bound(filter, "FilterExpression")[1]
    bound_projection = None
    if projection is not None:
        parsed_projection = parse_projection(projection)
        used.append(parsed_projection.used)
        bound_projection = bind_projection(parsed_projection, given_names)
    check_used(given_names, given_values, used)
    return Compiled(
        condition=bound_condition,
        filter=bound_filter,
        key=None if key_pair is None else build_key_condition(key_pair[0].tree, key_pair[1]),
        projection=bound_projection,
        update=bound_update,
        values=given_values,
    )


def compile_key_alone(
    key: str, names: dict[str, str] | None, values: dict[str, AttributeValue] | None
) -> KeyCondition:
    """Do the same for a key condition that is a request's only expression, as in most queries."""
    return compile_key(
        key,
        _NO_NAMES if names is None else _check_names(names),
        _NO_VALUES if values is None else _check_values(values),
    )


@cache_trees
def _bind_constant(text: str, label: Label) -> Condition:
    return bind_condition(parse_condition(text, label), label, _NO_NAMES, _NO_VALUES)


def _check_names(names: dict[str, str]) -> dict[str, str]:
    if not names:
        raise invalid("ExpressionAttributeNames must not be empty")
    for key, name in names.items():
        if len(key) > LONGEST_PLACEHOLDER or not _NAME(key):
            tail = f" size of key: {len(key)}" if len(key) > LONGEST_PLACEHOLDER else ""
            raise _invalid_key("Names", key, tail)
        if not name or utf8_size(name) > LONGEST_ATTRIBUTE_NAME:
            fault = (
                f"Attribute name is too large, must be less than {LONGEST_ATTRIBUTE_NAME + 1} bytes"
                if name
                else "Empty attribute name"
            )
            raise invalid(f"ExpressionAttributeNames contains invalid value: {fault} for key {key}")
    return names


def _check_values(values: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    if not values:
        raise invalid("ExpressionAttributeValues must not be empty")
    for key in values:
        if len(key) > LONGEST_PLACEHOLDER or not _VALUE(key):
            raise _invalid_key("Values", key, "")
    return canonical_values(values)


def canonical_values(values: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
    """Return ExpressionAttributeValues in canonical form, or raise DynamoDB's error for a value."""
    checked = values
    for key, value in values.items():
        # Most values are text or plain numbers, which are canonical as they are.
        if len(value) == 1:
            number = value.get("N")
            if "S" in value if number is None else is_plain_number(number):
                continue
        try:
            found = canonical(value)
        except ServiceError as rejected:
            wrapped = f"ExpressionAttributeValues contains invalid value: {rejected.message} for key {key}"
            if rejected.family == "structure":
                raise invalid(wrapped, family="structure") from rejected
            # DynamoDB: the newer validator does not say which value it was.
            raise invalid(wrapped, newer=rejected.newer or rejected.message) from rejected
        if checked is values:
            checked = dict(values)
        checked[key] = found
    return checked


def _invalid_key(kind: str, key: str, tail: str) -> ServiceError:
    if not key:
        fault = "The expression attribute map contains an empty key;"
    elif len(key) > LONGEST_PLACEHOLDER:
        fault = f"The expression attribute map contains a key that is too long;{tail}"
    else:
        fault = f'Syntax error; key: "{key}"'
    return invalid(f"ExpressionAttribute{kind} contains invalid key: {fault}")
