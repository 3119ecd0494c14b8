"""Short texts are parsed once; long ones, and those that are refused, each time."""

from __future__ import annotations

import pytest

from solotable._expressions.syntax.parse_cache import LONGEST_CACHED, cache_trees
from solotable.errors import ServiceError, invalid


def test_short_texts_are_parsed_once_and_long_ones_each_time() -> None:
    parsed: list[tuple[str, str]] = []

    @cache_trees
    def parse(text: str, label: str) -> str:
        parsed.append((text, label))
        return text + label

    short, long = "s" * LONGEST_CACHED, "l" * (LONGEST_CACHED + 1)
    for text in (short, short, long, long):
        assert parse(text, "!") == text + "!"
    assert parse(short, "?") == short + "?"
    assert parsed == [(short, "!"), (long, "!"), (long, "!"), (short, "?")]


def test_a_refusal_is_raised_each_time() -> None:
    @cache_trees
    def parse(text: str) -> str:
        raise invalid(text)

    for _ in range(2):
        with pytest.raises(ServiceError, match="no"):
            parse("no")
