"""Conditions on items."""

from __future__ import annotations

from decimal import Decimal
from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given

from solotable._expressions.ast import And, Condition, Not, Or, Same
from solotable._expressions.evaluate import evaluate, paths_of
from solotable._expressions.syntax.compile import compile_expressions
from solotable._values import Item, canonical

from .strategies import CONDITIONS, ITEMS

_ITEM: Item = {
    "s": {"S": "hello"},
    "n": {"N": "10"},
    "b": {"B": "YWJj"},
    "t": {"BOOL": True},
    "z": {"NULL": True},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2"]},
    "bs": {"BS": ["YQ=="]},
    "l": {"L": [{"S": "x"}, {"N": "1"}, {"SS": ["a", "b"]}, {"M": {"k": {"N": "5"}}}]},
    "m": {"M": {"k": {"L": [{"N": "7"}]}, "d.t": {"S": "dot"}}},
}


def _holds(text: str, **values: dict[str, Any]) -> bool:
    names = {"#dt": "d.t"} if "#dt" in text else None
    bound = {f":{name}": value for name, value in values.items()}
    condition = compile_expressions(condition=text, names=names, values=bound or None).condition
    assert condition is not None
    return evaluate(condition, _ITEM)


def test_equality_is_by_type_and_value() -> None:
    assert _holds("n = :v", v={"N": "1e1"})
    assert not _holds("n = :v", v={"S": "10"})
    assert not _holds("t = :v", v={"N": "1"})
    assert _holds("ss = :v", v={"SS": ["b", "a"]})
    assert _holds("l[2] = ss")
    assert _holds("m.#dt = :v", v={"S": "dot"})


def test_what_is_not_there_equals_nothing_and_differs_from_everything() -> None:
    assert not _holds("x = y")
    assert _holds("x <> y")
    assert _holds("x <> s")
    assert _holds("NOT x = s")
    assert not _holds("x IN (y)")
    assert _holds("size(x) <> :v", v={"N": "1"})


def test_order_needs_the_same_ordered_type() -> None:
    assert _holds("n > :v", v={"N": "9"})
    assert not _holds("n > :v", v={"S": "9"})
    assert _holds("NOT n > :v", v={"S": "9"})
    assert not _holds("t >= z")
    assert not _holds("l <= l[0]")
    assert _holds("b < :v", v={"B": "YWJk"})
    assert _holds("n BETWEEN :a AND :b", a={"N": "10"}, b={"N": "10"})
    assert not _holds("n BETWEEN s AND n2")


_NUMBERS = ["-1E100", "-100", "-99.5", "-99", "0", "0.001", "9", "10.5", "11", "1E28", "1E125"]


@pytest.mark.parametrize("low", _NUMBERS)
@pytest.mark.parametrize("high", _NUMBERS)
def test_numbers_are_ordered_by_value_whole_or_not(low: str, high: str) -> None:
    item: Item = {"n": canonical({"N": low})}
    for comparator, compare in (("<", lt), ("<=", le), (">", gt), (">=", ge)):
        text = f"n {comparator} :high"
        condition = compile_expressions(condition=text, values={":high": {"N": high}}).condition
        assert condition is not None
        assert evaluate(condition, item) is compare(Decimal(low), Decimal(high))


def test_prefixes_are_bytes() -> None:
    assert _holds("begins_with(s, :v)", v={"S": "he"})
    assert not _holds("begins_with(s, :v)", v={"S": "H"})
    assert not _holds("begins_with(s, :v)", v={"S": "%"})
    assert _holds("begins_with(b, :v)", v={"B": "YWI="})
    assert not _holds("begins_with(b, :v)", v={"S": "a"})
    assert not _holds("begins_with(n, :v)", v={"S": "1"})


def test_contains_looks_into_texts_sets_and_lists() -> None:
    assert _holds("contains(s, :v)", v={"S": "ell"})
    assert _holds("contains(b, :v)", v={"B": "YmM="})
    assert _holds("contains(ss, :v)", v={"S": "a"})
    assert not _holds("contains(ss, :v)", v={"SS": ["a"]})
    assert _holds("contains(ns, :v)", v={"N": "1.0"})
    assert _holds("contains(bs, :v)", v={"B": "YQ=="})
    assert _holds("contains(l, :v)", v={"SS": ["b", "a"]})
    assert not _holds("contains(l, :v)", v={"S": "1"})
    assert not _holds("contains(m, :v)", v={"S": "k"})
    assert not _holds("contains(n, :v)", v={"N": "1"})
    assert _holds("contains(:v, s)", v={"SS": ["hello"]})


@pytest.mark.parametrize(
    "name, size",
    [
        ("s", 5),
        ("b", 3),
        ("ss", 2),
        ("ns", 2),
        ("bs", 1),
        ("l", 4),
        ("m", 2),
        ("n", None),
        ("t", None),
        ("z", None),
    ],
)
def test_size_of_each_type(name: str, size: int | None) -> None:
    assert _holds(f"size({name}) = :v", v={"N": str(size or 0)}) == (size is not None)


def test_size_of_text_is_counted_in_utf16_units() -> None:
    size = compile_expressions(condition="size(a) = :v", values={":v": {"N": "3"}}).condition
    assert size is not None
    assert evaluate(size, {"a": {"S": "é😀"}})


def test_paths_reach_into_lists_and_maps() -> None:
    assert _holds("attribute_exists(l[3].k)")
    assert _holds("m.k[0] = :v", v={"N": "7"})
    for path in ("l[4]", "l.k", "m[0]", "s.x", "s[0]", "ss[0]", "m.k.x", "x.y.z"):
        assert _holds(f"attribute_not_exists({path})")


def test_types_are_distinguished() -> None:
    assert _holds("attribute_type(ss, :v)", v={"S": "SS"})
    assert not _holds("attribute_type(ss, :v)", v={"S": "NS"})
    assert not _holds("attribute_type(x, :v)", v={"S": "NULL"})


def test_a_missing_item_is_empty() -> None:
    condition = compile_expressions(condition="attribute_not_exists(p)").condition
    assert condition is not None
    assert evaluate(condition, {})


def test_deep_conditions_do_not_exhaust_the_stack() -> None:
    text = "a = b AND (c = d OR (" * 74 + "a = b" + "))" * 74
    condition = compile_expressions(condition=text).condition
    assert condition is not None
    assert not evaluate(condition, {})


def test_every_path_is_listed_in_order() -> None:
    text = (
        "a = size(b.c) AND NOT (d IN (e, :v) OR attribute_exists(f[1])) "
        "AND x BETWEEN y AND z AND contains(g, h)"
    )
    condition = compile_expressions(condition=text, values={":v": {"S": "a"}}).condition
    assert condition is not None
    assert [path[0] for path in paths_of(condition)] == list("abdefxyzgh")


@given(CONDITIONS, ITEMS)
def test_not_negates(condition: Condition, item: Item) -> None:
    assert evaluate(Not(condition), item) is not evaluate(condition, item)


@given(CONDITIONS, CONDITIONS, ITEMS)
def test_and_and_or_follow_de_morgan(one: Condition, two: Condition, item: Item) -> None:
    neither = And((Not(one), Not(two)))
    assert evaluate(neither, item) is evaluate(Not(Or((one, two))), item)


@given(CONDITIONS, CONDITIONS, ITEMS)
def test_two_conditions_are_the_same_when_both_hold_or_neither(
    one: Condition, other: Condition, item: Item
) -> None:
    assert evaluate(Same(one, other), item) is (evaluate(one, item) is evaluate(other, item))
    assert list(paths_of(Same(one, other))) == [*paths_of(one), *paths_of(other)]
