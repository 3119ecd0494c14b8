"""Tokens, and how a token that fits nowhere is described."""

from __future__ import annotations

import pytest

from solotable._expressions.syntax.lex import describe_unexpected, split_tokens


def _kinds(text: str) -> list[str]:
    return [token.kind for token in split_tokens(text)]


def test_every_kind_of_token_is_recognised() -> None:
    assert _kinds("a #1 :_ 10 <> <= . [") == ["name", "alias", "value", "index", "<>", "<=", ".", "[", "end"]


def test_keywords_are_known_in_any_case() -> None:
    assert _kinds("And bEtween SET android") == ["AND", "BETWEEN", "SET", "name", "end"]


def test_a_name_starts_with_a_letter() -> None:
    assert _kinds("_a 1a") == ["other", "name", "index", "name", "end"]


def test_an_index_has_no_leading_zero() -> None:
    assert [token.text for token in split_tokens("00")] == ["0", "0", ""]


def test_only_four_characters_are_space() -> None:
    assert _kinds(" \t\r\n") == ["end"]
    assert _kinds("\xa0\x0c") == ["other", "other", "end"]


@pytest.mark.parametrize(
    "text, at, expected",
    [
        ("a b", 1, 'Syntax error; token: "b", near: "a b"'),
        ("= a b", 0, 'Syntax error; token: "=", near: "= a"'),
        ("  a = b", 0, 'Syntax error; token: "a", near: "  a ="'),
        ("a  b  c", 1, 'Syntax error; token: "b", near: "a  b  c"'),
        ("a = ", 2, 'Syntax error; token: "<EOF>", near: "= "'),
        ("   ", 0, 'Syntax error; token: "<EOF>", near: "   "'),
    ],
)
def test_a_token_is_shown_between_its_neighbours(text: str, at: int, expected: str) -> None:
    assert describe_unexpected(text, split_tokens(text), at) == expected
