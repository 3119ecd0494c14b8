"""Sizes are UTF-8 bytes, wherever the text stands."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._values import growth, item_size, value_size


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"SS": ["é"]}, 2),
        ({"SS": ["a", "é", "😀"]}, 7),
        ({"SS": ["ab", "c"]}, 3),
        ({"S": "é😀"}, 6),
        ({"L": [{"SS": ["é"]}]}, 3 + 1 + 2),
        ({"M": {"é": {"SS": ["ü"]}}}, 3 + 1 + 2 + 2),
    ],
)
def test_text_that_is_not_ascii_counts_its_bytes(value: dict[str, Any], size: int) -> None:
    assert value_size(value) == size
    assert item_size({"é": value}) == 2 + size
    assert growth(["é"], {}, {"é": value}, most=1000) == 2 + size
