"""Placeholders: what the maps may hold, and that everything in them is used."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._expressions.syntax.compile import compile_expressions
from solotable.errors import ServiceError


def _refused(**request: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        compile_expressions(**request)
    assert refused.value.code == "ValidationException"
    return refused.value.message


@pytest.mark.parametrize(
    "names, expected",
    [
        ({}, "ExpressionAttributeNames must not be empty"),
        ({"a": "b"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"'),
        ({"#": "b"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
        ({"#a-b": "b"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"'),
        (
            {"": "b"},
            "ExpressionAttributeNames contains invalid key: "
            "The expression attribute map contains an empty key;",
        ),
        (
            {"#" + "a" * 255: "b"},
            "ExpressionAttributeNames contains invalid key: "
            "The expression attribute map contains a key that is too long; size of key: 256",
        ),
        ({"#a": ""}, "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a"),
        (
            {"#a": "x" * 65536},
            "ExpressionAttributeNames contains invalid value: "
            "Attribute name is too large, must be less than 65536 bytes for key #a",
        ),
        ({"#a": "b"}, "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}"),
    ],
)
def test_names(names: dict[str, str], expected: str) -> None:
    assert _refused(projection="a", names=names) == expected


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, "ExpressionAttributeValues must not be empty"),
        ({":": {"S": "a"}}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":"'),
        (
            {":a": {}},
            "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, "
            "must contain exactly one of the supported datatypes for key :a",
        ),
        (
            {":a": {"S": "a"}, ":b": {"N": "x"}},
            "ExpressionAttributeValues contains invalid value: "
            "The parameter cannot be converted to a numeric value: x for key :b",
        ),
        (
            {":a": {"N": "x"}, "b": {"S": "b"}},
            'ExpressionAttributeValues contains invalid key: Syntax error; key: "b"',
        ),
        (
            {":a": {"S": "a"}, ":b": {"S": "b"}},
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:a, :b}",
        ),
    ],
)
def test_values(values: dict[str, Any], expected: str) -> None:
    assert _refused(condition="a = b", values=values) == expected


def test_names_are_checked_before_values_and_both_before_expressions() -> None:
    bad_name, bad_value = {"a": "b"}, {":a": {"N": "x"}}
    assert "ExpressionAttributeNames" in _refused(condition="", names=bad_name, values=bad_value)
    assert "ExpressionAttributeValues" in _refused(condition="", names={"#a": "b"}, values=bad_value)


def test_expressions_are_checked_in_the_services_order() -> None:
    assert "Invalid UpdateExpression" in _refused(update="", condition="")
    assert "Invalid KeyConditionExpression" in _refused(key="", filter="", projection="")
    assert "Invalid FilterExpression" in _refused(key="p <> q", filter="", projection="")
    assert "Invalid ProjectionExpression" in _refused(key="p <> q", filter="a = b", projection="")
    assert "unused" in _refused(key="p <> q", names={"#a": "b"})
    assert "Names unused" in _refused(key="p = q", names={"#a": "b"}, values={":v": {"S": "a"}})


def test_a_placeholder_used_by_any_expression_is_used() -> None:
    compiled = compile_expressions(
        key="#p = :p",
        filter="#f = :p OR a = :f",
        projection="#p, a",
        names={"#p": "p", "#f": "f"},
        values={":p": {"S": "a"}, ":f": {"NS": ["2", "1"]}},
    )
    assert compiled.projection == (("p",), ("a",))
    assert compiled.condition is None
    assert compiled.update is None
