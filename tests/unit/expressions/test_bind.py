"""Placeholders filled in, and what is refused only then."""

from __future__ import annotations

from typing import Any

import pytest

from solotable._expressions.ast import (
    Add,
    Arithmetic,
    Assign,
    Attr,
    Compare,
    Const,
    Delete,
    Exists,
    IfNotExists,
    ListAppend,
    Not,
    Remove,
    Size,
    TypeIs,
    Update,
)
from solotable._expressions.syntax.compile import compile_expressions
from solotable._values import AttributeValue
from solotable.errors import ServiceError

_VALUES: dict[str, dict[str, Any]] = {
    ":s": {"S": "a"},
    ":t": {"S": "b"},
    ":n": {"N": "1"},
    ":m": {"N": "2"},
    ":b": {"B": "YWE="},
    ":bool": {"BOOL": True},
    ":null": {"NULL": True},
    ":l": {"L": []},
    ":map": {"M": {}},
    ":ss": {"SS": ["a"]},
    ":kind": {"S": "SS"},
}


def _used(text: str) -> dict[str, dict[str, Any]] | None:
    words = text.replace("(", " ").replace(")", " ").replace(",", " ").split()
    return {name: value for name, value in _VALUES.items() if name in words} or None


def _refused(**expressions: Any) -> str:
    with pytest.raises(ServiceError) as refused:
        compile_expressions(**expressions, values=_used(" ".join(expressions.values())))
    return refused.value.message


def test_placeholders_become_names_and_values() -> None:
    compiled = compile_expressions(
        condition="#a.b[1].#1 = :_", names={"#a": "x.y", "#1": "select"}, values={":_": {"N": "01"}}
    )
    assert compiled.condition == Compare("=", Attr(("x.y", "b", 1, "select")), Const({"N": "1"}))


def test_functions_become_their_nodes() -> None:
    def condition(text: str) -> object:
        return compile_expressions(condition=text, values=_used(text)).condition

    assert condition("attribute_not_exists(a)") == Not(Exists(("a",)))
    assert condition("attribute_type(a, :kind)") == TypeIs(Attr(("a",)), "SS")
    assert condition("size(a) = :n") == Compare("=", Size(Attr(("a",))), Const({"N": "1"}))
    assert condition("a = size( :s )") == Compare("=", Attr(("a",)), Const({"N": "1"}))
    assert condition("NOT NOT attribute_exists(a)") == Exists(("a",))


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a < :bool", "<, operand type: BOOL"),
        ("a < :l", "<, operand type: L"),
        (":map >= a", ">=, operand type: M"),
        ("size(a) < :null", "<, operand type: NULL"),
        ("a BETWEEN :n AND :bool", "BETWEEN, operand type: BOOL"),
        ("a BETWEEN b AND :ss", "BETWEEN, operand type: SS"),
        ("begins_with(a, :n)", "begins_with, operand type: N"),
        ("begins_with(size(a), b)", "begins_with, operand type: N"),
        ("begins_with(a, :ss)", "begins_with, operand type: SS"),
        ("size( :n ) = a", "size, operand type: N"),
        ("size(size(a)) = b", "size, operand type: N"),
        ("attribute_type(a, :n)", "attribute_type, operand type: N"),
        ("attribute_type(a, b)", "attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(text: str, expected: str) -> None:
    prefix = (
        "Invalid ConditionExpression: Incorrect operand type for operator or function; operator or function: "
    )
    assert _refused(condition=text) == prefix + expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "a = :nope AND b = b",
            "An expression attribute value used in expression is not defined; attribute value: :nope",
        ),
        (
            "#nope = :nope",
            "An expression attribute name used in the document path is not defined; attribute name: #nope",
        ),
        (
            "a.:s = b",
            "An expression attribute name used in the document path is not defined; attribute name: :s",
        ),
        (
            "a[0].b <> a[0].b",
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: <>, first operand: [a, [0], b]",
        ),
        (
            "a IN (b, a)",
            "The first operand must be distinct from the remaining operands for this operator or function; "
            "operator: IN, first operand: [a]",
        ),
        (
            "a BETWEEN :n AND :s",
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}",
        ),
        (
            "a BETWEEN :m AND :n",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "a BETWEEN :b AND :n",
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {B:java.nio.HeapByteBuffer[pos=0 lim=2 cap=2]}, "
            "upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "attribute_exists( :s )",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "attribute_exists(a, b)",
            "Incorrect number of operands for operator or function; "
            "operator or function: attribute_exists, number of operands: 2",
        ),
        (
            "attribute_type(a, :s)",
            "Invalid attribute type name found; type: a, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
        ),
        (
            "a IN (" + ", ".join(["b"] * 101) + ")",
            "The IN operator is provided with too many operands; number of operands: 101",
        ),
        (
            "a" + ".a" * 32 + " = b",
            "The document path has too many nesting levels; nesting levels: 33",
        ),
    ],
)
def test_what_a_condition_may_not_mean(text: str, expected: str) -> None:
    assert _refused(condition=text) == f"Invalid ConditionExpression: {expected}"


def test_the_limits_themselves_are_allowed() -> None:
    compile_expressions(condition="a IN (" + ", ".join(["b"] * 100) + ")")
    compile_expressions(condition="a" + ".a" * 31 + " = b")
    compile_expressions(condition=" AND ".join(["a = b"] * 150))
    compile_expressions(condition="(NOT " * 299 + "a = b" + ")" * 299)


def test_an_update_becomes_its_actions() -> None:
    text = (
        "SET a = :n , b = b + :n , c = list_append(if_not_exists(c, :l ), :l ) "
        "REMOVE d[1] ADD e :n DELETE f :ss"
    )
    one, members = {"N": "1"}, {"SS": ["a"]}
    empty: AttributeValue = {"L": []}
    append = ListAppend(IfNotExists(("c",), Const(empty)), Const(empty))
    assert compile_expressions(update=text, values=_used(text)).update == Update(
        (
            Assign(("a",), Const(one)),
            Assign(("b",), Arithmetic("+", Attr(("b",)), Const(one))),
            Assign(("c",), append),
            Remove(("d", 1)),
            Add(("e",), one),
            Delete(("f",), members),
        ),
        creates=True,
    )


def test_an_update_that_only_removes_does_not_create() -> None:
    def creates(text: str) -> bool:
        update = compile_expressions(update=text, values=_used(text)).update
        assert update is not None
        return update.creates

    assert not creates("REMOVE a, b.c")
    assert creates("REMOVE a SET b = :n")
    assert creates("ADD a :n")


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "ADD a :s",
            "Incorrect operand type for operator or function; operator: ADD, operand type: STRING, "
            "typeSet: ALLOWED_FOR_ADD_OPERAND",
        ),
        (
            "DELETE a :n",
            "Incorrect operand type for operator or function; operator: DELETE, operand type: NUMBER, "
            "typeSet: ALLOWED_FOR_DELETE_OPERAND",
        ),
        (
            "SET a = b - :s",
            "Incorrect operand type for operator or function; operator or function: -, operand type: S",
        ),
        (
            "SET a = list_append( :n , b)",
            "Incorrect operand type for operator or function; "
            "operator or function: list_append, operand type: N",
        ),
        (
            "SET a = if_not_exists( :n , b)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        (
            "SET a = if_not_exists(b)",
            "Incorrect number of operands for operator or function; "
            "operator or function: if_not_exists, number of operands: 1",
        ),
        (
            "SET a = :nope , a = b",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a], path two: [a]",
        ),
        (
            "SET #b = :nope",
            "An expression attribute name used in the document path is not defined; attribute name: #b",
        ),
        (
            "SET a = :y , b = :z",
            "An expression attribute value used in expression is not defined; attribute value: :z",
        ),
    ],
)
def test_what_an_update_may_not_mean(text: str, expected: str) -> None:
    assert _refused(update=text) == f"Invalid UpdateExpression: {expected}"
