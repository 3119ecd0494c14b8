"""What the text of an expression alone decides."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.ast import Attr
from solotable._expressions.syntax.parse import parse_condition, parse_projection, parse_update
from solotable._expressions.syntax.unbound import Comparison, Conjunction, Disjunction, Negation, Value
from solotable.errors import ServiceError

_REDUNDANT = "The expression has redundant parentheses;"


def _condition_refused(text: str) -> str:
    with pytest.raises(ServiceError) as refused:
        parse_condition(text, "ConditionExpression")
    assert refused.value.code == "ValidationException"
    return refused.value.message.removeprefix("Invalid ConditionExpression: ")


def _update_refused(text: str) -> str:
    with pytest.raises(ServiceError) as refused:
        parse_update(text)
    return refused.value.message.removeprefix("Invalid UpdateExpression: ")


def test_and_binds_closer_than_or_and_not_closest() -> None:
    a, b, c = (Comparison("=", Attr((name,)), Value(":v")) for name in "abc")
    tree = parse_condition("a = :v OR NOT b = :v AND c = :v", "FilterExpression").tree
    assert tree == Disjunction((a, Conjunction((Negation(b), c))))


def test_parentheses_may_stand_around_conditions_and_operands() -> None:
    for text in (
        "(a) = (b)",
        "((a) = b)",
        "((a = b) AND c = d)",
        "((a = b) AND (c = d))",
        "(attribute_exists(a))",
        "((size(a)) > :n)",
        "a IN ((b), (c))",
        "(a) BETWEEN (b) AND (c)",
        "NOT (NOT a = b)",
        "not(a=b)AND(c=d)",
    ):
        parse_condition(text, "ConditionExpression")


@pytest.mark.parametrize(
    "text",
    [
        "((a = b))",
        "(((a = b)))",
        "((a)) = b",
        "a = ((b))",
        "NOT ((a = b))",
        "((attribute_exists(a)))",
        "size(((a))) = b",
        "a IN (((b)))",
        "(((a = b) OR c = d)) OR e = f",
        "((a = b)) b",
        "foo(a) AND ((b = c))",
        "select = ((a))",
        "(a)between(((b.c)).d)and(c)",
    ],
)
def test_doubled_parentheses_are_redundant_before_anything_else(text: str) -> None:
    assert _condition_refused(text) == _REDUNDANT


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a", 'token: "<EOF>", near: "a"'),
        ("a b", 'token: "b", near: "a b"'),
        ("= a", 'token: "=", near: "= a"'),
        ("_a = :v", 'token: "_", near: "_a"'),
        ("1a = :v", 'token: "1", near: "1a"'),
        ("a == :v", 'token: "=", near: "== :v"'),
        ("a = 1", 'token: "1", near: "= 1"'),
        ('a = "x"', 'token: """, near: "= "x"'),
        ("a and b", 'token: "and", near: "a and b"'),
        ("((a)", 'token: "<EOF>", near: ")"'),
        ("((a))", 'token: "<EOF>", near: ")"'),
        ("(a).b = c", 'token: ".", near: ").b"'),
        (":s.a = b", 'token: ".", near: ":s.a"'),
        ("a[00] = b", 'token: "0", near: "00]"'),
        ("a[-1] = b", 'token: "-", near: "[-1"'),
        ("a IN ()", 'token: ")", near: "()"'),
        ("a IN ((b, c))", 'token: ",", near: "b, c"'),
        ("a BETWEEN (b AND c)", 'token: "AND", near: "b AND c"'),
        ("attribute_exists()", 'token: ")", near: "()"'),
        ("a = b)", 'token: ")", near: "b)"'),
        ("set = a", 'token: "set", near: "set ="'),
    ],
)
def test_the_token_that_fits_nowhere_is_shown(text: str, expected: str) -> None:
    assert _condition_refused(text) == f"Syntax error; {expected}"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", "The expression can not be empty;"),
        ("Size(a) = b", "Invalid function name; function: Size"),
        ("foo(select)", "Invalid function name; function: foo"),
        ("select = a AND foo(b)", "Attribute name is a reserved keyword; reserved keyword: select"),
        ("a.Abort = b", "Attribute name is a reserved keyword; reserved keyword: Abort"),
        (
            "list_append(a, b) = c",
            "The function is not allowed in a condition expression; function: list_append",
        ),
        (
            "size(a)",
            "The function is not allowed to be used this way in an expression; function: size",
        ),
        (
            "attribute_exists(select) = b",
            "The function is not allowed to be used this way in an expression; function: attribute_exists",
        ),
        (
            "contains(a, contains(b, c))",
            "The function is not allowed to be used this way in an expression; function: contains",
        ),
        (
            "a[2147483648] = b",
            "List index is not within the allowable range; index: [2147483648]",
        ),
        (
            " AND ".join(["a = b"] * 151),
            "The expression contains too many operators; operator count: 301",
        ),
        (
            "a = b" + " " * 4092,
            "Expression size has exceeded the maximum allowed size; expression size: 4097",
        ),
    ],
)
def test_what_a_condition_may_not_say(text: str, expected: str) -> None:
    assert _condition_refused(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("SET", 'Syntax error; token: "<EOF>", near: "SET"'),
        ("a = :n", 'Syntax error; token: "a", near: "a ="'),
        ("SET a = :n, SET b = :n", 'Syntax error; token: "SET", near: ", SET b"'),
        ("SET (a) = :n", 'Syntax error; token: "(", near: "SET (a"'),
        ("SET a = b + c + d", 'Syntax error; token: "+", near: "c + d"'),
        ("SET a = b + (c + d)", 'Syntax error; token: "+", near: "c + d"'),
        ("ADD a = :n", 'Syntax error; token: "=", near: "a = :n"'),
        ("ADD a b", 'Syntax error; token: "b", near: "a b"'),
        ("REMOVE :a", 'Syntax error; token: ":a", near: "REMOVE :a"'),
        ("SET a = ((b))", _REDUNDANT),
        ("SET a = ((b + c))", _REDUNDANT),
        ("SET a = ((b)) + c", _REDUNDANT),
        ("SET a = foo(b) SET c = d", "Invalid function name; function: foo"),
        ("SET a = size(b)", "The function is not allowed in an update expression; function: size"),
        (
            "SET a = list_append(b, list_append(c, d))",
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        (
            "SET a = list_append(b, c) + d",
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        (
            "SET a = b REMOVE c SET d = e",
            'The "SET" section can only be used once in an update expression;',
        ),
        ("SET a = b SET select = c", "Attribute name is a reserved keyword; reserved keyword: select"),
        ("REMOVE a" + " " * 4096, "Expression size has exceeded the maximum allowed size;"),
    ],
)
def test_what_an_update_may_not_say(text: str, expected: str) -> None:
    assert _update_refused(text) == expected


def test_an_update_may_nest_if_not_exists_and_group_its_sums() -> None:
    for text in (
        "SET a = (b + c), d = (e) - (f)",
        "SET a = list_append(if_not_exists(b, :l), :l)",
        "SET a = if_not_exists(b, if_not_exists(c, :n)) + :n",
        "set a=:n remove b add c :n delete d :s",
    ):
        parse_update(text)


@pytest.mark.parametrize("text", ["a,", ",a", "(a)", ":a", "a=b", "size(a)", "and", "a b"])
def test_a_projection_is_paths_and_commas(text: str) -> None:
    with pytest.raises(ServiceError, match="Invalid ProjectionExpression: Syntax error; token: "):
        parse_projection(text)


#: Texts of a depth, and the largest depth that is not refused by its length alone.
_DEEP: list[tuple[Callable[[int], str], int]] = [
    (lambda depth: "(" * depth, 4000),
    (lambda depth: "(" * depth + "a=b", 4000),
    (lambda depth: "(" * depth + "a=b" + ")" * depth, 2000),
    (lambda depth: "NOT " * depth + "a=b", 1000),
    (lambda depth: "(NOT " * depth + "a=b" + ")" * depth, 600),
    (lambda depth: "f(" * depth, 2000),
    (lambda depth: "f(" * depth + "a" + ")" * depth, 1300),
    (lambda depth: "size(" * depth + "a" + ")" * depth + "=b", 600),
    (lambda depth: "a" + "[0]" * depth + "[", 1300),
]


@pytest.mark.parametrize("text, depth", _DEEP)
def test_any_depth_is_refused_cleanly_and_in_steps_that_grow_no_faster(
    text: Callable[[int], str], depth: int
) -> None:
    _condition_refused(text(depth))
    few, many = (_steps_to_parse(text(part)) for part in (depth // 4, depth))
    assert many < 5 * few


def test_a_text_far_too_long_is_not_read() -> None:
    text = "(" * 100_000
    _condition_refused(text)
    assert _steps_to_parse(text) < 100


def _steps_to_parse(text: str) -> int:
    """Count the calls that it takes: seconds would measure the machine."""
    calls: Counter[str] = Counter()
    before = sys.getprofile()
    sys.setprofile(lambda _frame, event, _arg: calls.update((event,)))
    try:
        with suppress(ServiceError):
            parse_condition(text, "ConditionExpression")
    finally:
        sys.setprofile(before)
    return calls["call"] + calls["c_call"]


@given(st.text(alphabet="ab#:.[]()=<>+-, 0129_\n'\"ANDORTSEé😀\ud800", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    for parse in (
        lambda: parse_condition(text, "FilterExpression"),
        lambda: parse_update(text),
        lambda: parse_projection(text),
    ):
        with suppress(ServiceError):
            parse()
