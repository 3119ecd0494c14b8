"""Paths that overlap or conflict."""

from __future__ import annotations

import pytest

from solotable._expressions.ast import Path
from solotable._expressions.path_overlap import find_clash, format_path, hashed_order


@pytest.mark.parametrize(
    "paths, expected",
    [
        ([("a",), ("a",)], ("overlap", ("a",), ("a",))),
        ([("a",), ("a", "b")], ("overlap", ("a",), ("a", "b"))),
        ([("a", "b"), ("a",)], ("overlap", ("a", "b"), ("a",))),
        ([("a", "b"), ("a", 0)], ("conflict", ("a", "b"), ("a", 0))),
        ([("a", 0, "b"), ("a", "c")], ("conflict", ("a", 0, "b"), ("a", "c"))),
        ([("a", "b"), ("c",), ("a", 1), ("a", "b", "c")], ("conflict", ("a", 1), ("a", "b", "c"))),
        # DynamoDB names a neighbour of the path that is in the way.
        ([("c", "b", "c"), ("c",), ("[3]",)], ("overlap", ("c", "b", "c"), ("[3]",))),
        ([("a", 0), ("a", 1), ("a", 0, "b")], ("overlap", ("a", 0), ("a", 1))),
        ([("a",)], None),
        ([("a", 0), ("a", 1), ("b", "c"), ("b", "d")], None),
    ],
)
def test_the_first_clash_is_reported(paths: list[Path], expected: tuple[str, Path, Path] | None) -> None:
    assert find_clash(tuple(paths)) == expected


def test_a_path_is_printed_as_a_list() -> None:
    assert format_path(("a", 0, "b.c")) == "[a, [0], b.c]"


def test_keys_come_in_the_order_of_a_hash_table() -> None:
    assert hashed_order(["#a", "#c"]) == ["#c", "#a"]
