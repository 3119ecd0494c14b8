"""The parameters that expressions replaced."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._expressions.ast import KeyTerm
from solotable._expressions.evaluate import evaluate
from solotable._expressions.legacy import (
    condition_from_expected,
    filter_from_conditions,
    key_from_conditions,
    projection_from_attributes,
    update_from_attribute_updates,
)
from solotable._expressions.update import apply_update
from solotable._values import AttributeValue, Item
from solotable.errors import ServiceError

_S, _N = {"S": "a"}, {"N": "1"}


def _test(operator: str, *values: dict[str, Any]) -> dict[str, Any]:
    return {"a": {"ComparisonOperator": operator, "AttributeValueList": list(values)}}


def _holds(operator: str, value: dict[str, Any], item: Item) -> bool:
    condition = filter_from_conditions(_test(operator, value), None)
    assert condition == condition_from_expected(_test(operator, value), None)
    return evaluate(condition, item)


def _message(refused: pytest.ExceptionInfo[ServiceError]) -> str:
    return refused.value.message.removeprefix("One or more parameter values were invalid: ")


def test_a_missing_attribute_differs_but_neither_contains_nor_lacks() -> None:
    assert _holds("NE", _S, {})
    for operator in ("EQ", "LT", "GE", "IN", "CONTAINS", "NOT_CONTAINS", "BEGINS_WITH"):
        assert not _holds(operator, _S, {})


def test_not_contains_holds_for_whatever_cannot_contain() -> None:
    lacking: list[AttributeValue] = [{"N": "1"}, {"BOOL": True}, {"M": {}}, {"NS": ["1"]}, {"S": "x"}]
    assert all(_holds("NOT_CONTAINS", _S, {"a": value}) for value in lacking)
    containing: list[AttributeValue] = [{"S": "cat"}, {"SS": ["a", "b"]}, {"L": [_S]}]
    assert not any(_holds("NOT_CONTAINS", _S, {"a": value}) for value in containing)


def test_null_and_not_null_ask_for_presence_not_for_a_value() -> None:
    null = filter_from_conditions({"a": {"ComparisonOperator": "NULL"}}, None)
    not_null = filter_from_conditions({"a": {"ComparisonOperator": "NOT_NULL"}}, None)
    assert evaluate(null, {})
    assert not evaluate(null, {"a": {"NULL": True}})
    assert evaluate(not_null, {"a": {"NULL": True}})


def test_values_are_made_canonical() -> None:
    assert _holds("EQ", {"N": "001"}, {"a": _N})
    assert _holds("EQ", {"SS": ["b", "a"]}, {"a": {"SS": ["a", "b"]}})


def test_conditions_are_joined_by_the_operator() -> None:
    expected = {"a": {"Value": _S}, "b": {"Value": _S}}
    assert evaluate(condition_from_expected(expected, "OR"), {"b": _S})
    assert not evaluate(condition_from_expected(expected, "AND"), {"b": _S})
    assert not evaluate(condition_from_expected(expected, None), {"b": _S})
    assert evaluate(condition_from_expected({}, "OR"), {})


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        ({"Exists": False, "Value": _S}, "Value cannot be used when Exists is false for Attribute: a"),
        (
            {"Value": _S, "AttributeValueList": [_S]},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"Exists": True, "ComparisonOperator": "EQ", "Value": _S},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"AttributeValueList": [_S]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ"},
            "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
        ),
        (
            {"ComparisonOperator": "BETWEEN", "Value": _S},
            "Invalid number of argument(s) for the BETWEEN ComparisonOperator",
        ),
        (
            {"ComparisonOperator": "LT", "Value": {"BOOL": True}},
            "ComparisonOperator LT is not valid for BOOL AttributeValue type",
        ),
    ],
)
def test_what_expected_may_not_say(wanted: dict[str, Any], expected: str) -> None:
    with pytest.raises(ServiceError) as refused:
        condition_from_expected({"a": wanted}, None)
    assert _message(refused) == expected


@pytest.mark.parametrize(
    "condition, expected",
    [
        (_test("EQ"), "Invalid number of argument(s) for the EQ ComparisonOperator"),
        (_test("NULL", _S), "Invalid number of argument(s) for the NULL ComparisonOperator"),
        (_test("IN"), "Invalid number of argument(s) for the IN ComparisonOperator"),
        (_test("IN", _S, _N), "AttributeValues inside AttributeValueList must be of same type"),
        (_test("IN", {"BOOL": True}), "ComparisonOperator IN is not valid for BOOL AttributeValue type"),
        (_test("CONTAINS", {"L": []}), "ComparisonOperator CONTAINS is not valid for L AttributeValue type"),
        (_test("BEGINS_WITH", _N), "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"),
        (
            _test("BETWEEN", {"S": "b"}, _S),
            "The BETWEEN condition was provided a range where the lower bound is greater than "
            "the upper bound",
        ),
    ],
)
def test_what_a_filter_may_not_say(condition: dict[str, Any], expected: str) -> None:
    for state in (lambda: filter_from_conditions(condition, None), lambda: key_from_conditions(condition)):
        with pytest.raises(ServiceError) as refused:
            state()
        assert _message(refused) == expected


def test_key_conditions_become_terms() -> None:
    conditions = {
        "p": {"ComparisonOperator": "EQ", "AttributeValueList": [_S]},
        "q": {"ComparisonOperator": "BETWEEN", "AttributeValueList": [_N, {"N": "02"}]},
    }
    assert key_from_conditions(conditions) == (
        KeyTerm("p", "=", (_S,)),
        KeyTerm("q", "BETWEEN", (_N, {"N": "2"})),
    )
    with pytest.raises(ServiceError, match="is not an indexable operation"):
        key_from_conditions(_test("NE", _S))


@pytest.mark.parametrize(
    "update, before, after",
    [
        ({"Value": _S}, None, _S),
        ({"Action": "PUT", "Value": _S}, _N, _S),
        ({"Action": "DELETE"}, _S, None),
        ({"Action": "DELETE", "Value": {"SS": ["a"]}}, {"SS": ["a", "b"]}, {"SS": ["b"]}),
        ({"Action": "DELETE", "Value": {"SS": ["a"]}}, {"SS": ["a"]}, None),
        ({"Action": "DELETE", "Value": {"SS": ["a"]}}, None, None),
        ({"Action": "ADD", "Value": _N}, None, _N),
        ({"Action": "ADD", "Value": _N}, _N, {"N": "2"}),
        ({"Action": "ADD", "Value": {"L": [_S]}}, {"L": [_N]}, {"L": [_N, _S]}),
        ({"Action": "ADD", "Value": {"L": [_S]}}, None, {"L": [_S]}),
        ({"Action": "ADD", "Value": {"SS": ["a"]}}, {"SS": ["b"]}, {"SS": ["a", "b"]}),
    ],
)
def test_attribute_updates(update: dict[str, Any], before: Any, after: Any) -> None:
    item = {} if before is None else {"a": before}
    expected = {} if after is None else {"a": after}
    assert apply_update(update_from_attribute_updates({"a": update}), item) == expected


@pytest.mark.parametrize(
    "update, before",
    [
        ({"Action": "ADD", "Value": _N}, _S),
        ({"Action": "ADD", "Value": {"L": [_S]}}, _S),
        ({"Action": "DELETE", "Value": {"NS": ["1"]}}, {"SS": ["a"]}),
    ],
)
def test_attribute_updates_of_another_type_are_refused(update: dict[str, Any], before: Any) -> None:
    with pytest.raises(ServiceError) as refused:
        apply_update(update_from_attribute_updates({"a": update}), {"a": before})
    assert refused.value.message == "Type mismatch for attribute to update"


@pytest.mark.parametrize(
    "update, expected",
    [
        ({"Action": "PUT"}, "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "DELETE", "Value": _N}, "DELETE action with value is not supported for the type N"),
        ({"Action": "ADD", "Value": _S}, "ADD action is not supported for the type S"),
    ],
)
def test_what_attribute_updates_may_not_say(update: dict[str, Any], expected: str) -> None:
    with pytest.raises(ServiceError) as refused:
        update_from_attribute_updates({"a": update})
    assert _message(refused) == expected


def test_only_an_update_that_takes_away_does_not_create() -> None:
    assert update_from_attribute_updates({}).creates
    assert update_from_attribute_updates({"a": {"Value": _S}, "b": {"Action": "DELETE"}}).creates
    assert not update_from_attribute_updates({"b": {"Action": "DELETE"}}).creates
    assert not update_from_attribute_updates({"b": {"Action": "DELETE", "Value": {"SS": ["a"]}}}).creates


def test_attributes_to_get_are_whole_names_without_duplicates() -> None:
    assert projection_from_attributes(["a.b", "c"]) == (("a.b",), ("c",))
    with pytest.raises(ServiceError) as refused:
        projection_from_attributes(["a", "b", "b", "a"])
    assert _message(refused) == "Duplicate value in attribute name: b"
