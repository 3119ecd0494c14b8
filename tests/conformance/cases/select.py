"""Select and projections: which attributes a read gives, and which combinations are rejected."""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Json, Step, case, counted, invalid

ITEM: Json = {
    "pk": {"S": "p"},
    "sk": {"S": "1"},
    "g": {"S": "g"},
    "n": {"N": "7"},
    "x": {"S": "X"},
    "m": {"M": {"a": {"S": "A"}, "b": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]}}},
}
BARE: Json = {"pk": {"S": "p"}, "sk": {"S": "2"}}
FILL = tuple(Step("PutItem", {"TableName": "Lone", "Item": item}) for item in (ITEM, BARE))
GLOBAL: Json = {
    "IndexName": "byg",
    "KeyConditionExpression": "g = :p",
    "ExpressionAttributeValues": {":p": {"S": "g"}},
}
LOCAL: Json = {"IndexName": "byn"}


def query(expect: Any, **more: Any) -> Step:
    request: Json = {
        "TableName": "Lone",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
    }
    return Step(
        "Query", {name: value for name, value in (request | more).items() if value is not None}, expect
    )


def scan(expect: Any, **more: Any) -> Step:
    return Step("Scan", {"TableName": "Lone", **more}, expect)


def found(*items: Json) -> Json:
    return {"Items": list(items), "Count": len(items), "ScannedCount": len(items)}


def only(item: Json, *names: str) -> Json:
    return {name: item[name] for name in names if name in item}


def gives(name: str, expect: Json, local: str = "", **more: Any) -> Case:
    return case(name, *FILL, query(expect, **more), tables="Lone", local=local)


PROJECTED_G = only(ITEM, "pk", "sk", "g", "x")
PROJECTED_N = only(ITEM, "pk", "sk", "n")

SELECTS = [
    gives("ALL_ATTRIBUTES is the default of a table", found(ITEM, BARE), Select="ALL_ATTRIBUTES"),
    gives("COUNT gives no Items member", {"Count": 2, "ScannedCount": 2}, Select="COUNT"),
    gives(
        "COUNT counts after the filter",
        {"Count": 1, "ScannedCount": 2},
        Select="COUNT",
        FilterExpression="attribute_exists(x)",
    ),
    case(
        "COUNT of a scan gives no Items member",
        *FILL,
        scan({"Count": 2, "ScannedCount": 2}, Select="COUNT"),
        tables="Lone",
    ),
    case("COUNT of nothing is 0", query({"Count": 0, "ScannedCount": 0}, Select="COUNT"), tables="Lone"),
    gives("COUNT of an index counts its entries", {"Count": 1, "ScannedCount": 1}, Select="COUNT", **LOCAL),
    gives("ALL_PROJECTED_ATTRIBUTES is the default of a global index", found(PROJECTED_G), **GLOBAL),
    gives(
        "ALL_PROJECTED_ATTRIBUTES of a global index",
        found(PROJECTED_G),
        Select="ALL_PROJECTED_ATTRIBUTES",
        **GLOBAL,
    ),
    gives("ALL_PROJECTED_ATTRIBUTES is the default of a local index", found(PROJECTED_N), **LOCAL),
    gives(
        "ALL_PROJECTED_ATTRIBUTES of a local index",
        found(PROJECTED_N),
        Select="ALL_PROJECTED_ATTRIBUTES",
        **LOCAL,
    ),
    gives(
        "ALL_ATTRIBUTES of a local index fetches from the table",
        found(ITEM),
        Select="ALL_ATTRIBUTES",
        **LOCAL,
    ),
    gives(
        "SPECIFIC_ATTRIBUTES with a projection gives just those",
        found({"x": ITEM["x"]}, {}),
        Select="SPECIFIC_ATTRIBUTES",
        ProjectionExpression="x",
    ),
    gives(
        "SPECIFIC_ATTRIBUTES with AttributesToGet gives just those",
        found({"x": ITEM["x"]}, {}),
        Select="SPECIFIC_ATTRIBUTES",
        AttributesToGet=["x"],
        KeyConditionExpression=None,
        ExpressionAttributeValues=None,
        KeyConditions={"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}},
    ),
]

PROJECTIONS = [
    gives(f"the projection {text} gives {what}", found(first, second), ProjectionExpression=text)
    for text, what, first, second in (
        ("pk, sk", "the keys", only(ITEM, "pk", "sk"), BARE),
        ("x", "an empty item where it is missing", {"x": ITEM["x"]}, {}),
        ("nowhere", "empty items", {}, {}),
        ("m.a", "the leaf under its parents", {"m": {"M": {"a": {"S": "A"}}}}, {}),
        ("m.b[1]", "a list with just that element", {"m": {"M": {"b": {"L": [{"N": "1"}]}}}}, {}),
        (
            "m.b[2], m.b[0]",
            "elements in the order of the list",
            {"m": {"M": {"b": {"L": [{"N": "0"}, {"N": "2"}]}}}},
            {},
        ),
        ("m.b[9]", "nothing for an element that is not there", {}, {}),
        ("m.a, x", "both", {"m": {"M": {"a": {"S": "A"}}}, "x": ITEM["x"]}, {}),
        ("x.y", "nothing for a path through a string", {}, {}),
    )
] + [
    gives(
        "a projection takes placeholders",
        found({"m": {"M": {"a": {"S": "A"}}}}, {}),
        ProjectionExpression="#m.#a",
        ExpressionAttributeNames={"#m": "m", "#a": "a"},
    ),
    gives(
        "a projection does not hide attributes from the filter",
        {"Items": [{"sk": {"S": "1"}}], "Count": 1, "ScannedCount": 2},
        ProjectionExpression="sk",
        FilterExpression="attribute_exists(x)",
    ),
    case(
        "a projection works on a scan",
        *FILL,
        scan(found({"x": ITEM["x"]}, {}), ProjectionExpression="x"),
        tables="Lone",
    ),
    gives(
        "a projection of an index gives projected attributes",
        found({"x": ITEM["x"]}),
        ProjectionExpression="x",
        **GLOBAL,
    ),
    gives(
        "a projection of a local index fetches the others from the table",
        found(only(ITEM, "x", "n")),
        ProjectionExpression="x, n",
        **LOCAL,
    ),
]

COUNT_ONLY = "Cannot specify the {} when choosing to get only the Count"
KEYED: Json = {
    "KeyConditionExpression": None,
    "ExpressionAttributeValues": None,
    "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]}},
}
NO_PROJECTION = (
    "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES"
)


def refused(name: str, text: str, *, local: str = "", **more: Any) -> Case:
    return case(name, query(invalid(text), **more), tables="Lone", local=local)


def conflict(name: str, text: str, **more: Any) -> Case:
    """A Select that does not go with the rest of a Query; a Scan is reported so without a count."""
    return case(name, query(counted(text, evidence.SELECT), **more), tables="Lone")


REFUSALS = [
    refused(
        "Select has four values",
        "1 validation error detected: Value 'ALL' at 'select' failed to satisfy constraint: Member must satisfy enum "
        "value set: [SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
        Select="ALL",
        local="has a different text",
    ),
    conflict(
        "ALL_PROJECTED_ATTRIBUTES needs an index",
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
        Select="ALL_PROJECTED_ATTRIBUTES",
    ),
    case(
        "ALL_PROJECTED_ATTRIBUTES of a scan needs an index",
        scan(
            invalid("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"),
            Select="ALL_PROJECTED_ATTRIBUTES",
        ),
        tables="Lone",
    ),
    conflict("SPECIFIC_ATTRIBUTES needs a projection", NO_PROJECTION, Select="SPECIFIC_ATTRIBUTES"),
    case(
        "SPECIFIC_ATTRIBUTES of a scan needs a projection",
        scan(invalid(NO_PROJECTION), Select="SPECIFIC_ATTRIBUTES"),
        tables="Lone",
    ),
    conflict(
        "COUNT takes no projection",
        COUNT_ONLY.format("ProjectionExpression"),
        Select="COUNT",
        ProjectionExpression="x",
    ),
    conflict(
        "COUNT takes no AttributesToGet",
        COUNT_ONLY.format("AttributesToGet"),
        Select="COUNT",
        AttributesToGet=["x"],
        **KEYED,
    ),
    conflict(
        "ALL_ATTRIBUTES takes no projection",
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
        Select="ALL_ATTRIBUTES",
        ProjectionExpression="x",
    ),
    conflict(
        "ALL_ATTRIBUTES takes no AttributesToGet",
        "Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
        Select="ALL_ATTRIBUTES",
        AttributesToGet=["x"],
        **KEYED,
    ),
    conflict(
        "ALL_PROJECTED_ATTRIBUTES takes no projection",
        "Cannot specify the ProjectionExpression when choosing to get ALL_PROJECTED_ATTRIBUTES",
        Select="ALL_PROJECTED_ATTRIBUTES",
        ProjectionExpression="x",
        **LOCAL,
    ),
    refused(
        "ALL_ATTRIBUTES of a global index needs a projection of all",
        "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global secondary "
        "index byg because its projection type is not ALL",
        Select="ALL_ATTRIBUTES",
        **GLOBAL,
    ),
    case(
        "ALL_ATTRIBUTES of a scan of a global index needs a projection of all",
        scan(
            invalid(
                "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported for global "
                "secondary index byg because its projection type is not ALL"
            ),
            Select="ALL_ATTRIBUTES",
            IndexName="byg",
        ),
        tables="Lone",
    ),
    refused(
        "a filter on an index key is reported before a wrong Select",
        "Filter Expression can only contain non-primary key attributes: Primary key attribute: g",
        Select="ALL_ATTRIBUTES",
        FilterExpression="g = :p",
        **GLOBAL,
    ),
]

CASES: list[Case] = [*SELECTS, *PROJECTIONS, *REFUSALS]
