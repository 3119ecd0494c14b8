"""Scan: the reply, filters on any attribute, parallel segments, and the checks of a request.

DynamoDB does not promise an order of partitions, so replies compare as sets unless one partition is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..harness import Case, Fails, Json, Step, canonical, case, invalid


def put(table: str, item: Json) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item})


def scan(table: str, expect: Any, **more: Any) -> Step:
    return Step("Scan", {"TableName": table, **more}, expect)


def as_set(items: list[Json]) -> list[str]:
    return sorted(json.dumps(canonical(item), sort_keys=True) for item in items)


def some(*items: Json, scanned: int | None = None) -> Callable[[Json], None]:
    """The reply holds exactly these items, in any order, and nothing else."""

    def check(reply: Json) -> None:
        assert as_set(reply["Items"]) == as_set(list(items)), reply
        assert reply["Count"] == len(items), reply
        assert reply["ScannedCount"] == (len(items) if scanned is None else scanned), reply
        assert set(reply) == {"Items", "Count", "ScannedCount"}, reply

    return check


class Union:
    """Replies of all segments together hold each item once."""

    def __init__(self, items: list[Json]) -> None:
        self._expected = items
        self._seen: list[Json] = []

    def first(self, reply: Json) -> None:
        self._seen = list(reply["Items"])

    def more(self, reply: Json) -> None:
        self._seen += reply["Items"]

    def last(self, reply: Json) -> None:
        self.more(reply)
        assert as_set(self._seen) == as_set(self._expected)


def one(key: str, **attributes: Json) -> Json:
    return {"pk": {"S": key}, **attributes}


A, B, C = one("a", x={"N": "1"}), one("b", x={"N": "2"}), one("c", y={"S": "z"})
THREE = (put("Hash", A), put("Hash", B), put("Hash", C))
EMPTY = {"Items": [], "Count": 0, "ScannedCount": 0}
PARTITION = [{"pk": {"S": "p"}, "sk": {"S": sort}} for sort in ("1", "10", "2", "A", "a")]

REPLIES = [
    case("an empty table gives an empty list", scan("Hash", EMPTY), tables="Hash"),
    case("a scan gives every item", *THREE, scan("Hash", some(A, B, C)), tables="Hash"),
    case(
        "a consistent scan gives every item",
        *THREE,
        scan("Hash", some(A, B, C), ConsistentRead=True),
        tables="Hash",
    ),
    case(
        "a scan gives every partition",
        put("Pair", one("a", sk={"S": "1"})),
        put("Pair", one("a", sk={"S": "2"})),
        put("Pair", one("b", sk={"S": "1"})),
        scan("Pair", some(one("a", sk={"S": "1"}), one("a", sk={"S": "2"}), one("b", sk={"S": "1"}))),
        tables="Pair",
    ),
    case(
        "items of one partition come in the order of the sort key",
        *(put("Pair", item) for item in reversed(PARTITION)),
        scan("Pair", {"Items": PARTITION, "Count": 5, "ScannedCount": 5}),
        tables="Pair",
    ),
    case(
        "numbers of one partition come in numeric order",
        *(put("NumberSort", one("p", sk={"N": value})) for value in ("10", "-1", "2")),
        scan(
            "NumberSort",
            {"Items": [one("p", sk={"N": v}) for v in ("-1", "2", "10")], "Count": 3, "ScannedCount": 3},
        ),
        tables="NumberSort",
    ),
    case(
        "ScanIndexForward is not a member of a scan and is ignored",
        *(put("Pair", item) for item in PARTITION),
        scan("Pair", {"Items": PARTITION, "Count": 5, "ScannedCount": 5}, ScanIndexForward=False),
        tables="Pair",
    ),
]


def filtered(name: str, text: str, values: Json | None, *expected: Json, **more: Any) -> Case:
    request = {"FilterExpression": text, **({"ExpressionAttributeValues": values} if values else {}), **more}
    return case(name, *THREE, scan("Hash", some(*expected, scanned=3), **request), tables="Hash")


FILTERS = [
    filtered("a filter keeps matching items and counts all", "x = :v", {":v": {"N": "1"}}, A),
    filtered("a filter may name the partition key", "pk = :v", {":v": {"S": "b"}}, B),
    filtered("a filter may compare the partition key", "pk > :v", {":v": {"S": "a"}}, B, C),
    filtered("a filter needs no values", "attribute_exists(y)", None, C),
    filtered("attribute_not_exists keeps items without it", "attribute_not_exists(x)", None, C),
    filtered("a comparison is false for a missing attribute", "x < :v", {":v": {"N": "9"}}, A, B),
    filtered(
        "BETWEEN is inclusive in a filter", "x BETWEEN :l AND :h", {":l": {"N": "1"}, ":h": {"N": "2"}}, A, B
    ),
    filtered("contains looks into strings", "contains(y, :v)", {":v": {"S": "z"}}, C),
    filtered("two attributes may be compared in a filter", "x = pk", None),
    filtered("a filter that matches nothing gives an empty list", "x = :v", {":v": {"S": "1"}}),
    case(
        "a filter may name the sort key",
        *(put("Pair", item) for item in PARTITION),
        scan(
            "Pair",
            {"Items": PARTITION[:2], "Count": 2, "ScannedCount": 5},
            FilterExpression="begins_with(sk, :one)",
            ExpressionAttributeValues={":one": {"S": "1"}},
        ),
        tables="Pair",
    ),
]


def segmented(total: int) -> Case:
    items = [one(f"key{number}") for number in range(12)]
    union = Union(items)
    checks = [union.first, *([union.more] * (total - 2)), union.last] if total > 1 else [some(*items)]
    return case(
        f"{total} segments together give each item once",
        *(put("Hash", item) for item in items),
        *(scan("Hash", check, Segment=place, TotalSegments=total) for place, check in enumerate(checks)),
        tables="Hash",
    )


CONSTRAINT = "1 validation error detected: Value {} at '{}' failed to satisfy constraint: Member must "
SHAPES = "has a different text"
BOTH = "Can not use both expression and non-expression parameters in the same request: "


def refused(name: str, text: str, *, table: str = "Pair", local: str = "", **more: Any) -> Case:
    return case(name, scan(table, invalid(text), **more), tables=table, local=local)


def first_or_nothing(reply: Json) -> None:
    assert reply["Items"] in ([], PARTITION), reply


SEGMENTS = [
    *(segmented(total) for total in (1, 2, 5)),
    case(
        "a partition lies in one segment",
        *(put("Pair", item) for item in PARTITION),
        scan("Pair", first_or_nothing, Segment=0, TotalSegments=2),
        scan("Pair", first_or_nothing, Segment=1, TotalSegments=2),
        tables="Pair",
    ),
    refused(
        "Segment needs TotalSegments",
        "The TotalSegments parameter is required but was not present in the request when Segment parameter is present",
        Segment=1,
        local=SHAPES,
    ),
    refused(
        "TotalSegments needs Segment",
        "The Segment parameter is required but was not present in the request when parameter TotalSegments is present",
        TotalSegments=1,
        local=SHAPES,
    ),
    *(
        refused(
            f"segment {segment} of {total} is rejected",
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}",
            Segment=segment,
            TotalSegments=total,
            local=SHAPES,
        )
        for segment, total in ((1, 1), (2, 2), (7, 5))
    ),
    refused(
        "TotalSegments starts at 1",
        CONSTRAINT.format("'0'", "totalSegments") + "have value greater than or equal to 1",
        Segment=0,
        TotalSegments=0,
        local=SHAPES,
    ),
    refused(
        "Segment starts at 0",
        CONSTRAINT.format("'-1'", "segment") + "have value greater than or equal to 0",
        Segment=-1,
        TotalSegments=2,
        local=SHAPES,
    ),
    refused(
        "TotalSegments ends at 1000000",
        CONSTRAINT.format("'1000001'", "totalSegments") + "have value less than or equal to 1000000",
        Segment=0,
        TotalSegments=1000001,
    ),
]


REFUSALS = [
    case(
        "a missing table is rejected",
        scan("Nowhere", Fails("ResourceNotFoundException", "Requested resource not found")),
        local="has a different text",
    ),
    case(
        "a missing table is reported before a wrong starting key",
        scan(
            "Nowhere",
            Fails("ResourceNotFoundException", "Requested resource not found"),
            ExclusiveStartKey={},
        ),
        local="has a different text",
    ),
    case(
        "a bad filter is reported before a missing table",
        scan(
            "Nowhere",
            invalid("Invalid FilterExpression: Invalid function name; function: dog"),
            FilterExpression="dog(x)",
        ),
        local="looks up the table first",
    ),
    refused(
        "an unknown index is rejected",
        "The table does not have the specified index: nowhere",
        IndexName="nowhere",
    ),
    refused(
        "an empty filter is rejected",
        "Invalid FilterExpression: The expression can not be empty;",
        FilterExpression="",
    ),
    refused(
        "a filter may not reach into the partition key",
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: pk",
        FilterExpression="attribute_exists(pk.x)",
    ),
    refused(
        "a filter may not reach into the sort key",
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: sk",
        FilterExpression="attribute_exists(sk[0])",
    ),
    refused(
        "a filter may not reach into an index key",
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: IndexKey: g",
        table="Lone",
        FilterExpression="attribute_exists(g.x)",
    ),
    refused(
        "values need a filter",
        "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null",
        ExpressionAttributeValues={":a": {"S": "a"}},
    ),
    refused(
        "values need a filter, also with a projection",
        "ExpressionAttributeValues can only be specified when using expressions: FilterExpression is null",
        ProjectionExpression="x",
        ExpressionAttributeValues={":a": {"S": "a"}},
    ),
    refused(
        "names need an expression",
        "ExpressionAttributeNames can only be specified when using expressions",
        ExpressionAttributeNames={"#a": "a"},
    ),
    refused(
        "an unused value is rejected",
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}",
        FilterExpression="x = :a",
        ExpressionAttributeValues={":a": {"S": "a"}, ":b": {"S": "b"}},
    ),
    refused(
        "an unused name is rejected",
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
        ProjectionExpression="#a",
        ExpressionAttributeNames={"#a": "a", "#b": "b"},
    ),
    refused(
        "an attribute may not be compared with itself",
        "Invalid FilterExpression: The first operand must be distinct from the remaining operands for this operator or "
        "function; operator: =, first operand: [x]",
        FilterExpression="x = x",
    ),
    refused(
        "begins_with takes no number in a filter",
        "Invalid FilterExpression: Incorrect operand type for operator or function; "
        "operator or function: begins_with, operand type: N",
        FilterExpression="begins_with(x, :n)",
        ExpressionAttributeValues={":n": {"N": "1"}},
    ),
    refused(
        "a list has no order in a filter",
        "Invalid FilterExpression: Incorrect operand type for operator or function; operator or function: <, operand type: L",
        FilterExpression="x < :l",
        ExpressionAttributeValues={":l": {"L": []}},
    ),
    refused(
        "Limit 0 is rejected",
        CONSTRAINT.format("'0'", "limit") + "have value greater than or equal to 1",
        Limit=0,
        local=SHAPES,
    ),
    refused(
        "ScanFilter and FilterExpression exclude each other",
        BOTH + "Non-expression parameters: {ScanFilter} Expression parameters: {FilterExpression}",
        ScanFilter={"x": {"ComparisonOperator": "NULL"}},
        FilterExpression="attribute_exists(x)",
    ),
    refused(
        "AttributesToGet and ProjectionExpression exclude each other",
        BOTH + "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
        AttributesToGet=["x"],
        ProjectionExpression="x",
    ),
]

CASES: list[Case] = [*REPLIES, *FILTERS, *SEGMENTS, *REFUSALS]
