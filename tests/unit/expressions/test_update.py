"""Updates of items."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.ast import Add, Assign, Const, Delete, Path, Remove, Update
from solotable._expressions.path_overlap import find_clash
from solotable._expressions.syntax.compile import compile_expressions
from solotable._expressions.update import apply_update, updated_values
from solotable._values import AttributeValue, Item, canonical_item
from solotable.errors import ServiceError

from .strategies import ITEMS, PATHS, VALUES


def _numbers(*numbers: int) -> AttributeValue:
    return {"L": [{"N": str(number)} for number in numbers]}


_ITEM: Item = {
    "p": {"S": "key"},
    "l": _numbers(2, 3, 4, 5, 6, 7),
    "n": {"N": "5"},
    "s": {"S": "x"},
    "ss": {"SS": ["a", "b"]},
    "m": {"M": {"x": {"N": "1"}, "c": _numbers(1, 2, 3)}},
    "ls": {"L": [{"SS": ["a"]}, {"N": "1"}]},
}


def _update(text: str, **values: dict[str, Any]) -> Update:
    bound = {f":{name}": value for name, value in values.items()}
    update = compile_expressions(update=text, values=bound or None).update
    assert update is not None
    return update


def _after(text: str, **values: dict[str, Any]) -> Item:
    return apply_update(_update(text, **values), _ITEM)


def _refused(text: str, **values: dict[str, Any]) -> str:
    with pytest.raises(ServiceError) as refused:
        _after(text, **values)
    assert refused.value.code == "ValidationException"
    return refused.value.message


_V = {"N": "99"}


def test_every_path_refers_to_the_item_before_the_update() -> None:
    expected = _numbers(2, 4, 99, 6, 7)
    assert _after("REMOVE l[1] SET l[3] = :v", v=_V)["l"] == expected
    assert _after("SET l[3] = :v REMOVE l[1]", v=_V)["l"] == expected
    assert _after("SET l[0] = l[1], l[1] = l[0]")["l"] == _numbers(3, 2, 4, 5, 6, 7)
    assert _after("SET m = n, n = m.x")["n"] == {"N": "1"}


def test_what_is_set_past_the_end_is_appended_in_index_order() -> None:
    after = _after("SET l[20] = :v, l[10] = :w REMOVE l[0]", v=_V, w={"N": "98"})
    assert after["l"] == _numbers(3, 4, 5, 6, 7, 98, 99)
    assert _after("REMOVE l[50]")["l"] == _ITEM["l"]


def test_arithmetic_is_exact() -> None:
    assert _after("SET n = n + :v", v={"N": "0.1"})["n"] == {"N": "5.1"}
    assert _after("SET n = :v - n", v={"N": "5"})["n"] == {"N": "0"}
    for text in ("SET n = n + :v", "SET n = n - :v", "ADD n :v"):
        # 39 digits: refused, never rounded.
        assert "Number" in _refused(text, v={"N": "0." + "1" * 38})


def test_lists_are_appended() -> None:
    assert _after("SET l = list_append(l, :v)", v=_numbers(8))["l"] == _numbers(2, 3, 4, 5, 6, 7, 8)
    after = _after("SET q = list_append(if_not_exists(q, :v), :v)", v=_numbers(1))
    assert after["q"] == _numbers(1, 1)


def test_if_not_exists_keeps_what_is_there() -> None:
    assert _after("SET n = if_not_exists(n, :v)", v=_V)["n"] == {"N": "5"}
    assert _after("SET q = if_not_exists(q, :v) + :v", v=_V)["q"] == {"N": "198"}


def test_add_and_delete_change_numbers_and_sets() -> None:
    assert _after("ADD n :v", v=_V)["n"] == {"N": "104"}
    assert _after("ADD q :v", v=_V)["q"] == _V
    assert _after("ADD ss :v", v={"SS": ["c", "a"]})["ss"] == {"SS": ["a", "b", "c"]}
    assert _after("ADD m.q :v", v={"SS": ["c"]})["m"]["M"]["q"] == {"SS": ["c"]}
    assert _after("DELETE ss :v", v={"SS": ["a", "z"]})["ss"] == {"SS": ["b"]}
    assert _after("DELETE q :v", v={"SS": ["a"]}) == _ITEM


def test_an_emptied_set_goes_away() -> None:
    assert "ss" not in _after("DELETE ss :v", v={"SS": ["a", "b"]})
    assert _after("DELETE ls[0] :v", v={"SS": ["a"]})["ls"] == _numbers(1)


@pytest.mark.parametrize("text", ["SET {} = :v", "ADD {} :v", "REMOVE {}"])
@pytest.mark.parametrize("path", ["q.x", "q[0]", "l.x", "m[0]", "s.x", "s[0]", "ss[0]", "m.q.x", "l[50].x"])
def test_a_path_needs_a_parent_of_its_kind(text: str, path: str) -> None:
    values = {"v": _V} if ":v" in text else {}
    message = "The document path provided in the update expression is invalid for update"
    assert _refused(text.format(path), **values) == message


@pytest.mark.parametrize(
    "text",
    [
        "SET q = s + :v",
        "SET q = list_append(n, l)",
        "ADD s :v",
        "ADD ss :v",
        "ADD l :v",
        "SET q = if_not_exists(s, :v) + :v",
    ],
)
def test_an_operand_needs_its_type(text: str) -> None:
    values = {"v": _V} if ":v" in text else {}
    assert _refused(text, **values) == "An operand in the update expression has an incorrect data type"


@pytest.mark.parametrize("text", ["SET q = r", "SET q = r + n", "SET q = list_append(r, l)", "SET q = m.r.s"])
def test_an_operand_must_be_there(text: str) -> None:
    message = "The provided expression refers to an attribute that does not exist in the item"
    assert _refused(text) == message


def test_nesting_has_a_limit() -> None:
    def nested(levels: int) -> AttributeValue:
        value: AttributeValue = {"N": "1"}
        for _ in range(levels):
            value = {"L": [value]}
        return value

    assert _after("SET m.x = :v", v=nested(30))
    assert _refused("SET m.x = :v", v=nested(31)) == "Nesting Levels have exceeded supported limits"


def test_only_touched_leaves_are_returned() -> None:
    update = _update("SET m.c[1] = :v, n = :v REMOVE m.x", v=_V)
    after = apply_update(update, _ITEM)
    assert updated_values(update, _ITEM, _ITEM) == {
        "m": {"M": {"c": _numbers(2), "x": {"N": "1"}}},
        "n": {"N": "5"},
    }
    assert updated_values(update, after, _ITEM) == {"m": {"M": {"c": _numbers(99)}}, "n": _V}


def test_an_element_set_past_the_end_is_not_returned_and_one_that_moved_up_is() -> None:
    past = _update("SET l[100] = :v", v=_V)
    assert updated_values(past, apply_update(past, _ITEM), _ITEM) == {}
    removed = _update("REMOVE m.c[1]")
    assert updated_values(removed, apply_update(removed, _ITEM), _ITEM) == {"m": {"M": {"c": _numbers(3)}}}


_ACTIONS = st.one_of(
    st.builds(Assign, PATHS, st.builds(Const, VALUES)),
    st.builds(Remove, PATHS),
    st.builds(Add, PATHS, st.sampled_from([{"N": "1"}, {"SS": ["a"]}, {"NS": ["2"]}])),
    st.builds(Delete, PATHS, st.sampled_from([{"SS": ["a"]}, {"NS": ["1"]}])),
)


@given(st.lists(_ACTIONS, min_size=1, max_size=3), ITEMS)
def test_the_given_item_is_never_changed_and_the_new_one_is_canonical(
    actions: list[Assign | Remove | Add | Delete], item: Item
) -> None:
    paths: tuple[Path, ...] = tuple(action.path for action in actions)
    if find_clash(paths) is not None:
        return
    before = deepcopy(item)
    with suppress(ServiceError):
        after = apply_update(Update(tuple(actions), creates=True), item)
        assert canonical_item(after) == after
        assert apply_update(Update(tuple(reversed(actions)), creates=True), item) == after
    assert item == before
