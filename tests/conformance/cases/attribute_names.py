"""Names of attributes: 1 to 65,535 bytes, wherever the legacy parameters give one.

Expressions give names through ExpressionAttributeNames; `values` has those of items and of nested maps.
"""

from __future__ import annotations

from ..harness import Case, Expectation, Json, Step, case, invalid

KEY: Json = {"pk": {"S": "a"}}
PUT: Json = {"Action": "PUT", "Value": {"S": "v"}}
EQUAL: Json = {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "v"}]}
BY_KEY: Json = {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}}
LONGEST = "x" * 65_535
TOO_LONG = "Attribute name is too large, must be less than 65536 bytes"


def on(operation: str, expect: Expectation | None = None, **members: object) -> Step:
    return Step(operation, {"TableName": "Hash", **members}, expect)


def uses(name: str, expect: Expectation) -> list[tuple[str, Step, str]]:
    """Every legacy parameter that names an attribute, and why DynamoDB Local differs for a long name."""
    unchecked = "accepts a name of any length"
    return [
        ("AttributeUpdates that put", on("UpdateItem", expect, Key=KEY, AttributeUpdates={name: PUT}), ""),
        (
            "AttributeUpdates that delete",
            on("UpdateItem", expect, Key=KEY, AttributeUpdates={name: {"Action": "DELETE"}}),
            "",
        ),
        ("Expected", on("PutItem", expect, Item=KEY, Expected={name: {"Exists": False}}), ""),
        ("QueryFilter", on("Query", expect, KeyConditions=BY_KEY, QueryFilter={name: EQUAL}), ""),
        ("ScanFilter", on("Scan", expect, ScanFilter={name: EQUAL}), ""),
        ("KeyConditions", on("Query", expect, KeyConditions={**BY_KEY, name: EQUAL}), ""),
        ("AttributesToGet of GetItem", on("GetItem", expect, Key=KEY, AttributesToGet=[name]), unchecked),
        (
            "AttributesToGet of Query",
            on("Query", expect, KeyConditions=BY_KEY, AttributesToGet=["b", name]),
            unchecked,
        ),
        ("AttributesToGet of Scan", on("Scan", expect, AttributesToGet=[name]), unchecked),
        (
            "AttributesToGet of BatchGetItem",
            Step(
                "BatchGetItem",
                {"RequestItems": {"Hash": {"Keys": [KEY], "AttributesToGet": [name]}}},
                expect,
            ),
            "",
        ),
    ]


CASES: list[Case] = [
    *(
        case(f"an empty name in {where}", step, tables="Hash")
        for where, step, _ in uses("", invalid("Empty attribute name"))
    ),
    *(
        case(f"a name of 65,536 bytes in {where}", step, tables="Hash", local=local)
        for where, step, local in uses("x" * 65_536, invalid(TOO_LONG))
    ),
    case(
        "a name is measured in bytes",
        on("UpdateItem", invalid(TOO_LONG), Key=KEY, AttributeUpdates={"é" * 32_768: PUT}),
        tables="Hash",
    ),
    case(
        "a name of 65,535 bytes is stored and read",
        on("UpdateItem", Key=KEY, AttributeUpdates={LONGEST: PUT}),
        on("GetItem", {"Item": {LONGEST: {"S": "v"}}}, Key=KEY, AttributesToGet=[LONGEST]),
        tables="Hash",
    ),
]
