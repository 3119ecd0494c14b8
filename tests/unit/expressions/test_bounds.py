"""The work of one evaluation grows with the item and the expression, not with their product.

Work is counted, not timed: values of the item count how often they are looked at.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.evaluate import evaluate
from solotable._expressions.syntax.compile import compile_expressions
from solotable._expressions.update import apply_update
from solotable._values import AttributeValue, Item
from solotable.errors import ServiceError

from .strategies import ITEMS

_ELEMENTS = 1000
#: Looks at one element that are few: it is searched for, and prepared for being searched.
_FEW = 4


class Counted(dict[str, Any]):
    """A value that counts how often anything of it is looked at."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return super().__eq__(other)

    __hash__ = None

    def __contains__(self, key: object) -> bool:
        Counted.looks += 1
        return super().__contains__(key)

    def items(self) -> Any:
        Counted.looks += 1
        return super().items()


def _elements(count: int = _ELEMENTS) -> AttributeValue:
    return {"L": [Counted(N=str(number)) for number in range(count)]}


def _looks(text: str, item: Item, **values: AttributeValue) -> int:
    """How often the elements of the item are looked at when a condition is evaluated."""
    condition = compile_expressions(condition=text, values=values or None).condition
    assert condition is not None
    Counted.looks = 0
    evaluate(condition, item)
    return Counted.looks


def _or(term: str, count: int) -> str:
    return " OR ".join(term.format(n=number) for number in range(count))


@pytest.mark.parametrize("size", [10, _ELEMENTS])
@pytest.mark.parametrize("kind", ["N", "S", "L"])
def test_a_list_is_looked_through_once_however_often_it_is_searched(size: int, kind: str) -> None:
    members: dict[str, AttributeValue] = {
        f":v{number}": {kind: [{"N": f"-{number}"}] if kind == "L" else f"-{number}1"}
        for number in range(140)
    }
    condition = compile_expressions(condition=_or("contains(l, :v{n})", 140), values=members).condition
    assert condition is not None
    Counted.looks = 0
    assert not evaluate(condition, {"l": _elements(size)})
    assert Counted.looks <= _FEW * size


def test_a_member_that_is_an_attribute_is_looked_up_once() -> None:
    item: Item = {"l": {"L": [{"L": []}] * 100}, "m": _elements()}
    assert _looks(_or("contains(l, m)", 140), item) <= _FEW * _ELEMENTS


@pytest.mark.parametrize(
    "text",
    [
        _or("NOT a = b", 100),
        _or("a <> b", 150),
        _or(f"NOT a IN ({','.join('b' * 100)})", 10),
    ],
    ids=["=", "<>", "IN"],
)
def test_two_documents_are_compared_once(text: str) -> None:
    assert _looks(text, {"a": _elements(), "b": _elements()}) <= _FEW * _ELEMENTS


def test_a_document_is_compared_once_with_a_value_of_the_request() -> None:
    text = _or(f"NOT a IN ({','.join([':v'] * 100)})", 10)
    assert _looks(text, {"a": _elements()}, **{":v": _elements()}) <= _FEW * _ELEMENTS


@given(ITEMS, st.data())
def test_a_long_list_contains_what_it_contains(item: Item, data: st.DataObject) -> None:
    values = list(item.values())
    content = values * data.draw(st.sampled_from([1, 40]), label="times")
    member = data.draw(st.sampled_from([*values, {"S": "absent"}, {"L": []}]), label="member")
    condition = compile_expressions(
        condition="contains(l, :v) AND contains(l, :v) AND contains(l, :v)", values={":v": member}
    ).condition
    assert condition is not None
    assert evaluate(condition, {"l": {"L": content}}) is (member in content)


def test_lists_longer_than_any_item_are_refused_before_they_are_made() -> None:
    item: Item = {"l": {"L": [{"S": ""}] * 200_000}}
    twice = compile_expressions(update="SET a = list_append(l, l)").update
    assert twice is not None
    assert len(apply_update(twice, item)["a"]["L"]) == 400_000
    many = compile_expressions(update="SET " + ", ".join(f"a{n} = list_append(l, l)" for n in range(100)))
    assert many.update is not None
    with pytest.raises(ServiceError, match="Item size to update has exceeded the maximum allowed size"):
        apply_update(many.update, item)
