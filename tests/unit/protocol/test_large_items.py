"""Items that are read in steps are the items that are read at once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._protocol.decode import large_items
from solotable._protocol.decode.large_items import decode_item_in_steps, release_item
from solotable._protocol.json_codec import dumps
from tests.unit.expressions.strategies import ITEMS


def _count(item: Any) -> int:
    calls = 0

    def pause(_size: int) -> None:
        nonlocal calls
        calls += 1

    assert decode_item_in_steps(dumps(item), pause) == item
    return calls


@given(ITEMS, st.integers(1, 60), st.integers(1, 400))
def test_an_item_read_in_steps_is_the_same_item(item: Any, times: int, step: int) -> None:
    large = {
        **item,
        "many": {"L": [*item.values()] * times},
        "inner": {"M": {"l": {"L": [{"M": item}] * times}}},
        "text": {"L": [{"S": '"},{"'}, {"S": "}},{[\\"}, {"S": "\\"}] * times},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_items, "STEP", step)
        patch.setattr(large_items, "_SHORTEST_STEP", step // 4)
        assert decode_item_in_steps(dumps(large), lambda _size: None) == large


@pytest.mark.parametrize(
    "elements",
    [
        [{"N": "1"}] * 130_000,
        [{"S": ""}] * 300_000,
        [{"L": [{"N": "1"}, {"M": {"a": {"S": "b"}, "c": {"S": "},{"}}}]}] * 20_000,
        [{"S": "x" * 100}] * 4000,
    ],
    ids=["numbers", "empty texts", "nested", "texts"],
)
def test_a_large_item_takes_many_steps_and_each_reads_many_elements(elements: list[Any]) -> None:
    item = {"pk": {"S": "k"}, "l": {"L": elements}, "n": {"BOOL": True}, "ss": {"SS": ["a", "b"]}}
    size = len(dumps(item))
    assert size / large_items.STEP / 4 <= _count(item) <= size / large_items.STEP * 2 + 40


def test_a_small_item_takes_no_step() -> None:
    assert _count({"pk": {"S": "k"}, "l": {"L": [{"N": "1"}] * 500}}) == 0


def test_an_item_is_let_go_in_steps() -> None:
    calls: list[int] = []
    item: Any = {"m": {"M": {"l": {"L": [{"N": "1"}] * 100_000}}}, "l": {"L": [{"N": "1"}] * 10}}
    release_item(item, calls.append)
    assert item == {}
    assert len(calls) > 20
