"""Statements, and DynamoDB's errors for other texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._partiql import parse_statement
from solotable._partiql.ast import RemoveClause, SetClause
from solotable._partiql.syntax.reserved_words import RESERVED
from solotable.errors import ServiceError

NOT_WELL_FORMED = "Statement wasn't well formed, can't be processed: "
LEFT_OVER = NOT_WELL_FORMED + "Unexpected token after expression"
UNEXPECTED_TERM = NOT_WELL_FORMED + "Unexpected term"
ALIASING = "Aliasing is not supported"


def refusal(text: str) -> str:
    with pytest.raises(ServiceError) as caught:
        parse_statement(text)
    assert caught.value.code == "ValidationException"
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "kind", "table", "index"),
    [
        ('SELECT * FROM "Music"', "SELECT", "Music", None),
        ('select a, b.c[0] from "Music"."ByYear" where a = 1;', "SELECT", "Music", "ByYear"),
        ("INSERT INTO Music VALUE {'a': 1}", "INSERT", "Music", None),
        ("UPDATE \"my-table\" SET a = 1 REMOVE b WHERE k = 'x'", "UPDATE", "my-table", None),
        ("FROM Music WHERE k = 'x' SET a = 1", "UPDATE", "Music", None),
        ("DELETE FROM Music WHERE k = 'x' RETURNING ALL OLD *", "DELETE", "Music", None),
    ],
)
def test_the_kind_and_the_table_are_known(text: str, kind: str, table: str, index: str | None) -> None:
    parsed = parse_statement(text)
    assert (parsed.kind, parsed.table, parsed.index) == (kind, table, index)


def test_an_update_may_mix_set_and_remove_in_any_number() -> None:
    parsed = parse_statement("UPDATE Music SET a = 1, b.c[2] = 2 REMOVE d SET e = 3 WHERE k = 'x'")
    targets = [(type(change), change.target) for change in parsed.changes]
    assert targets == [
        (SetClause, ("a",)),
        (SetClause, ("b", "c", 2)),
        (RemoveClause, ("d",)),
        (SetClause, ("e",)),
    ]


def test_parameters_are_counted_outside_of_strings() -> None:
    assert parse_statement("SELECT * FROM Music WHERE a = ? AND b = '?' AND c IN (?, ?)").parameters == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", UNEXPECTED_TERM),
        ("SELECT * FROM Music WHERE a = 1 foo", LEFT_OVER),
        ("SELECT * FROM Music WHERE a = 1 e5", LEFT_OVER),
        ("SELECT * FROM Music WHERE a = 1)", LEFT_OVER),
        ("SELECT * FROM Music ORDER BY a WHERE a = 1", LEFT_OVER),
        ("SELECT * FROM Music; SELECT * FROM Music", LEFT_OVER),
        ("INSERT INTO Music VALUE {'a': 1} foo", LEFT_OVER),
        ("INSERT INTO Music t VALUE {'a': 1}", LEFT_OVER),
        ("UPDATE Music SET a = 9 WHERE k = 1 foo", LEFT_OVER),
        ("DELETE FROM Music WHERE a = 1 ORDER BY a", LEFT_OVER),
        ("FROM Music SET c = 1 WHERE a = 1", LEFT_OVER),
        ("SELECT * FROM Music WHERE", UNEXPECTED_TERM),
        ("SELECT * FROM Music WHERE;", UNEXPECTED_TERM),
        ("SELECT * FROM Music WHERE NOT", UNEXPECTED_TERM),
        ("SELECT * FROM Music WHERE (", UNEXPECTED_TERM),
        ("SELECT * FROM", UNEXPECTED_TERM),
        ("UPDATE Music SET a = 1 WHERE", UNEXPECTED_TERM),
        (
            "SELECT * FROM Music WHERE a = 1 AND",
            NOT_WELL_FORMED + "Missing right-hand side expression of infix operator",
        ),
        ("SELECT * FROM Music WHERE ORDER BY a", NOT_WELL_FORMED + "Unexpected keyword"),
        ("INSERT INTO urls (key, b) VALUES (?, ?)", NOT_WELL_FORMED + "Unexpected keyword"),
        ("SELECT * FROM Music WHERE IS NULL", NOT_WELL_FORMED + "Unexpected operator"),
        ("SELECT * FROM Music WHERE a = LIKE", NOT_WELL_FORMED + "Unexpected operator"),
        ("SELECT * FROM Music WHERE a IS FOO", NOT_WELL_FORMED + "Expected type name"),
        ("SELECT * FROM Music WHERE m.inner = 1", NOT_WELL_FORMED + "Invalid path dot component"),
        ("DELETE FROM", NOT_WELL_FORMED + "Expected identifier for simple path"),
        ("DELETE FROM WHERE a = 1", NOT_WELL_FORMED + "Expected identifier for simple path"),
        ("SLECT * FROM \"Music\" WHERE a = 'x'", NOT_WELL_FORMED + "Expected data manipulation"),
        ("UPDATE Music-x SET a = 1 WHERE b = 1", NOT_WELL_FORMED + "Expected data manipulation"),
        ("SELECT * FROM Music t WHERE a = 'x'", ALIASING),
        ("SELECT * FROM Music AS t WHERE a = 'x'", ALIASING),
        ("SELECT a AS b FROM Music", ALIASING),
        ("UPDATE Music t SET a = 3 WHERE a = 'x'", ALIASING),
        ("DELETE FROM Music t WHERE a = 'x'", ALIASING),
        ("hello", "Unsupported operation: VariableReference"),
        ("x IS INT4", "Unsupported operation: IsType"),
        ("x IS DOUBLE PRECISION", "Unsupported operation: IsType"),
        ("x IS CHARACTER VARYING", "Unsupported operation: IsType"),
        ("CREATE TABLE x", "Unsupported operation: CreateTable"),
        ("SELECT * FROM Music LIMIT 1", "Unsupported clause: LIMIT at 1:27:1"),
        ("SELECT * FROM Music GROUP BY a", "Unsupported clause: GROUP BY"),
        ("SELECT VALUE a FROM Music", "Select projection doesn't support value or pivot keywords"),
        ("SELECT * FROM Music, Other", "Only select from a single table or index is supported."),
        ("SELECT * FROM 'Music'", "Unexpected from source"),
        ("SELECT * FROM Music.a.b", "A path may contain at most 2 components in the FROM clause"),
        (
            "INSERT INTO Music VALUE {'a': 1} RETURNING ALL OLD *",
            "RETURNING is not supported in INSERT",
        ),
        (
            "DELETE FROM Music WHERE a = 1 RETURNING MODIFIED OLD *",
            "Invalid returning clause: RETURNING MODIFIED OLD *. "
            "Only RETURNING ALL OLD * is allowed in DELETE statements.",
        ),
        (
            "UPDATE Music SET a = 1 WHERE b = 1 RETURNING ALL OLD c",
            "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause",
        ),
        (
            "SELECT * FROM Music WHERE m.* = 1",
            "Unpivot path component like a.*.b are not supported at 1:29:1",
        ),
    ],
)
def test_refusals_read_as_dynamodb_writes_them(text: str, message: str) -> None:
    assert refusal(text) == message


def test_a_refusal_of_form_comes_before_one_of_meaning() -> None:
    assert refusal("SELECT * FROM Music t WHERE a = 1 foo") == LEFT_OVER


@pytest.mark.parametrize("word", sorted(RESERVED - {"true", "false", "null", "missing"}))
def test_a_reserved_word_is_an_attribute_only_in_quotes(word: str) -> None:
    assert refusal(f"SELECT * FROM Music WHERE a = 1 AND {word} = 1").startswith(
        (NOT_WELL_FORMED, "Unsupported token in expression: ")
    )
    parse_statement(f'SELECT * FROM Music WHERE "{word}" = 1 AND m."{word}" = 1')


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM Music WHERE " + "(" * 4000 + "a",
        "SELECT * FROM Music WHERE " + "NOT " * 2000 + "a = 1",
        "SELECT * FROM Music WHERE a = " + "[" * 4000,
        "SELECT * FROM Music WHERE a = " + "1 + " * 2000 + "1",
        "SELECT * FROM Music WHERE a" + "[1" * 2000,
        "SELECT * FROM Music WHERE a = " + "{'a':" * 1500,
        "SELECT * FROM Music WHERE " + "size(" * 1500,
    ],
)
def test_deep_nesting_is_refused_and_not_a_stack_overflow(text: str) -> None:
    assert refusal(text)


def test_more_than_300_operators_are_refused() -> None:
    condition = " OR ".join(["n = 1"] * 151)
    assert (
        refusal(f"SELECT * FROM Music WHERE {condition}")
        == "The expression contains too many operators; operator count: 301"
    )
    parse_statement("SELECT * FROM Music WHERE " + " OR ".join(["n = 1"] * 150))


_PIECES = """
    SELECT * FROM "T1a" Music WHERE a b.c [0] = <> < > <= >= 1 1.5e3 'x' ? AND OR NOT IN BETWEEN IS NULL
    MISSING ( ) [ ] { } << >> , : ; . + - * / UPDATE SET REMOVE RETURNING ALL OLD NEW MODIFIED INSERT INTO
    VALUE DELETE EXISTS ORDER BY DESC contains( size( set_add( list_append( true LIKE AS @ LIMIT CASE
"""
PIECES = st.sampled_from(_PIECES.split())


@given(st.one_of(st.text(), st.lists(PIECES).map(" ".join)))
def test_any_text_is_a_statement_or_a_service_error(text: str) -> None:
    try:
        parsed = parse_statement(text)
    except ServiceError:
        return
    assert parsed.kind in ("SELECT", "INSERT", "UPDATE", "DELETE")
