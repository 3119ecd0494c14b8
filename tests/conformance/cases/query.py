"""Query on a table: the reply, the order of items, filters, and the order of the request's checks."""

from __future__ import annotations

import base64
from typing import Any

from .. import evidence
from ..harness import Case, Fails, Json, Step, case, invalid, reworded


def put(table: str, item: Json) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item})


def query(table: str, expect: Any, values: Json | None = None, **more: Any) -> Step:
    """A Query on partition p, or with the members of `more` instead."""
    request: Json = {
        "TableName": table,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}} | (values or {}),
    }
    return Step(
        "Query", {name: value for name, value in (request | more).items() if value is not None}, expect
    )


def found(*items: Json, scanned: int | None = None) -> Json:
    return {
        "Items": list(items),
        "Count": len(items),
        "ScannedCount": len(items) if scanned is None else scanned,
    }


def row(sort: str, **attributes: Json) -> Json:
    return {"pk": {"S": "p"}, "sk": {"S": sort}, **attributes}


def ordered(name: str, table: str, tag: str, values: list[str]) -> list[Case]:
    """`values` are in DynamoDB's order; they are written backwards and read both ways."""
    items = [{"pk": {"S": "p"}, "sk": {tag: value}} for value in values]
    return [
        case(
            f"{name}, {way}",
            *(put(table, item) for item in reversed(items)),
            query(table, found(*(items if forward else reversed(items))), ScanIndexForward=forward),
            tables=table,
        )
        for way, forward in (("forward", True), ("backward", False))
    ]


def coded(*texts: bytes) -> list[str]:
    return [base64.b64encode(text).decode() for text in texts]


ORDERS = [
    *ordered(
        "string keys sort by UTF-8 bytes",
        "Pair",
        "S",
        ["1", "10", "2", "A", "Z", "_", "a", "aa", "é", "日", "😀"],
    ),
    *ordered(
        "string keys sort by bytes, not by UTF-16 units", "Pair", "S", ["\ue000", "\uffee", "\U00010000"]
    ),
    *ordered("a prefix sorts before its continuation", "Pair", "S", ["a", "a\0", "a\x01", "a ", "aa"]),
    *ordered(
        "number keys sort by value",
        "NumberSort",
        "N",
        [
            "-20000000000",
            "-710",
            "-4.1",
            "-0.1",
            "-0.00001",
            "0",
            "0.00002",
            "0.15",
            "1",
            "2",
            "3.14159",
            "10",
            "31.4",
        ],
    ),
    *ordered(
        "number keys of 38 digits sort exactly",
        "NumberSort",
        "N",
        [
            "-99999999999999999999999999999999999999",
            "-99999999999999999999999999999999999998",
            "1.0000000000000000000000000000000000001",
            "1.0000000000000000000000000000000000002",
            "99999999999999999999999999999999999998",
            "99999999999999999999999999999999999999",
        ],
    ),
    *ordered(
        "binary keys sort by unsigned bytes",
        "BinarySort",
        "B",
        coded(b"\0", b"\0\0", b"\1", b"\x7f", b"\x7f\0", b"\x80", b"\xff", b"\xff\xff"),
    ),
]

REPLIES = [
    case("an empty partition gives an empty list", query("Pair", found()), tables="Pair"),
    case(
        "only the asked partition is read",
        put("Pair", row("1")),
        put("Pair", {"pk": {"S": "q"}, "sk": {"S": "1"}}),
        query("Pair", found(row("1"))),
        tables="Pair",
    ),
    case(
        "a table without sort key gives at most one item",
        put("Hash", {"pk": {"S": "p"}, "x": {"N": "1"}}),
        put("Hash", {"pk": {"S": "pp"}}),
        query("Hash", found({"pk": {"S": "p"}, "x": {"N": "1"}})),
        tables="Hash",
    ),
    case(
        "a number partition key is found in any spelling",
        put("NumberHash", {"pk": {"N": "1000"}}),
        query("NumberHash", found({"pk": {"N": "1000"}}), {":p": {"N": "+1e3"}}),
        tables="NumberHash",
    ),
    case(
        "items come back whole, with every type",
        put(
            "Pair",
            whole := row(
                "1",
                b={"B": "AQI="},
                t={"BOOL": True},
                u={"NULL": True},
                l={"L": [{"N": "1"}, {"S": ""}, {"M": {}}]},
                m={"M": {"k": {"NS": ["1", "2"]}}},
                ss={"SS": ["a", "b"]},
                bs={"BS": ["AQ==", "Ag=="]},
            ),
        ),
        query("Pair", found(whole)),
        tables="Pair",
    ),
    case(
        "a consistent read gives the same reply",
        put("Pair", row("1")),
        query("Pair", found(row("1")), ConsistentRead=True),
        tables="Pair",
    ),
    case(
        "a rewritten item keeps its place and appears once",
        put("Pair", row("1")),
        put("Pair", row("2")),
        put("Pair", row("1", x={"S": "new"})),
        query("Pair", found(row("1", x={"S": "new"}), row("2"))),
        tables="Pair",
    ),
    case(
        "a deleted item is gone",
        put("Pair", row("1")),
        put("Pair", row("2")),
        Step("DeleteItem", {"TableName": "Pair", "Key": row("1")}),
        query("Pair", found(row("2"))),
        tables="Pair",
    ),
    case(
        "QueryFilter may be empty",
        put("Pair", row("1")),
        query(
            "Pair",
            found(row("1")),
            KeyConditionExpression=None,
            ExpressionAttributeValues=None,
            KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}},
            QueryFilter={},
        ),
        tables="Pair",
    ),
]


def filtered(name: str, text: str, values: Json, *expected: Json, names: Json | None = None) -> Case:
    items = [
        row("1", x={"N": "1"}),
        row("2", x={"N": "2"}, m={"M": {"k": {"S": "v"}}}),
        row("3", x={"S": "2"}),
    ]
    return case(
        name,
        *(put("Pair", item) for item in items),
        query(
            "Pair", found(*expected, scanned=3), values, FilterExpression=text, ExpressionAttributeNames=names
        ),
        tables="Pair",
    )


ONE, TWO, THREE = (
    row("1", x={"N": "1"}),
    row("2", x={"N": "2"}, m={"M": {"k": {"S": "v"}}}),
    row("3", x={"S": "2"}),
)
FILTERS = [
    filtered("a filter keeps matching items and counts all", "x = :v", {":v": {"N": "2"}}, TWO),
    filtered("a filter that matches nothing gives an empty list", "x = :v", {":v": {"N": "9"}}),
    filtered("a filter reads into documents", "m.k = :v", {":v": {"S": "v"}}, TWO),
    filtered(
        "a missing attribute is not equal to anything", "m.z <> :v", {":v": {"S": "v"}}, ONE, TWO, THREE
    ),
    filtered("a comparison skips an attribute of another type", "x > :v", {":v": {"N": "0"}}, ONE, TWO),
    filtered(
        "a filter may use OR and NOT",
        "x = :v OR NOT attribute_type(x, :t)",
        {":v": {"N": "1"}, ":t": {"S": "N"}},
        ONE,
        THREE,
    ),
    filtered(
        "a filter may use placeholders for names", "#x IN (:v)", {":v": {"S": "2"}}, THREE, names={"#x": "x"}
    ),
    filtered("a filter may compare with size", "size(x) > :v", {":v": {"N": "0"}}, THREE),
]

KEY_FILTER = "Filter Expression can only contain non-primary key attributes: Primary key attribute: "
EITHER = "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
BOTH = "Can not use both expression and non-expression parameters in the same request: "
CONSTRAINT = "1 validation error detected: Value {} at '{}' failed to satisfy constraint: Member must "
EQ = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}
SHAPES = "has a different text"


def refused(name: str, text: str, values: Json | None = None, *, local: str = "", **more: Any) -> Case:
    return case(name, query("Pair", invalid(text), values, **more), tables="Pair", local=local)


REFUSALS = [
    refused(
        "a key condition is required", EITHER, KeyConditionExpression=None, ExpressionAttributeValues=None
    ),
    refused("the partition key may not be filtered", KEY_FILTER + "pk", FilterExpression="pk = :p"),
    refused(
        "the sort key may not be filtered",
        KEY_FILTER + "sk",
        FilterExpression="x = :p AND begins_with(sk, :p)",
    ),
    *(
        refused(
            f"a key may not be filtered by {filter_}", KEY_FILTER + name, values, FilterExpression=filter_
        )
        for filter_, name, values in (
            ("attribute_type(pk, :s)", "pk", {":s": {"S": "S"}}),
            ("NOT attribute_type(sk, :s)", "sk", {":s": {"S": "S"}}),
            ("attribute_exists(sk)", "sk", None),
            ("contains(x, sk)", "sk", None),
            ("x IN (:p, sk)", "sk", None),
            ("x BETWEEN :p AND sk", "sk", None),
            ("size(sk) = :n", "sk", {":n": {"N": "1"}}),
        )
    ),
    refused(
        "the sort key may not be filtered by a path either",
        KEY_FILTER + "sk",
        FilterExpression="sk.b = :p",
        local="has a different text: key attributes must be scalars",
    ),
    refused(
        "an empty filter is rejected",
        "Invalid FilterExpression: The expression can not be empty;",
        FilterExpression="",
    ),
    refused(
        "an empty projection is rejected",
        "Invalid ProjectionExpression: The expression can not be empty;",
        ProjectionExpression="",
    ),
    refused(
        "a projection may not reach into a key",
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk",
        ProjectionExpression="pk.x",
    ),
    refused(
        "overlapping projection paths are rejected",
        "Invalid ProjectionExpression: Two document paths overlap with each other; "
        "must remove or rewrite one of these paths; path one: [x], path two: [x, y]",
        ProjectionExpression="x, x.y",
    ),
    refused(
        "an unknown index is rejected",
        "The table does not have the specified index: nowhere",
        IndexName="nowhere",
    ),
    refused(
        "an unknown index is reported before a missing key element",
        "The table does not have the specified index: nowhere",
        IndexName="nowhere",
        KeyConditionExpression="z = :p",
    ),
    refused(
        "KeyConditions and KeyConditionExpression exclude each other",
        BOTH + "Non-expression parameters: {KeyConditions} Expression parameters: {KeyConditionExpression}",
        KeyConditions={"pk": EQ},
    ),
    refused(
        "QueryFilter and KeyConditionExpression exclude each other",
        BOTH + "Non-expression parameters: {QueryFilter} Expression parameters: {KeyConditionExpression}",
        QueryFilter={"x": EQ},
    ),
    refused(
        "AttributesToGet and KeyConditionExpression exclude each other",
        BOTH + "Non-expression parameters: {AttributesToGet} Expression parameters: {KeyConditionExpression}",
        AttributesToGet=["x"],
    ),
    refused(
        "mixed parameters are listed in a fixed order",
        BOTH
        + "Non-expression parameters: {AttributesToGet, QueryFilter, ConditionalOperator, KeyConditions} "
        "Expression parameters: {ProjectionExpression, FilterExpression, KeyConditionExpression}",
        KeyConditions={"pk": EQ},
        QueryFilter={"x": EQ},
        AttributesToGet=["x"],
        ConditionalOperator="OR",
        ProjectionExpression="x",
        FilterExpression="x = :p",
    ),
    refused(
        "values without expressions are rejected",
        "ExpressionAttributeValues can only be specified when using expressions: "
        "FilterExpression and KeyConditionExpression are null",
        KeyConditionExpression=None,
        KeyConditions={"pk": EQ},
    ),
    refused(
        "names without expressions are rejected",
        "ExpressionAttributeNames can only be specified when using expressions",
        KeyConditionExpression=None,
        ExpressionAttributeValues=None,
        ExpressionAttributeNames={"#a": "a"},
        KeyConditions={"pk": EQ},
    ),
    refused(
        "empty values are rejected",
        "ExpressionAttributeValues must not be empty",
        ExpressionAttributeValues={},
    ),
    refused(
        "empty names are rejected", "ExpressionAttributeNames must not be empty", ExpressionAttributeNames={}
    ),
    refused(
        "a value placeholder starts with a colon",
        'ExpressionAttributeValues contains invalid key: Syntax error; key: "p"',
        ExpressionAttributeValues={"p": {"S": "p"}},
    ),
    refused(
        "a name placeholder starts with a hash sign",
        'ExpressionAttributeNames contains invalid key: Syntax error; key: "p"',
        ExpressionAttributeNames={"p": "pk"},
    ),
    case(
        "Limit 0 is rejected",
        query(
            "Pair",
            reworded(
                CONSTRAINT.format("'0'", "limit") + "have value greater than or equal to 1",
                "1 validation error detected: Value at 'Limit' failed to satisfy constraint: "
                "Member must have value greater than or equal to 1",
                evidence.QUERY_LIMIT,
            ),
            Limit=0,
        ),
        tables="Pair",
        local=SHAPES,
    ),
    refused(
        "ReturnConsumedCapacity has three values",
        CONSTRAINT.format("'ALL'", "returnConsumedCapacity")
        + "satisfy enum value set: [INDEXES, TOTAL, NONE]",
        ReturnConsumedCapacity="ALL",
        local="treats an unknown value as INDEXES",
    ),
    refused(
        "a table name is required",
        CONSTRAINT.format("null", "tableName") + "not be null",
        TableName=None,
        local=SHAPES,
    ),
    case(
        "a missing table is rejected",
        query("Nowhere", Fails("ResourceNotFoundException", "Requested resource not found")),
        local="has a different text",
    ),
    case(
        "a missing table is reported before an unknown index",
        query(
            "Nowhere", Fails("ResourceNotFoundException", "Requested resource not found"), IndexName="nowhere"
        ),
        local="has a different text",
    ),
    case(
        "a missing key condition is reported before a missing table",
        query("Nowhere", invalid(EITHER), KeyConditionExpression=None, ExpressionAttributeValues=None),
        local="looks up the table first",
    ),
]

CASES: list[Case] = [*ORDERS, *REPLIES, *FILTERS, *REFUSALS]
