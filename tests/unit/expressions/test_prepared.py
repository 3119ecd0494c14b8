"""Templates of updates: the compiled function agrees with `evaluate` and `apply_update`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.ast import (
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    Between,
    Compare,
    Condition,
    Const,
    Delete,
    Exists,
    IfNotExists,
    In,
    Not,
    Or,
    Remove,
    Update,
)
from solotable._expressions.evaluate import evaluate
from solotable._expressions.prepared.compile_function import compile_function
from solotable._expressions.prepared.slots import Slot, fill
from solotable._expressions.prepared.template import UpdateTemplate
from solotable._expressions.update import apply_update
from solotable._values import AttributeValue, Item, canonical, canonical_item, item_size
from solotable.errors import DeclarationError, ServiceError

from .strategies import VALUES

_NAMES = "abcd"
#: Numbers at the borders of what the function covers: 37 digits are, 38 are not.
_NUMBERS = st.one_of(
    st.sampled_from(
        [
            *("0", "1", "-1", "9", "10", "99", "100", "-100", "1.5", "0.001", "12345678901234567890"),
            *("9" * 36, "9" * 37, "9" * 38, "-" + "9" * 36, "-" + "9" * 37, "1" + "0" * 37, "1" + "0" * 125),
        ]
    ),
    st.integers(-(10**20), 10**20).map(str),
).map(lambda text: {"N": text})
_TEXTS = st.sampled_from(["", "a", "ab", "é", "😀"]).map(lambda text: {"S": text})
_ANY_VALUE = st.one_of(_NUMBERS, _NUMBERS, _NUMBERS, _TEXTS, VALUES).map(canonical)
_ITEMS = st.dictionaries(st.sampled_from(_NAMES), _ANY_VALUE, max_size=4).map(canonical_item)
_PATHS = st.sampled_from(_NAMES).map(lambda name: (name,))
_ATTRIBUTES = st.builds(Attr, _PATHS)
#: Slots, and values that are fixed.
_CONSTANTS = st.one_of(st.integers(0, 3).map(Slot), _ANY_VALUE).map(Const)
_TESTS = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _ATTRIBUTES, _CONSTANTS),
    st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _CONSTANTS, _ATTRIBUTES),
    st.builds(Between, _ATTRIBUTES, _CONSTANTS, _CONSTANTS),
    st.builds(In, _ATTRIBUTES, st.lists(_CONSTANTS, min_size=1, max_size=3).map(tuple)),
    st.builds(Exists, _PATHS),
)
_CONDITIONS: st.SearchStrategy[Condition | None] = st.one_of(
    st.none(),
    st.recursive(
        _TESTS,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=4,
    ),
)
_ADDENDS = st.one_of(_CONSTANTS, _ATTRIBUTES, st.builds(IfNotExists, _PATHS, _CONSTANTS))
_OPERANDS = st.one_of(
    _CONSTANTS,
    st.builds(IfNotExists, _PATHS, _CONSTANTS),
    st.builds(Arithmetic, st.sampled_from("+-"), _ADDENDS, _ADDENDS),
)


@st.composite
def _updates(draw: st.DrawFn) -> Update:
    actions: list[Any] = []
    for name in draw(st.lists(st.sampled_from(_NAMES), unique=True, max_size=4)):
        match draw(st.integers(0, 3)):
            case 0:
                actions.append(Remove((name,)))
            case 1:
                actions.append(Add((name,), draw(st.one_of(st.integers(0, 3).map(Slot), _NUMBERS))))
            case _:
                actions.append(Assign((name,), draw(_OPERANDS)))
    return Update(tuple(actions), creates=True)


def _expected(update: Update, condition: Condition | None, item: Item) -> Any:
    """Return what the general functions decide: False, an error, or the new item and its growth."""
    if condition is not None and not evaluate(condition, item):
        return False
    try:
        new = apply_update(update, item)
    except (ServiceError, AttributeError, TypeError, KeyError):
        # A value that no request has, such as a number to ADD that is a string, fails anywhere.
        return None
    return new, item_size(new) - item_size(item), list(new)


@given(
    update=_updates(),
    condition=_CONDITIONS,
    shown=st.lists(_ANY_VALUE, min_size=4, max_size=4),
    values=st.lists(_ANY_VALUE, min_size=4, max_size=4),
    items=st.lists(_ITEMS, min_size=1, max_size=5),
)
def test_a_compiled_function_gives_the_general_result_or_none(
    update: Update,
    condition: Condition | None,
    shown: list[AttributeValue],
    values: list[AttributeValue],
    items: list[Item],
) -> None:
    """The values may have other types than those that the function was compiled with."""
    function = compile_function(update, condition, shown)
    if function is None:
        return
    for item in items:
        for given_values in (shown, values):
            before = {name: dict(value) for name, value in item.items()}
            result = function(item, given_values, item)
            assert item == before, "the stored item is not changed"
            if result is None:
                continue
            expected = _expected(fill(update, given_values), fill(condition, given_values), item)
            if isinstance(result, tuple):
                # The order of attributes too: it is that of the stored bytes.
                assert (*result, list(result[0])) == expected
            else:
                assert result is expected is False


def _number(value: int) -> AttributeValue:
    return {"N": str(value)}


_CHARGE = Update(
    (
        Assign(("at",), Const(Slot(0))),
        Add(("writes",), {"N": "1"}),
        Add(("used",), Slot(1)),
        Assign(("first",), IfNotExists(("first",), Const(Slot(0)))),
        Assign(("sum",), Arithmetic("+", IfNotExists(("sum",), Const({"N": "0"})), Const(Slot(1)))),
        Remove(("stale",)),
    ),
    creates=True,
)
_ROOM = And(
    (
        Compare("=", Attr(("rules",)), Const({"S": "r"})),
        Or((Not(Exists(("lane",))), Compare("<", Attr(("lane",)), Const(Slot(2))))),
        Compare("<=", Attr(("used",)), Const(Slot(3))),
    )
)
_VALUES: Sequence[AttributeValue] = [_number(5), _number(3), _number(7), _number(90)]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        pytest.param({"rules": {"S": "x"}, "used": {"N": "5"}}, False, id="another string"),
        pytest.param({"rules": {"S": "r"}, "used": {"N": "91"}}, False, id="too much"),
        pytest.param({"rules": {"S": "r"}}, False, id="missing number"),
        pytest.param({"rules": {"S": "r"}, "used": {"N": "5"}, "lane": {"N": "7"}}, False, id="lane written"),
        pytest.param({"rules": {"S": "r"}, "used": {"S": "5"}}, None, id="number is a string"),
        pytest.param({"rules": {"S": "r"}, "used": {"N": "5.5"}}, None, id="number is a fraction"),
        pytest.param({"rules": {"S": "r"}, "used": {"N": "-" + "9" * 38}}, None, id="38 digits"),
        pytest.param({"rules": {"S": "r"}, "used": {"N": "5"}, "at": {"S": "x"}}, None, id="type changes"),
    ],
)
def test_a_function_covers_what_is_usual_and_no_more(item: Item, expected: object) -> None:
    function = compile_function(_CHARGE, _ROOM, _VALUES)
    assert function is not None
    assert function(item, _VALUES, item) is expected


def test_a_function_updates_an_item_and_counts_its_bytes() -> None:
    function = compile_function(_CHARGE, _ROOM, _VALUES)
    assert function is not None
    item: Item = {"rules": {"S": "r"}, "used": {"N": "97"}, "stale": {"L": [{"N": "1"}]}, "lane": {"N": "6"}}
    item["used"] = {"N": "7"}
    result = function(item, _VALUES, item)
    assert isinstance(result, tuple)
    new, gained = result
    assert new == apply_update(fill(_CHARGE, _VALUES), item)
    assert gained == item_size(new) - item_size(item)


@pytest.mark.parametrize(
    "update",
    [
        Update((Delete(("a",), Slot(0)),), creates=False),
        Update((Remove(("a", 0)),), creates=False),
        Update((Add(("a",), Slot(0), to_list=True),), creates=True),
        Update((Assign(("a",), Attr(("b",))),), creates=True),
        Update((Remove(("a",)),), creates=False, legacy=True),
    ],
    ids=["DELETE", "nested path", "legacy ADD", "copy of an attribute", "legacy"],
)
def test_an_uncommon_update_is_not_compiled(update: Update) -> None:
    assert compile_function(update, None, [{"N": "1"}]) is None


def test_templates_that_differ_in_names_and_fixed_values_share_a_factory() -> None:
    one = compile_function(Update((Add(("a",), {"N": "1"}),), creates=True), None, [])
    other = compile_function(Update((Add(("b",), {"N": "2"}),), creates=True), None, [])
    assert one is not None
    assert other is not None
    assert one.__code__ is other.__code__
    assert other({}, [], {"p": {"S": "x"}}) == ({"p": {"S": "x"}, "b": {"N": "2"}}, 3)


def test_a_name_is_never_source() -> None:
    name = "'];import os#\n"
    function = compile_function(Update((Add((name,), Slot(0)),), creates=True), Exists((name,)), [_number(1)])
    assert function is not None
    assert function({name: {"N": "1"}}, [_number(2)], {name: {"N": "1"}}) == ({name: {"N": "3"}}, 0)


def test_a_template_is_compiled_after_a_few_uses_and_rests_after_many_misses() -> None:
    template = UpdateTemplate(Update((Add(("a",), Slot(0)),), creates=True), None)
    assert [bool(template.function([_number(1)])) for _ in range(5)] == [False, False, False, True, True]
    for _ in range(64):
        template.note_miss()
    assert not template.function([_number(1)])


def test_slots_have_no_gap() -> None:
    with pytest.raises(DeclarationError, match=r"Slot\(1\) is not used"):
        UpdateTemplate(Update((Add(("a",), Slot(2)), Add(("b",), Slot(0))), creates=True), None)


def test_a_slot_without_a_value_raises() -> None:
    with pytest.raises(DeclarationError, match="PreparedUpdate"):
        apply_update(Update((Add(("a",), Slot(0)),), creates=True), {"a": {"N": "1"}})
    with pytest.raises(DeclarationError, match="0 or more"):
        Slot(-1)


def test_a_template_renders_its_texts_once() -> None:
    template = UpdateTemplate(_CHARGE, _ROOM)
    one, other = template.wire_members(_VALUES), template.wire_members([_number(0)] * 4)
    assert one["UpdateExpression"] is other["UpdateExpression"]
    assert one["ExpressionAttributeValues"][":s3"] == _number(90)
    assert other["ExpressionAttributeValues"][":s3"] == _number(0)
