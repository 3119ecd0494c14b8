"""Rendering is the way back from decoding."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from solotable._expressions.ast import (
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Delete,
    Exists,
    KeyTerm,
    ListAppend,
    Not,
    Or,
    Remove,
    Same,
    Update,
)
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.requests import (
    NO_UPDATE,
    BatchExecuteStatement,
    BatchGetItem,
    Control,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Query,
    Request,
    Statement,
    TransactWriteItems,
    UpdateItem,
)
from solotable.errors import DeclarationError

from .trees import CONDITIONS, RECORDS, normal

A, B, C = (Compare("=", Attr((name,)), Const({"S": name})) for name in "abc")
KEY = {"pk": {"S": "k"}}


def again(request: Request[Any]) -> Request[Any]:
    """What arrives when a record is sent, without what only the receiver adds."""
    operation, members = encode_request(request)
    arrived = decode_request(operation, json.loads(json.dumps(members)))
    if isinstance(arrived, BatchGetItem):
        return replace(arrived, tables=tuple(replace(part, wire={}) for part in arrived.tables))
    if isinstance(arrived, TransactWriteItems | ExecuteTransaction):
        return replace(arrived, fingerprint=b"")
    return arrived


@given(RECORDS)
def test_every_record_arrives_as_it_was_sent(request_: Request[Any]) -> None:
    assert again(request_) == request_


@given(CONDITIONS)
def test_every_condition_arrives_with_its_meaning(condition: Condition) -> None:
    arrived = again(PutItem(table="Things", item=KEY, condition=condition))
    assert isinstance(arrived, PutItem)
    assert arrived.condition is not None
    assert normal(arrived.condition) == normal(condition)


@given(RECORDS)
def test_no_attribute_name_stands_in_a_text(request_: Request[Any]) -> None:
    _, members = encode_request(request_)
    words = "AND OR NOT BETWEEN IN SET REMOVE ADD DELETE size contains begins_with if_not_exists list_append"
    functions = {"attribute_exists", "attribute_not_exists", "attribute_type", *words.split()}
    for text in texts(members):
        found = set("".join(c if c.isalnum() or c in "_#:" else " " for c in text).split())
        assert {one for one in found if one[0] not in "#:" and not one.isdigit()} <= functions


def texts(members: Any) -> list[str]:
    if isinstance(members, list):
        return [text for one in members for text in texts(one)]
    if not isinstance(members, dict):
        return []
    own = [text for name, text in members.items() if name.endswith("Expression") and isinstance(text, str)]
    return own + [text for name, one in members.items() if not name.startswith("Ex") for text in texts(one)]


def condition_of(condition: Condition) -> str:
    text: str = encode_request(PutItem(table="Things", item=KEY, condition=condition))[1][
        "ConditionExpression"
    ]
    return text


@pytest.mark.parametrize(
    "condition, text",
    [
        (And((A, Or((B, C)))), "#0 = :0 AND (#1 = :1 OR #2 = :2)"),
        (Or((A, And((B, C)))), "#0 = :0 OR #1 = :1 AND #2 = :2"),
        (And((A, And((B, C)))), "#0 = :0 AND #1 = :1 AND #2 = :2"),
        (And((A, Or((B,)))), "#0 = :0 AND #1 = :1"),
        (Not(A), "NOT #0 = :0"),
        (Not(Or((A, B))), "NOT (#0 = :0 OR #1 = :1)"),
        (And((A, Not(Not(Or((B, C)))))), "#0 = :0 AND (#1 = :1 OR #2 = :2)"),
        (Not(Exists(("a", 3, "b"))), "attribute_not_exists(#0[3].#1)"),
    ],
)
def test_parentheses_are_only_where_they_are_needed(condition: Condition, text: str) -> None:
    assert condition_of(condition) == text


def test_one_ledger_serves_all_expressions_of_a_request() -> None:
    key = (KeyTerm("pk", "=", ({"S": "k"},)), KeyTerm("sk", "BETWEEN", ({"S": "a"}, {"S": "k"})))
    keep = Compare("<>", Attr(("sk",)), Const({"S": "k"}))
    assert encode_request(
        Query(table="Things", key=key, filter=keep, projection=(("pk",), ("m", "sk"))),
    ) == (
        "Query",
        {
            "TableName": "Things",
            "KeyConditionExpression": "#0 = :0 AND #1 BETWEEN :1 AND :0",
            "FilterExpression": "#1 <> :0",
            "ProjectionExpression": "#0, #2.#1",
            "ExpressionAttributeNames": {"#0": "pk", "#1": "sk", "#2": "m"},
            "ExpressionAttributeValues": {":0": {"S": "k"}, ":1": {"S": "a"}},
        },
    )


def test_values_of_two_types_never_share_a_placeholder() -> None:
    values: list[dict[str, Any]] = [
        {"S": "1"},
        {"N": "1"},
        {"BOOL": True},
        {"S": "True"},
        {"L": []},
        {"M": {}},
    ]
    same = [*values, *map(dict, values)]
    terms = tuple(Compare("=", Attr((str(at),)), Const(value)) for at, value in enumerate(same))
    _, members = encode_request(PutItem(table="Things", item=KEY, condition=And(terms)))
    assert list(members["ExpressionAttributeValues"].values()) == values


def test_actions_are_gathered_by_section() -> None:
    one, two = Assign(("a",), Const({"N": "1"})), Assign(("c",), Const({"N": "2"}))
    update = Update((one, Remove(("b",)), two), creates=True)
    _, members = encode_request(UpdateItem(table="Things", key=KEY, update=update))
    assert members["UpdateExpression"] == "SET #0 = :0, #2 = :1 REMOVE #1"


def test_members_that_say_nothing_are_left_out() -> None:
    assert encode_request(UpdateItem(table="Things", key=KEY))[1] == {"TableName": "Things", "Key": KEY}
    assert encode_request(GetItem(table="Things", key=KEY))[1] == {"TableName": "Things", "Key": KEY}
    assert encode_request(PutItem(table="Things", item=KEY, condition=And(())))[1] == {
        "TableName": "Things",
        "Item": KEY,
    }


SELECT = Statement(text="SELECT * FROM Things", parameters=({"S": "a"},), consistent=True)
DELETE = Statement(text="DELETE FROM Things WHERE pk = ?", returns_on_failure=True)


@pytest.mark.parametrize(
    "request_",
    [
        ExecuteStatement(statement=SELECT, limit=3, token="next", capacity="TOTAL"),
        BatchExecuteStatement(statements=(SELECT, DELETE), capacity="INDEXES"),
        ExecuteTransaction(statements=(DELETE,), token="once"),
        Control(operation="DescribeTable", members={"TableName": "Things"}),
    ],
)
def test_statements_and_control_operations_arrive_as_they_were_sent(request_: Request[Any]) -> None:
    assert again(request_) == request_


@pytest.mark.parametrize(
    "update, reason",
    [
        (Update((Add(("a",), {"L": []}, to_list=True),), creates=True), "list_append"),
        (Update((Remove(("a",)),), creates=True), "missing item"),
        (
            Update((Delete(("a",), {"SS": ["x"]}), Assign(("b",), Attr(("c",)))), creates=False),
            "missing item",
        ),
        (Update((), creates=False), "missing item"),
    ],
)
def test_an_update_that_no_expression_can_say_is_refused(update: Update, reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        encode_request(UpdateItem(table="Things", key=KEY, update=update))


@pytest.mark.parametrize(
    "inner", [Arithmetic("+", Attr(("a",)), Attr(("b",))), ListAppend(Attr(("a",)), Attr(("b",)))]
)
def test_a_sum_inside_a_sum_is_refused(inner: Any) -> None:
    update = Update((Assign(("c",), Arithmetic("-", inner, Const({"N": "1"}))),), creates=True)
    with pytest.raises(DeclarationError, match="whole value of a SET"):
        encode_request(UpdateItem(table="Things", key=KEY, update=update))


@pytest.mark.parametrize("condition", [Same(A, B), And((A, Same(A, B))), Not(Same(A, B)), Or((A, And(())))])
def test_a_condition_that_no_expression_can_say_is_refused(condition: Condition) -> None:
    with pytest.raises(DeclarationError):
        encode_request(PutItem(table="Things", item=KEY, condition=condition))


def test_an_update_without_actions_is_refused_in_a_transaction() -> None:
    update = UpdateItem(table="Things", key=KEY, update=NO_UPDATE)
    with pytest.raises(DeclarationError, match="needs at least one action"):
        encode_request(TransactWriteItems(actions=(update,)))


def test_an_unknown_kind_of_request_is_rejected() -> None:
    with pytest.raises(TypeError, match="not a DynamoDB request"):
        encode_request(Request())
