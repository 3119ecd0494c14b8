"""Payloads become records, or get DynamoDB's own refusal before any table is looked at."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solotable._expressions.ast import Attr, Compare, Const, Exists, KeyTerm, Not, Or
from solotable._protocol.constraints.kinds import (
    Attributes,
    Constraint,
    Flag,
    ListOf,
    MapOf,
    Real,
    Struct,
    Text,
    Whole,
)
from solotable._protocol.constraints.operations import CONSTRAINTS
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.requests import (
    BatchDelete,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    Control,
    DeleteItem,
    ExecuteStatement,
    GetItem,
    PutItem,
    Query,
    Scan,
    Statement,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
)
from solotable.errors import ServiceError
from tests.torture.size import amount

T: dict[str, Any] = {"TableName": "abc"}
K: dict[str, Any] = {"Key": {"p": {"S": "x"}}}
I: dict[str, Any] = {"Item": {"p": {"S": "x"}}}  # noqa: E741  # beside T and K
VALUES = {"ExpressionAttributeValues": {":v": {"S": "x"}}}
EQUALS: dict[str, Any] = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}
MIXED = "Can not use both expression and non-expression parameters in the same request: "
NO_VALUES = "ExpressionAttributeValues can only be specified when using expressions: "
ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/abc"


def refusal(operation: str, payload: dict[str, Any]) -> str:
    with pytest.raises(ServiceError) as caught:
        # `test_wording` and the conformance cases have the texts of 2026.
        decode_request(operation, payload, "2025")
    assert caught.value.code == "ValidationException"
    return caught.value.message


def test_single_items() -> None:
    key = {"p": {"S": "x"}}
    assert decode_request("GetItem", {**T, **K, "ConsistentRead": True}) == GetItem(
        table="abc", key=key, consistent=True
    )
    assert decode_request("GetItem", {**T, **K, "AttributesToGet": ["a.b", "c"]}) == GetItem(
        table="abc", key=key, projection=(("a.b",), ("c",))
    )
    assert decode_request("PutItem", {**T, "Item": {"p": {"S": "x"}, "n": {"N": "01e2"}}}) == PutItem(
        table="abc", item={"p": {"S": "x"}, "n": {"N": "100"}}
    )
    assert decode_request(
        "DeleteItem", {**T, **K, "ConditionExpression": "attribute_exists(a)"}
    ) == DeleteItem(table="abc", key=key, condition=Exists(("a",)))
    assert decode_request("UpdateItem", {**T, **K}) == UpdateItem(table="abc", key=key)


def test_what_is_to_be_returned() -> None:
    decoded = decode_request(
        "PutItem",
        {
            **T,
            **I,
            "ReturnValues": "ALL_OLD",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            "ReturnConsumedCapacity": "INDEXES",
            "ReturnItemCollectionMetrics": "SIZE",
        },
    )
    assert decoded == PutItem(
        table="abc",
        item=I["Item"],
        returns="ALL_OLD",
        returns_on_failure=True,
        capacity="INDEXES",
        collection="SIZE",
    )


def test_expressions_become_trees() -> None:
    decoded = decode_request(
        "UpdateItem",
        {
            **T,
            **K,
            "UpdateExpression": "SET #a = :v",
            "ConditionExpression": "attribute_not_exists(b)",
            "ExpressionAttributeNames": {"#a": "a"},
            **VALUES,
        },
    )
    assert isinstance(decoded, UpdateItem)
    assert decoded.condition == Not(Exists(("b",)))
    assert decoded.update.creates
    assert not decoded.update.legacy


def test_legacy_parameters_become_the_same_trees() -> None:
    decoded = decode_request(
        "UpdateItem",
        {
            **T,
            **K,
            "AttributeUpdates": {"a": {"Action": "DELETE"}},
            "Expected": {"a": {"Exists": False}, "b": {"Value": {"S": "x"}}},
            "ConditionalOperator": "OR",
        },
    )
    assert isinstance(decoded, UpdateItem)
    assert decoded.condition == Or((Not(Exists(("a",))), Compare("=", Attr(("b",)), Const({"S": "x"}))))
    assert decoded.update.legacy
    assert not decoded.update.creates


def test_pages() -> None:
    term = (KeyTerm("p", "=", ({"S": "x"},)),)
    assert decode_request("Query", {**T, "KeyConditionExpression": "p = :v", **VALUES, "Limit": 3}) == Query(
        table="abc", key=term, limit=3
    )
    assert decode_request("Query", {**T, "KeyConditions": {"p": EQUALS}, "ScanIndexForward": False}) == Query(
        table="abc", key=term, forward=False, legacy=True
    )
    assert decode_request("Scan", {**T, "IndexName": "iii", "Segment": 0, "TotalSegments": 2}) == Scan(
        table="abc", index="iii", segment=0, segments=2
    )
    decoded = decode_request(
        "Scan", {**T, "ScanFilter": {"a": EQUALS}, "ExclusiveStartKey": {"p": {"N": "1.0"}}}
    )
    assert decoded == Scan(
        table="abc",
        filter=Compare("=", Attr(("a",)), Const({"S": "x"})),
        start={"p": {"N": "1"}},
        legacy=True,
    )


def test_batches() -> None:
    entry = {"Keys": [K["Key"]], "ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": "a"}}
    assert decode_request("BatchGetItem", {"RequestItems": {"abc": entry}}) == BatchGetItem(
        tables=(
            TableKeys(
                table="abc",
                keys=(K["Key"],),
                projection=(("a",),),
                wire={"ProjectionExpression": "#a", "ExpressionAttributeNames": {"#a": "a"}},
            ),
        )
    )
    writes = [{"PutRequest": I}, {"DeleteRequest": K}]
    assert decode_request("BatchWriteItem", {"RequestItems": {ARN: writes}}) == BatchWriteItem(
        tables=((ARN, (BatchPut(item=I["Item"]), BatchDelete(key=K["Key"]))),)
    )


def test_transactions() -> None:
    assert decode_request("TransactGetItems", {"TransactItems": [{"Get": {**T, **K}}]}) == TransactGetItems(
        gets=(GetItem(table="abc", key=K["Key"], consistent=True),)
    )
    decoded = decode_request(
        "TransactWriteItems",
        {
            "TransactItems": [
                {"Put": {**T, **I}},
                {"Delete": {**T, **K}},
                {"Update": {**T, **K, "UpdateExpression": "REMOVE a"}},
                {"ConditionCheck": {**T, **K, "ConditionExpression": "attribute_exists(a)"}},
            ]
        },
    )
    assert isinstance(decoded, TransactWriteItems)
    assert [type(action) for action in decoded.actions] == [PutItem, DeleteItem, UpdateItem, ConditionCheck]


def test_the_fingerprint_is_of_the_actions_alone() -> None:
    def fingerprint(**more: Any) -> bytes:
        payload = {"TransactItems": [{"Put": {**T, **I}}], "ClientRequestToken": "t", **more}
        decoded = decode_request("TransactWriteItems", payload)
        assert isinstance(decoded, TransactWriteItems)
        return decoded.fingerprint

    same = fingerprint()
    assert same
    assert fingerprint(ReturnConsumedCapacity="TOTAL") == same
    assert fingerprint(TransactItems=[{"Put": {**I, **T}}]) == same
    assert fingerprint(TransactItems=[{"Put": {**T, "Item": {"p": {"S": "y"}}}}]) != same


def test_statements() -> None:
    payload = {"Statement": "SELECT * FROM abc", "Parameters": [{"N": "1.0"}], "Limit": 2, "NextToken": "t"}
    assert decode_request("ExecuteStatement", payload) == ExecuteStatement(
        statement=Statement(text="SELECT * FROM abc", parameters=({"N": "1"},)), limit=2, token="t"
    )


def test_items_carry_the_arn_of_their_table_and_control_operations_its_name() -> None:
    assert decode_request("GetItem", {"TableName": ARN, **K}) == GetItem(table=ARN, key=K["Key"])
    assert decode_request("DescribeTable", {"TableName": ARN}) == Control(
        operation="DescribeTable", members=T
    )


@pytest.mark.parametrize(
    ("operation", "payload", "text"),
    [
        (
            "PutItem",
            {**T, **I, "ExpressionAttributeNames": {"#a": "a"}},
            "ExpressionAttributeNames can only be",
        ),
        ("PutItem", {**T, **I, **VALUES}, NO_VALUES + "ConditionExpression is null"),
        ("UpdateItem", {**T, **K, **VALUES}, NO_VALUES + "UpdateExpression and ConditionExpression are null"),
        (
            "Query",
            {**T, **VALUES, "ProjectionExpression": "a"},
            NO_VALUES + "FilterExpression and KeyConditionExpression are null",
        ),
        (
            "PutItem",
            {**T, **I, "Expected": {"a": {"Exists": False}}, "ConditionExpression": "attribute_exists(a)"},
            MIXED + "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
        ),
        (
            "GetItem",
            {**T, **K, "AttributesToGet": ["a"], "ProjectionExpression": "a"},
            MIXED
            + "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
        ),
        (
            "Query",
            {**T, "KeyConditions": {"p": EQUALS}, "KeyConditionExpression": "p = :v", **VALUES},
            MIXED
            + "Non-expression parameters: {KeyConditions} Expression parameters: {KeyConditionExpression}",
        ),
        ("PutItem", {**T, **I, "ReturnValues": "ALL_NEW"}, "ReturnValues can only be ALL_OLD or NONE"),
        ("DeleteItem", {**T, **K, "ReturnValues": "UPDATED_OLD"}, "ReturnValues can only be ALL_OLD or NONE"),
        (
            "PutItem",
            {**T, **I, "ConditionalOperator": "AND"},
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
        (
            "Scan",
            {**T, "ScanFilter": {"a": EQUALS}, "ConditionalOperator": "AND"},
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        ),
        (
            "GetItem",
            {**T, **K, "AttributesToGet": ["a", "a"]},
            "One or more parameter values were invalid: Duplicate value in attribute name: a",
        ),
        ("GetItem", {**T, "Key": {"p": {}}}, "Supplied AttributeValue is empty, must contain exactly one of"),
        (
            "GetItem",
            {**T, "Key": {"p": None}},
            "Supplied AttributeValue is empty, must contain exactly one of",
        ),
        (
            "Query",
            T,
            "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
        ),
        ("Query", {**T, "KeyConditions": {}}, "Conditions can be of length 1 or 2 only"),
        (
            "Scan",
            {**T, "Select": "SPECIFIC_ATTRIBUTES"},
            "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_",
        ),
        (
            "Scan",
            {**T, "Select": "COUNT", "ProjectionExpression": "a"},
            "Cannot specify the ProjectionExpression when choosing to get only the Count",
        ),
        (
            "Scan",
            {**T, "Select": "ALL_ATTRIBUTES", "AttributesToGet": ["a"]},
            "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
        ),
        (
            "Scan",
            {**T, "Select": "ALL_PROJECTED_ATTRIBUTES"},
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        ),
        ("Scan", {**T, "Segment": 0}, "The TotalSegments parameter is required but was not present in the"),
        ("Scan", {**T, "TotalSegments": 4}, "The Segment parameter is required but was not present in the"),
        (
            "Scan",
            {**T, "Segment": 5, "TotalSegments": 5},
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            "Segment: 5 is not less than TotalSegments: 5",
        ),
        (
            "Scan",
            {**T, "Limit": 0},
            "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: "
            "Member must have value greater than or equal to 1",
        ),
        ("Scan", {**T, "ExclusiveStartKey": {"p": {}}}, "The provided starting key is invalid: Supplied"),
        (
            "Scan",
            {**T, "ExclusiveStartKey": {"p": {"N": "b"}}},
            "The parameter cannot be converted to a numeric",
        ),
        ("BatchGetItem", {"RequestItems": {}}, "The requestItems parameter is required for BatchGetItem"),
        ("BatchWriteItem", {"RequestItems": {}}, "The requestItems parameter is required for BatchWriteItem"),
        (
            "BatchWriteItem",
            {"RequestItems": {"abc": [{}]}},
            "Supplied AttributeValue has more than one datatypes set, must contain exactly one of",
        ),
        (
            "BatchGetItem",
            {
                "RequestItems": {
                    "abc": {"Keys": [K["Key"]], "ProjectionExpression": "a"},
                    "abd": {"Keys": [K["Key"]], "AttributesToGet": ["a"]},
                }
            },
            MIXED,
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{}]},
            "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {**T, **I}, "Delete": {**T, **K}}]},
            "TransactItems can only contain one of Check, Put, Update or Delete",
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {**T, **I}}], "ClientRequestToken": "t" * 37},
            "1 validation error detected: Value 'ttttt",
        ),
        (
            "TransactWriteItems",
            {"TransactItems": [{"Put": {**T, "Item": {"p": {"S": "x" * 409_600}}}}]},
            "Item size has exceeded the maximum allowed size",
        ),
        (
            "UpdateItem",
            {"TableName": "x!", **K},
            "2 validation errors detected: Value 'x!' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3; "
            "Value 'x!' at 'tableName' failed to satisfy constraint: "
            "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
        ),
        (
            "UpdateItem",
            {"TableName": "", **K},
            "1 validation error detected: Value '' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 1",
        ),
        ("GetItem", {"TableName": "arn:aws:dynamodb:eu-west-1:1:nope", **K}, "Valid ARN format is"),
        ("TagResource", {"Tags": [{}]}, "The Tag Key provided is invalid, Key: null"),
        ("TagResource", {"Tags": [{"Key": "k"}]}, "The Tag Value provided is invalid, Value: null"),
        ("UntagResource", {"TagKeys": ["k" * 129]}, "The Tag Key provided is invalid, Key: kkk"),
        (
            "CreateTable",
            {"TableName": "x!", "KeySchema": []},
            "2 validation errors detected: Value 'x!' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3; Value 'x!' at 'tableName'",
        ),
        (
            "DescribeTable",
            {"TableName": ""},
            "2 validation errors detected: Value '' at 'tableName' failed to satisfy constraint: "
            "Member must have length greater than or equal to 3; Value '' at 'tableName'",
        ),
    ],
)
def test_a_refusal_reads_as_dynamodb_words_it(operation: str, payload: dict[str, Any], text: str) -> None:
    assert refusal(operation, payload).startswith(text)


def test_batches_have_limits_over_all_tables() -> None:
    keys = [{"p": {"S": str(i)}} for i in range(60)]
    requested = {"abc": {"Keys": keys}, "abd": {"Keys": keys}}
    assert refusal("BatchGetItem", {"RequestItems": requested}) == (
        "Too many items requested for the BatchGetItem call"
    )
    writes = [{"PutRequest": I}] * 13
    assert refusal("BatchWriteItem", {"RequestItems": {"abc": writes, "abd": writes}}) == (
        "Too many items requested for the BatchWriteItem call"
    )


def test_a_transaction_has_a_size_limit() -> None:
    puts = [{"Put": {**T, "Item": {"p": {"S": str(i) + "x" * 390_000}}}} for i in range(12)]
    message = refusal("TransactWriteItems", {"TransactItems": puts})
    assert message.startswith("Transaction payload size cannot exceed 4MB. Payload Size: 46")


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
CONTENTS = st.sampled_from(["x", "1", "-1e5", "", "YQ==", "abc", "#a", ":v"])
VALUE = st.recursive(
    st.one_of(
        st.fixed_dictionaries({}, optional={"S": CONTENTS, "N": CONTENTS, "B": CONTENTS}),
        st.fixed_dictionaries({"BOOL": st.booleans()}),
        st.fixed_dictionaries({"NULL": st.booleans()}),
        st.fixed_dictionaries({"SS": st.lists(CONTENTS, max_size=3)}),
        st.fixed_dictionaries({"NS": st.lists(CONTENTS, max_size=3)}),
    ),
    lambda inner: (
        st.fixed_dictionaries({"L": st.lists(inner, max_size=2)})
        | st.fixed_dictionaries({"M": st.dictionaries(CONTENTS, inner, max_size=2)})
    ),
    max_leaves=4,
)
TEXTS = st.sampled_from(
    [
        "abc",
        "a",
        "#a",
        ":v",
        "a = :v",
        "p = :v AND q > :v",
        "SET a = :v",
        "attribute_exists(#a)",
        "a, #a.b[1]",
        "(",
        ARN,
    ]
)


def plausible(constraint: Constraint) -> st.SearchStrategy[Any]:
    """Give values that mostly fit the constraint."""
    match constraint:
        case Text(enum=enum) if enum:
            return st.sampled_from(enum)
        case Text():
            return TEXTS
        case Whole() | Real():
            return st.integers(-1, 5)
        case Flag():
            return st.booleans()
        case Attributes():
            return st.dictionaries(st.sampled_from(["p", "a", ":v", ":w"]), VALUE, max_size=2)
        case ListOf(member=member):
            return st.lists(plausible(member), max_size=3)
        case MapOf(member=member):
            return st.dictionaries(st.sampled_from(["abc", "a", "#a", ARN]), plausible(member), max_size=2)
        case Struct(members=members):
            fitting = {name: plausible(member) for name, member in members.items()}
            needed = {name: fitting[name] for name, member in members.items() if member.required}
            rest = {name: member for name, member in fitting.items() if name not in needed}
            return st.fixed_dictionaries(needed, optional=rest)
        case _:
            return VALUE


@settings(max_examples=amount(15, 400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize("operation", sorted(CONSTRAINTS))
@given(data=st.data())
def test_any_json_is_decoded_or_refused(operation: str, data: st.DataObject) -> None:
    payload = data.draw(plausible(CONSTRAINTS[operation]))
    members = sorted(CONSTRAINTS[operation].members)
    if members and data.draw(st.integers(0, 3)) == 0:
        payload[data.draw(st.sampled_from(members))] = data.draw(JUNK)
    with suppress(ServiceError):
        decode_request(operation, payload)
