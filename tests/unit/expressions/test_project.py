"""Projections of items."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.ast import Path
from solotable._expressions.path_overlap import find_clash
from solotable._expressions.project import project
from solotable._expressions.syntax.compile import compile_expressions
from solotable._values import Item

from .strategies import ITEMS, PATHS

_ITEM: Item = {
    "a": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}, {"N": "3"}]},
    "m": {"M": {"x": {"L": [{"M": {"p": {"N": "1"}, "q": {"N": "2"}}}, {"N": "9"}]}, "y": {"N": "2"}}},
    "s": {"S": "z"},
}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("s", {"s": {"S": "z"}}),
        ("nope", {}),
        ("a[3], a[1]", {"a": {"L": [{"N": "1"}, {"N": "3"}]}}),
        ("a[9], a[0]", {"a": {"L": [{"N": "0"}]}}),
        ("a[9]", {}),
        ("m.x[1], m.x[0].q", {"m": {"M": {"x": {"L": [{"M": {"q": {"N": "2"}}}, {"N": "9"}]}}}}),
        ("m.x[0].nope, m.y", {"m": {"M": {"y": {"N": "2"}}}}),
        ("s.a, a.b, m[0]", {}),
    ],
)
def test_only_what_the_paths_reach_is_kept(text: str, expected: Item) -> None:
    projection = compile_expressions(projection=text).projection
    assert projection is not None
    assert project(projection, _ITEM) == expected


@given(st.lists(PATHS, min_size=1, max_size=3), ITEMS)
def test_a_projection_of_whole_attributes_is_part_of_the_item(paths: list[Path], item: Item) -> None:
    if find_clash(tuple(paths)) is None:
        picked = project(tuple(paths), item)
        assert picked.keys() <= item.keys()
        assert project(tuple((name,) for name in item), item) == item
