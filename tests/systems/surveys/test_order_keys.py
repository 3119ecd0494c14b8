"""Order keys: there is always one between two others, and they sort as text (C4.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.systems.surveys.formats.order_keys import (
    MAX_LENGTH,
    OrderKeysUsedUp,
    between,
    is_order_key,
    spread,
)

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEYS = st.text(DIGITS, min_size=1, max_size=12).map(lambda text: text.rstrip("0")).filter(bool)


@given(KEYS, KEYS)
def test_c4_3_a_key_between_two_others_sorts_between_them(one: str, other: str) -> None:
    if one == other:
        with pytest.raises(OrderKeysUsedUp):
            between(one, other)
        return
    low, high = sorted((one, other))
    found = between(low, high)
    assert low < found < high
    assert is_order_key(found)
    with pytest.raises(OrderKeysUsedUp):
        between(high, low)


@given(KEYS)
def test_c4_3_there_is_a_key_before_and_after_each(key: str) -> None:
    assert between(None, key) < key < between(key, None)
    assert is_order_key(between(None, key))
    assert is_order_key(between(key, None))


@given(st.lists(st.integers(0, 10**6), max_size=200))
def test_c4_3_a_list_keeps_its_order_whatever_is_inserted_where(places: list[int]) -> None:
    keys: list[str] = []
    for place in places:
        at = place % (len(keys) + 1)
        before, after = keys[at - 1] if at else None, keys[at] if at < len(keys) else None
        keys.insert(at, between(before, after))
    assert keys == sorted(set(keys))
    assert all(map(is_order_key, keys))


@pytest.mark.parametrize("at_end", [True, False])
def test_c4_3_keys_stay_short_where_lists_grow(*, at_end: bool) -> None:
    key = between(None, None)
    for _ in range(1000):
        key = between(key, None) if at_end else between(None, key)
    assert len(key) < 20


def test_c4_3_keys_that_are_used_up_raise_an_error() -> None:
    closest = "A" + "0" * (MAX_LENGTH - 2) + "1"
    with pytest.raises(OrderKeysUsedUp):
        between("A", closest)
    with pytest.raises(OrderKeysUsedUp):
        between("z" * MAX_LENGTH, None)
    with pytest.raises(OrderKeysUsedUp):
        between(None, "0" * (MAX_LENGTH - 1) + "1")


@pytest.mark.parametrize("count", [0, 1, 2, 30, 61, 62, 400, 5000])
def test_c4_3_spread_keys_are_short_and_in_order(count: int) -> None:
    keys = list(spread(count))
    assert len(set(keys)) == count
    assert keys == sorted(keys)
    assert all(is_order_key(key) and len(key) <= 3 for key in keys)
