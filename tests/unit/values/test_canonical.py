"""Canonical form: equal values are equal dicts, and bad values get DynamoDB's own refusal."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._values import (
    AttributeValue,
    canonical,
    dump,
    dump_item,
    growth,
    item_size,
    load,
    ordered_bytes,
    ordered_prefix,
)
from solotable.errors import DataError, ServiceError

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.text(st.characters(codec="utf-8")),
    st.binary(),
    st.integers(-(10**37), 10**37),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**20), max_value=10**20),
)
sets = st.one_of(
    st.sets(st.text(st.characters(codec="utf-8")), min_size=1),
    st.sets(st.binary(), min_size=1),
    st.sets(st.integers(-(10**30), 10**30), min_size=1),
)
values = st.recursive(
    scalars | sets,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_python_values_come_back_as_they_were(value: Any) -> None:
    dumped = dump(value)
    assert load(dumped) == value
    assert canonical(dumped) == dumped


@given(st.lists(st.text(st.characters(codec="utf-8")), unique=True, min_size=1))
def test_a_set_in_any_order_is_one_value(members: list[str]) -> None:
    assert canonical({"SS": members}) == canonical({"SS": members[::-1]})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
        (
            {"S": "a", "N": "1"},
            "Supplied AttributeValue has more than one datatypes set, "
            "must contain exactly one of the supported datatypes",
        ),
        (
            {"NULL": False},
            "One or more parameter values were invalid: "
            "Null attribute value types must have the value of true",
        ),
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
        ({"NS": []}, "One or more parameter values were invalid: An number set  may not be empty"),
        ({"BS": []}, "One or more parameter values were invalid: Binary sets should not be empty"),
        ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        (
            {"SS": ["a", "a"]},
            "One or more parameter values were invalid: Input collection [a, a] contains duplicates.",
        ),
        ({"N": "x"}, "The parameter cannot be converted to a numeric value: x"),
        ({"L": [{"M": {"a": {"NS": ["1", "1"]}}}]}, "Input collection contains duplicates"),
    ],
)
def test_bad_values_are_refused_in_dynamodbs_words(value: AttributeValue, message: str) -> None:
    with pytest.raises(ServiceError) as refused:
        canonical(value)
    assert refused.value.message == message


def _nested(levels: int) -> AttributeValue:
    value: AttributeValue = {"S": "leaf"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def test_nesting_ends_at_32_levels() -> None:
    canonical(_nested(31))
    with pytest.raises(ServiceError) as refused:
        canonical(_nested(32))
    assert refused.value.message == (
        "Nesting Levels have exceeded supported limits: "
        "Attributes in the item have nested levels beyond supported limit"
    )


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), set(), {"a", 1}, object(), {1: "x"}, {"": "x"}]
)
def test_python_values_without_a_dynamodb_value_are_refused(value: Any) -> None:
    with pytest.raises(DataError):
        dump(value)


def test_a_float_is_dumped_as_its_shortest_text() -> None:
    assert dump(0.1) == {"N": "0.1"}


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_bytes_of_strings_sort_as_utf8_does(left: str, right: str) -> None:
    assert (ordered_bytes("S", left) < ordered_bytes("S", right)) == (left.encode() < right.encode())


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_a_prefix_of_a_string_is_a_prefix_of_its_bytes(text: str, prefix: str) -> None:
    begins = ordered_bytes("S", text).startswith(ordered_prefix("S", prefix))
    assert begins == text.startswith(prefix)


@pytest.mark.parametrize(
    ("item", "size"),
    [
        ({"a": {"S": "xyz"}}, 4),
        ({"ä": {"S": "ö"}}, 4),
        ({"a": {"BOOL": True}}, 2),
        ({"a": {"NULL": True}}, 2),
        ({"a": {"B": "eHl6"}}, 4),
        ({"a": {"SS": ["xy", "z"]}}, 4),
        ({"a": {"L": [{"S": "x"}, {"N": "1"}]}}, 1 + 3 + 2 + 3),
        ({"a": {"M": {"bc": {"S": "x"}}}}, 1 + 3 + 1 + 2 + 1),
    ],
)
def test_size_counts_names_and_values(item: dict[str, AttributeValue], size: int) -> None:
    assert item_size(item) == size


attributes = st.dictionaries(st.sampled_from(["a", "bb", "ccc", "d\u00e9"]), values)


@given(attributes, attributes)
def test_growth_is_the_difference_of_the_sizes(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = dump_item(before), dump_item(after)
    same = {"same": {"S": "as before"}}
    names = {*old, *new, "absent"}
    assert growth(names, old | same, new | same, most=1 << 20) == item_size(new) - item_size(old)


def test_growth_stops_counting_once_the_new_values_are_too_large() -> None:
    class Counted(dict[str, Any]):
        """A value that counts how often its size is asked for."""

        asked = 0

        def items(self) -> Any:
            Counted.asked += 1
            return super().items()

    new = {f"a{number}": {"L": [Counted(S="x")] * 10} for number in range(100)}
    assert growth(new, {}, new, most=50) > 50
    assert Counted.asked <= 30
