"""Cookies: their order only rises, and damaged ones are recognised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable.sync.pull.cookie import Cookie, PagePosition, order_of, parse_cookie

NAMES = st.sampled_from(["", "a", "b"])
COOKIES = st.builds(
    Cookie,
    spaces=st.dictionaries(NAMES, st.tuples(st.integers(0, 1000), st.text(max_size=3))),
    base=st.integers(0, 1000),
    prefix=st.none() | st.text(max_size=3),
    recent=st.dictionaries(NAMES, st.tuples(st.integers(0, 1000), st.integers(0, 2**50))),
)


def is_less(one: Any, other: Any) -> bool:
    """Compare two orders as clients do."""
    if isinstance(one, str) or isinstance(other, str):
        return str(one).encode() < str(other).encode()
    return bool(one < other)


@settings(max_examples=50)
@given(COOKIES)
def test_a_cookie_survives_a_client(cookie: Cookie) -> None:
    found = parse_cookie(cookie.to_json())
    assert found == cookie
    assert found.recent == cookie.recent


@settings(max_examples=50)
@given(COOKIES, COOKIES)
def test_a_new_cookie_is_above_the_last_one(before: Cookie, new: Cookie) -> None:
    after = new.after(before, None)
    assert is_less(before.order, after.order)
    assert after.spaces == new.spaces


@settings(max_examples=50)
@given(COOKIES, st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text())
def test_a_new_cookie_is_above_any_order_of_another_backend(new: Cookie, order: Any) -> None:
    plain = Cookie(spaces=new.spaces)
    assert not is_less(plain.after(None, order).order, order)


def test_a_page_position_is_part_of_a_cookie() -> None:
    cookie = Cookie(spaces={"": (3, "e")}, following=PagePosition("", 1, "TODO#1"))
    assert parse_cookie(cookie.to_json()) == cookie


@pytest.mark.parametrize(
    "given", [None, 3, "x", True, [], {}, {"order": 1}, {"order": 1, "base": 1, "spaces": []}]
)
def test_other_cookies_are_no_cookies(given: Any) -> None:
    assert parse_cookie(given) is None
    order_of(given)
