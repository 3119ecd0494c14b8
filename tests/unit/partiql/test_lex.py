"""Splitting PartiQL text into tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._partiql.syntax.lex import split_tokens
from solotable.errors import ServiceError

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in split_tokens(text)][:-1]


def test_keywords_have_no_case_and_names_do() -> None:
    assert kinds("SeLeCt Name") == [("keyword", "select"), ("name", "Name")]


def test_a_quoted_keyword_is_a_name() -> None:
    assert kinds('"select" "a""b"') == [("quoted", "select"), ("quoted", 'a"b')]


def test_word_operators_are_not_keywords() -> None:
    assert kinds("a IS NOT b") == [("name", "a"), ("operator", "is"), ("operator", "not"), ("name", "b")]


@pytest.mark.parametrize("text", ["1", "1.", "1.5", ".5", "1e5", "1E+5", ".5e-3", "00011"])
def test_number_forms(text: str) -> None:
    assert kinds(text) == [("number", text)]


def test_comments_and_white_space_are_dropped() -> None:
    assert kinds("-- one\na /* two\nlines */ b -- three") == [("name", "a"), ("name", "b")]


@pytest.mark.parametrize("text", ["'open", '"open', "/* open", "a # b", "1e", "1e5x", "0x11", "é", "a ~ b"])
def test_an_invalid_token_is_rejected_without_a_detail(text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        split_tokens(text)
    assert caught.value.message == NOT_WELL_FORMED


@pytest.mark.parametrize("text", ["1e2147483648", "1e99999999999", "1.5e-2147483647"])
def test_an_exponent_beyond_32_bits_is_refused(text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        split_tokens(text)
    assert caught.value.message == NOT_WELL_FORMED


def test_places_count_lines_and_columns_from_one() -> None:
    spots = [str(token.spot) for token in split_tokens("a\n  'b\nc' d")]
    assert spots == ["1:1:1", "2:3:5", "3:4:1", "3:5:0"]


@given(st.text())
def test_a_string_literal_reads_back_as_itself(text: str) -> None:
    assert kinds("'" + text.replace("'", "''") + "'") == [("string", text)]


@given(st.text(min_size=1))
def test_a_quoted_name_reads_back_as_itself(text: str) -> None:
    assert kinds('"' + text.replace('"', '""') + '"') == [("quoted", text)]
