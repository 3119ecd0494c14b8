"""A cached key condition is checked again for every other combination of types and names."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._expressions.ast import KeyTerm
from solotable._expressions.syntax.compile import compile_expressions
from solotable.errors import ServiceError


def compiled(text: str, values: dict[str, Any], names: dict[str, str] | None = None) -> Any:
    return compile_expressions(key=text, values=values, names=names).key


@pytest.mark.parametrize("content", ["one", "two", ":p", ""])
def test_each_request_gets_its_own_values(content: str) -> None:
    values = {":p": {"S": content}, ":s": {"N": "1"}}
    assert compiled(":s <= sk AND pk = :p", values) == (
        KeyTerm("sk", ">=", ({"N": "1"},)),
        KeyTerm("pk", "=", ({"S": content},)),
    )


def test_names_count() -> None:
    for name in ("a", "b"):
        assert compiled("#k = :p", {":p": {"S": "x"}}, {"#k": name}) == (KeyTerm(name, "=", ({"S": "x"},)),)


def test_the_bounds_of_between_are_looked_at_each_time() -> None:
    text = "pk BETWEEN :a AND :b"
    fine = {":a": {"N": "1"}, ":b": {"N": "2"}}
    assert compiled(text, fine) == (KeyTerm("pk", "BETWEEN", ({"N": "1"}, {"N": "2"})),)
    with pytest.raises(ServiceError, match="upper bound to be greater than or equal to lower bound"):
        compiled(text, {":a": {"N": "3"}, ":b": {"N": "2"}})


@pytest.mark.parametrize(
    ("values", "names", "message"),
    [
        ({":p": {"BOOL": True}}, None, "operator or function: <, operand type: BOOL"),
        ({":p": {"S": "x"}, ":q": {"S": "x"}}, None, r"unused in expressions: keys: \{:q\}"),
        ({":q": {"S": "x"}}, None, "attribute value: :p"),
        ({":p": {"S": "x"}}, {"#n": "n"}, r"unused in expressions: keys: \{#n\}"),
    ],
)
def test_what_was_fine_before_may_be_refused(
    values: dict[str, Any], names: dict[str, str] | None, message: str
) -> None:
    assert compiled("pk < :p", {":p": {"S": "x"}}) == (KeyTerm("pk", "<", ({"S": "x"},)),)
    for _ in range(2):
        with pytest.raises(ServiceError, match=message):
            compiled("pk < :p", values, names)
