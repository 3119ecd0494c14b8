"""One walk checks, canonicalises and measures an item as three walks would, errors included."""

from __future__ import annotations

import random
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from solotable._protocol.constraints.attribute_values import (
    MeasuredAttributes,
    canonical_and_size,
    check_attributes,
    measure_attributes,
)
from solotable._values import canonical_item, item_size
from solotable.errors import ServiceError
from tests.differential.values import NO_NUMBERS, NUMBERS, Values

DEEP: dict[str, Any] = {"S": "x"}
for _ in range(31):
    DEEP = {"L": [DEEP]}
#: Valid values that are not canonical, or have an unusual form.
UNUSUAL: list[Any] = [
    {"SS": ["b", "a"]},
    {"NS": ["2", "1.0"]},
    {"BS": ["YQ==", "AAA="]},
    {"N": "1.50"},
    {"N": "0" * 60 + "1"},
    {"M": {"n": {"N": "+1"}, "s": {"S": "é"}, "é": {"L": [{"N": "01"}, {"SS": ["b", "a"]}]}}},
    {"L": [{"BOOL": "true"}, {"S": "x", "N": None}]},
    {"M": OrderedDict(a={"S": "x"})},
    OrderedDict(S="x"),
    {"M": {}},
    {"L": []},
    {"S": ""},
    DEEP,
    {"M": {"x" * 20_000: {"S": "y"}}},
]
INVALID: list[Any] = [
    None,
    {},
    [],
    "S",
    ["S"],
    5,
    MappingProxyType({"S": "x"}),
    {"S": 1},
    {"S": b"x"},
    {"S": None},
    {"X": "x"},
    {"S": "x", "N": "1"},
    {"N": 1},
    {"N": ["1"]},
    {"BOOL": 1},
    {"NULL": False},
    {"M": []},
    {"M": ["a"]},
    {"M": ""},
    {"M": {"": {"S": "x"}}},
    {"M": {"x" * 65_536: {"S": "x"}}},
    {"M": {"a": None}},
    {"M": {"a": {}}},
    {"L": {}},
    {"L": ""},
    {"L": ({"S": "x"},)},
    {"L": ["x"]},
    {"SS": []},
    {"SS": ""},
    {"SS": ("a",)},
    {"SS": ["a", "a"]},
    {"SS": [1]},
    {"SS": [None]},
    {"SS": [["a"]]},
    {"NS": ["1", "1.0"]},
    {"NS": []},
    {"B": "a"},
    {"B": "YR=="},
    {"BS": ["YQ==", "YQ=="]},
    {"L": [DEEP]},
    *({"N": text} for text in NO_NUMBERS),
]


def in_three_walks(item: Any) -> Any:
    try:
        clean = canonical_item(check_attributes(item))
    except ServiceError as error:
        return error.code, error.message, error.newer
    return clean, list(clean), item_size(clean)


def in_one_walk(item: Any) -> Any:
    try:
        clean, size = canonical_and_size(measure_attributes(item))
    except ServiceError as error:
        return error.code, error.message, error.newer
    return clean, list(clean), size


@pytest.mark.parametrize("value", UNUSUAL + INVALID + [{"N": text} for text in NUMBERS], ids=repr)
def test_each_value_has_the_same_result(value: Any) -> None:
    for item in ({"a": value}, {"a": {"S": "x"}, "b": value, "c": {"N": "x"}}, {"a": {"L": [value]}}):
        assert in_one_walk(item) == in_three_walks(item)


def test_random_items_have_the_same_result() -> None:
    values = Values(random.Random(1))
    measured = 0
    for _ in range(300):
        item = {f"{values.text()}{number}": values.value(3) for number in range(4)}
        assert in_one_walk(item) == in_three_walks(item)
        measured += isinstance(measure_attributes(item), MeasuredAttributes)
    assert measured > 150


@pytest.mark.parametrize("item", [{}, {"": {"S": "x"}}, {"x" * 65_536: {"S": "x"}}, [], "x", None])
def test_each_item_has_the_same_result(item: Any) -> None:
    assert in_one_walk(item) == in_three_walks(item)


def test_an_error_of_types_comes_before_one_of_contents() -> None:
    with pytest.raises(ServiceError) as caught:
        measure_attributes({"a": {"N": "x"}, "b": {"S": 1}})
    assert caught.value.code == "SerializationException"


def test_measured_attributes_are_as_sent_beside_their_canonical_form() -> None:
    sent = {"a": {"SS": ["b", "a"]}, "b": {"M": {"c": {"N": "1.0"}}}}
    measured = measure_attributes(sent)
    assert measured == {"a": {"SS": ["b", "a"]}, "b": {"M": {"c": {"N": "1.0"}}}} == sent
    assert canonical_and_size(measured) == ({"a": {"SS": ["a", "b"]}, "b": {"M": {"c": {"N": "1"}}}}, 11)


def test_a_plain_item_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = measure_attributes({"a": {"S": "x"}, "b": {"L": [{"N": "1"}]}, "c": {"BOOL": True}})
    for name in ("canonical_item", "item_size"):
        monkeypatch.delattr(f"solotable._protocol.constraints.attribute_values.{name}")
    assert canonical_and_size(measured) == (measured, 3 + 1 + 3 + 1 + 2 + 1)
