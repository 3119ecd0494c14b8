"""Key conditions, as far as they can be checked without a table."""

from __future__ import annotations

import pytest

from solotable._expressions.ast import KeyTerm
from solotable._expressions.syntax.compile import compile_expressions
from solotable.errors import ServiceError

_S, _N, _M = {"S": "a"}, {"N": "1"}, {"N": "2"}
_VALUES = {":s": _S, ":n": _N, ":m": _M}


def _compile(text: str) -> object:
    values = {name: value for name, value in _VALUES.items() if name in text}
    return compile_expressions(key=text, values=values or None).key


@pytest.mark.parametrize(
    "text, expected",
    [
        ("p = :s", (KeyTerm("p", "=", (_S,)),)),
        (":s = p AND :n <= q", (KeyTerm("p", "=", (_S,)), KeyTerm("q", ">=", (_N,)))),
        ("(p = :s) AND (q BETWEEN :n AND :m)", (KeyTerm("p", "=", (_S,)), KeyTerm("q", "BETWEEN", (_N, _M)))),
        ("begins_with(q, :s) AND p = :s", (KeyTerm("q", "begins_with", (_S,)), KeyTerm("p", "=", (_S,)))),
        (
            "p = :s AND (q = :n AND r > :n)",
            (KeyTerm("p", "=", (_S,)), KeyTerm("q", "=", (_N,)), KeyTerm("r", ">", (_N,))),
        ),
    ],
)
def test_terms_keep_their_order_and_turn_to_face_the_attribute(text: str, expected: object) -> None:
    assert _compile(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("p = :s OR q = :n", "Invalid operator used in KeyConditionExpression: OR"),
        ("NOT p = :s", "Invalid operator used in KeyConditionExpression: NOT"),
        ("NOT NOT p = :s", "Invalid operator used in KeyConditionExpression: NOT"),
        ("p <> :s", "Invalid operator used in KeyConditionExpression: <>"),
        ("p IN (:s)", "Invalid operator used in KeyConditionExpression: IN"),
        ("attribute_not_exists(p)", "Invalid operator used in KeyConditionExpression: attribute_not_exists"),
        ("contains(p.q, :s)", "Invalid operator used in KeyConditionExpression: contains"),
        ("size(p) = :n", "KeyConditionExpressions cannot contain nested operations"),
        ("p = :s AND q = size(:s)", "KeyConditionExpressions cannot contain nested operations"),
        (
            "p = :s AND p = :s",
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        ),
        (
            "p[0] = :s",
            "Invalid KeyConditionExpression: "
            "KeyConditionExpressions cannot have conditions on nested attributes",
        ),
        (
            "p = q",
            "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition",
        ),
        (":s = :s", "Invalid condition in KeyConditionExpression: No key attribute specified"),
        (
            ":n BETWEEN size(p) AND :m",
            "Invalid condition in KeyConditionExpression: "
            "BETWEEN operator must have the key attribute as its first operand",
        ),
        (
            "begins_with(:s, p)",
            "Invalid condition in KeyConditionExpression: "
            "begins_with operator must have the key attribute as its first operand",
        ),
        ("((p = :s))", "Invalid KeyConditionExpression: The expression has redundant parentheses;"),
    ],
)
def test_invalid_key_conditions(text: str, expected: str) -> None:
    with pytest.raises(ServiceError) as refused:
        _compile(text)
    assert refused.value.message == expected
