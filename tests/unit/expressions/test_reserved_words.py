"""The reserved words."""

from __future__ import annotations

from solotable._expressions.syntax.reserved_words import RESERVED


def test_there_are_573_of_them_in_upper_case() -> None:
    assert len(RESERVED) == 573
    assert all(word.isupper() for word in RESERVED)


def test_size_and_convert_are_among_them() -> None:
    # DynamoDB Local leaves these two out; the documentation does not.
    assert {"SIZE", "CONVERT", "ABORT", "ZONE"} <= RESERVED
