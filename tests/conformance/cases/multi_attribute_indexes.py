"""Global indexes whose keys are made of several attributes: up to four for each of partition and sort.

The standard table Multi has the index `multi` (p1 S, p2 N; sorted by s1 S, s2 N, s3 B) and the index `pair`
(p1, p2; keys only).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..harness import Case, Fails, Json, Step, case, invalid


def put(item: Json, expect: Any = None) -> Step:
    return Step("PutItem", {"TableName": "Multi", "Item": item}, expect)


def entry(name: str, s1: str = "s", s2: str = "1", s3: str = "AQ==", **more: Json) -> Json:
    return {
        "id": {"S": name},
        "p1": {"S": "p"},
        "p2": {"N": "7"},
        "s1": {"S": s1},
        "s2": {"N": s2},
        "s3": {"B": s3},
        **more,
    }


VALUES: Json = {
    ":p": {"S": "p"},
    ":q": {"N": "7"},
    ":a": {"S": "a"},
    ":b": {"S": "b"},
    ":1": {"N": "1"},
    ":2": {"N": "2"},
    ":x": {"B": "AQ=="},
    ":y": {"B": "gA=="},
}


def used(*texts: str) -> Json:
    words = " ".join(texts).replace("(", " ").replace(")", " ").replace(",", " ").split()
    return {name: value for name, value in VALUES.items() if name in words}


def query(expect: Any, where: str = "p1 = :p AND p2 = :q", index: str = "multi", **more: Any) -> Step:
    request = {
        "TableName": "Multi",
        "IndexName": index,
        "KeyConditionExpression": where,
        "ExpressionAttributeValues": used(where, str(more.get("FilterExpression", ""))),
        **more,
    }
    return Step("Query", request, expect)


#: Operators of KeyConditions that stand for a sign of KeyConditionExpression.
LEGACY = {"=": "EQ", "<": "LT", ">=": "GE", "begins_with": "BEGINS_WITH", "BETWEEN": "BETWEEN"}


def legacy(expect: Any, *terms: tuple[str, ...], index: str = "multi") -> Step:
    """Query by KeyConditions; a term is an attribute, an operator and the names of values."""
    conditions = {
        name: {"ComparisonOperator": LEGACY[sign], "AttributeValueList": [VALUES[value] for value in values]}
        for name, sign, *values in terms
    }
    return Step("Query", {"TableName": "Multi", "IndexName": index, "KeyConditions": conditions}, expect)


def ids(*names: str) -> Callable[[Json], None]:
    """The items with these ids, in this order."""

    def check(reply: Json) -> None:
        assert [item["id"]["S"] for item in reply["Items"]] == list(names), reply

    return check


def found(*items: Json) -> Json:
    return {"Items": list(items), "Count": len(items), "ScannedCount": len(items)}


def without(item: Json, *names: str) -> Json:
    return {name: value for name, value in item.items() if name not in names}


#: In the order of the index.
GRID = [
    entry("1", "a", "-3"),
    entry("2", "a", "1"),
    entry("3", "a", "2", "AQ=="),
    entry("4", "a", "2", "fw=="),
    entry("5", "a", "2", "gA=="),
    entry("6", "a", "10"),
    entry("7", "ab", "0"),
    entry("8", "b", "1"),
]
FILL = (
    *(put(GRID[place]) for place in (5, 2, 7, 0, 4, 1, 6, 3)),
    put(entry("other partition", "a", "1", p1={"S": "o"})),
    put(entry("other second part", "a", "1", p2={"N": "8"})),
)
BOTH = "p1 = :p AND p2 = :q"


def selects(clause: str, *names: str, **more: Any) -> Case:
    return case(
        f"{clause or 'the partition alone'} gives {''.join(names) or 'nothing'}{' backward' if more else ''}",
        *FILL,
        query(ids(*names), f"{BOTH} AND {clause}" if clause else BOTH, **more),
        tables="Multi",
    )


SELECTIONS = [
    selects("", *"12345678"),
    selects("", *"87654321", ScanIndexForward=False),
    selects("s1 = :a", *"123456"),
    selects("s1 > :a", "7", "8"),
    selects("s1 >= :b", "8"),
    selects("s1 < :b", *"1234567"),
    selects("begins_with(s1, :a)", *"1234567"),
    selects("s1 BETWEEN :a AND :a", *"123456"),
    selects("s1 = :a AND s2 = :2", *"345"),
    selects("s1 = :a AND s2 > :1", *"3456"),
    selects("s1 = :a AND s2 <= :1", *"12"),
    selects("s1 = :a AND s2 BETWEEN :1 AND :2", *"2345"),
    selects("s1 = :a AND s2 = :2 AND s3 = :x", "3"),
    selects("s1 = :a AND s2 = :2 AND s3 < :y", "3", "4"),
    selects("s1 = :a AND s2 = :2 AND s3 >= :y", "5"),
    selects("s1 = :a AND s2 = :2 AND begins_with(s3, :y)", "5"),
    selects("s1 = :a AND s2 > :1", *"6543", ScanIndexForward=False),
    case(
        "conditions may be in any order",
        *FILL,
        query(ids("3", "4", "5"), "s2 = :2 AND p2 = :q AND s1 = :a AND p1 = :p"),
        tables="Multi",
    ),
    case(
        "a number part is found in any spelling",
        *FILL,
        Step(
            "Query",
            {
                "TableName": "Multi",
                "IndexName": "multi",
                "KeyConditionExpression": f"{BOTH} AND s1 = :a AND s2 = :n",
                "ExpressionAttributeValues": {
                    ":p": {"S": "p"},
                    ":q": {"N": "0.7e1"},
                    ":a": {"S": "a"},
                    ":n": {"N": "10.0"},
                },
            },
            ids("6"),
        ),
        tables="Multi",
    ),
    case(
        "parts are compared one by one, not joined",
        put(entry("1", "c", p1={"S": "ab"})),
        put(entry("2", "bc", p1={"S": "a"})),
        Step(
            "Query",
            {
                "TableName": "Multi",
                "IndexName": "multi",
                "KeyConditionExpression": "p1 = :p AND p2 = :q",
                "ExpressionAttributeValues": {":p": {"S": "ab"}, ":q": {"N": "7"}},
            },
            ids("1"),
        ),
        tables="Multi",
    ),
    case(
        "a sort part that is a prefix of another comes first, whatever follows it",
        put(entry("1", "a", "9")),
        put(entry("2", "a\x01", "1")),
        put(entry("3", "a ", "5")),
        query(ids("1", "2", "3")),
        tables="Multi",
    ),
]

P1, P2, S1 = ("p1", "=", ":p"), ("p2", "=", ":q"), ("s1", "=", ":a")
KEY_CONDITIONS = [
    case("KeyConditions on both partition parts", *FILL, legacy(ids(*"12345678"), P2, P1), tables="Multi"),
    case("KeyConditions on a sort part", *FILL, legacy(ids(*"123456"), P1, P2, S1), tables="Multi"),
    case(
        "KeyConditions on two sort parts, the last a range",
        *FILL,
        legacy(ids(*"23456"), P1, P2, S1, ("s2", ">=", ":1")),
        tables="Multi",
    ),
    case(
        "KeyConditions on every part",
        *FILL,
        legacy(ids("3"), ("s3", "=", ":x"), P1, P2, S1, ("s2", "=", ":2")),
        tables="Multi",
    ),
    case(
        "KeyConditions must not leave a sort part out",
        legacy(
            invalid(
                "RANGE key attributes s1 must have equality conditions specified in the query because a "
                "condition is present on key attribute s2"
            ),
            P1,
            P2,
            ("s2", "=", ":1"),
        ),
        tables="Multi",
    ),
    case(
        "KeyConditions take no attribute that is not part of the key",
        legacy(invalid("Query key condition not supported"), P1, P2, S1, index="pair"),
        tables="Multi",
    ),
]

EQUAL = "HASH key attributes {} must have equality conditions specified in the query"
LEFT = (
    "RANGE key attributes {} must have equality conditions specified in the query because a condition is present on "
    "key attribute {}"
)


def refused(name: str, where: str, text: str, index: str = "multi", *, local: str = "", **more: Any) -> Case:
    return case(name, query(invalid(text), where, index, **more), tables="Multi", local=local)


REFUSALS = [
    refused("the second partition part is required", "p1 = :p", EQUAL.format("p2")),
    refused("the first partition part is required", "p2 = :q", EQUAL.format("p1")),
    refused("a partition part takes no comparison", "p1 = :p AND p2 > :q", EQUAL.format("p2")),
    refused("a partition part takes no BETWEEN", "p1 = :p AND p2 BETWEEN :1 AND :q", EQUAL.format("p2")),
    refused("a partition part takes no begins_with", "begins_with(p1, :p) AND p2 = :q", EQUAL.format("p1")),
    refused("the first sort part may not be left out", f"{BOTH} AND s2 = :2", LEFT.format("s1", "s2")),
    refused(
        "a middle sort part may not be left out", f"{BOTH} AND s1 = :a AND s3 = :x", LEFT.format("s2", "s3")
    ),
    *(
        refused(
            f"{clause} must be the last condition",
            f"{BOTH} AND {clause} AND s2 = :2",
            LEFT.format("s1", "s2"),
        )
        for clause in ("s1 > :a", "s1 <= :a", "begins_with(s1, :a)", "s1 BETWEEN :a AND :b")
    ),
    refused("two comparisons are one too many", f"{BOTH} AND s1 > :a AND s2 > :2", LEFT.format("s1", "s2")),
    refused(
        "a comparison in the middle is rejected",
        f"{BOTH} AND s1 = :a AND s2 > :2 AND s3 = :x",
        LEFT.format("s2", "s3"),
    ),
    refused(
        "an unrelated attribute is not supported",
        f"{BOTH} AND s1 = :a AND s2 = :2 AND s3 = :x AND v = :a",
        "Query key condition not supported",
    ),
    refused(
        "an index without sort parts takes no more",
        f"{BOTH} AND s1 = :a",
        "Query key condition not supported",
        "pair",
    ),
    refused(
        "two conditions on one part are rejected",
        f"{BOTH} AND s1 > :a AND s1 < :b",
        "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
        local="does not name the expression",
    ),
    refused("OR is rejected", f"{BOTH} OR s1 = :a", "Invalid operator used in KeyConditionExpression: OR"),
    *(
        refused(
            f"a wrong type is rejected: {clause}",
            clause,
            "One or more parameter values were invalid: Condition parameter type does not match schema type",
        )
        for clause in ("p1 = :p AND p2 = :p", f"{BOTH} AND s1 = :2", f"{BOTH} AND s1 = :a AND s2 > :a")
    ),
    *(
        refused(
            f"a filter may not name the part {part}",
            BOTH,
            f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {part}",
            FilterExpression=f"attribute_exists({part})",
        )
        for part in ("p1", "p2", "s1", "s3")
    ),
    refused(
        "a consistent read is rejected",
        BOTH,
        "Consistent reads are not supported on global secondary indexes",
        ConsistentRead=True,
    ),
    refused(
        "attributes that are not projected cannot be asked for",
        BOTH,
        "One or more parameter values were invalid: Global secondary index pair does not project [v]",
        "pair",
        ProjectionExpression="v",
    ),
]

ONE = entry("1", v={"S": "v"})
SPARSE = [
    *(
        case(
            f"an item without {part} is not in the index",
            put(without(ONE, part)),
            Step("Scan", {"TableName": "Multi", "IndexName": "multi"}, found()),
            tables="Multi",
        )
        for part in ("p1", "p2", "s1", "s2", "s3")
    ),
    case(
        "an item is in each index whose parts it has",
        put(without(ONE, "s2")),
        query(found()),
        query(found({name: ONE[name] for name in ("id", "p1", "p2")}), index="pair"),
        tables="Multi",
    ),
    case(
        "an item enters the index with its last part",
        put(without(ONE, "s2")),
        Step(
            "UpdateItem",
            {
                "TableName": "Multi",
                "Key": {"id": {"S": "1"}},
                "UpdateExpression": "SET s2 = :n",
                "ExpressionAttributeValues": {":n": {"N": "1"}},
            },
        ),
        query(found(ONE)),
        tables="Multi",
    ),
    case(
        "an item leaves the index when a part is removed",
        put(ONE),
        Step(
            "UpdateItem", {"TableName": "Multi", "Key": {"id": {"S": "1"}}, "UpdateExpression": "REMOVE p2"}
        ),
        query(found()),
        query(found(), index="pair"),
        tables="Multi",
    ),
    case(
        "an item moves when a middle part changes",
        put(entry("1", s2="1")),
        put(entry("2", s2="2")),
        put(entry("1", s2="3")),
        query(ids("2", "1")),
        tables="Multi",
    ),
    case(
        "a keys only index gives the parts and the table's key",
        put(ONE),
        query(found({name: ONE[name] for name in ("id", "p1", "p2")}), index="pair"),
        tables="Multi",
    ),
    case(
        "a filter may name the table's key",
        put(ONE),
        query(found(ONE), FilterExpression="attribute_exists(id)"),
        tables="Multi",
    ),
    *(
        case(
            f"a put rejects {tag} for the part {part}",
            put(
                {"id": {"S": "1"}, part: {tag: value}},
                invalid(
                    "One or more parameter values were invalid: Type mismatch for Index Key "
                    f"{part} Expected: {expected} Actual: {tag} IndexName: multi"
                ),
            ),
            tables="Multi",
            local="does not name the key, the types and the index",
        )
        for part, expected, tag, value in (
            ("s1", "S", "N", "1"),
            ("s2", "N", "S", "1"),
            ("s3", "B", "S", "AQ=="),
        )
    ),
    *(
        case(
            f"a put rejects an empty {kind} for the part {part}, even if others are missing",
            put(
                {"id": {"S": "1"}, part: {tag: ""}},
                invalid(
                    "One or more parameter values are not valid. A value specified for a secondary index key is not "
                    f"supported. The AttributeValue for a key attribute cannot contain an empty {kind} value. "
                    f"IndexName: multi, IndexKey: {part}"
                ),
            ),
            tables="Multi",
        )
        for part, tag, kind in (("s1", "S", "string"), ("s3", "B", "binary"))
    ),
]

TWO = entry("2", "t")
PAGES = [
    case(
        "the last key holds every part and the table's key",
        put(ONE),
        put(TWO),
        query({**found(ONE), "LastEvaluatedKey": without(ONE, "v")}, Limit=1),
        query(found(TWO), ExclusiveStartKey=without(ONE, "v")),
        tables="Multi",
    ),
    case(
        "pages go backward",
        put(ONE),
        put(TWO),
        query({**found(TWO), "LastEvaluatedKey": TWO}, Limit=1, ScanIndexForward=False),
        query(found(ONE), ExclusiveStartKey=TWO, ScanIndexForward=False),
        tables="Multi",
    ),
    *(
        case(
            f"a starting key without {part} is rejected",
            query(invalid("The provided starting key is invalid"), ExclusiveStartKey=without(TWO, part)),
            tables="Multi",
        )
        for part in ("p2", "s2", "id")
    ),
    case(
        "a starting key of another partition is outside",
        query(
            invalid("The provided starting key is outside query boundaries based on provided conditions"),
            ExclusiveStartKey=TWO | {"p2": {"N": "8"}},
        ),
        tables="Multi",
        local="has a different text for starting keys",
    ),
]


def create(*keys: str, defined: str | None = None) -> Json:
    """A CreateTable request with one index; `keys` read `name:HASH` or `name:RANGE`."""
    schema = [
        {"AttributeName": name, "KeyType": kind} for name, _, kind in (key.partition(":") for key in keys)
    ]
    names = list(
        defined if defined is not None else dict.fromkeys(str(part["AttributeName"]) for part in schema)
    )
    return {
        "TableName": "Fresh",
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in dict.fromkeys(["id", *names])
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": "wide", "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
        ],
    }


def created(name: str, *keys: str) -> Case:
    request = create(*keys)

    def check(reply: Json) -> None:
        (index,) = reply["Table"]["GlobalSecondaryIndexes"]
        assert index["KeySchema"] == request["GlobalSecondaryIndexes"][0]["KeySchema"], index

    return case(
        name,
        Step("CreateTable", request),
        Step("DescribeTable", {"TableName": "Fresh"}, check),
        Step("DeleteTable", {"TableName": "Fresh"}),
    )


def hashes(names: str) -> list[str]:
    return [f"{name}:HASH" for name in names]


def ranges(names: str) -> list[str]:
    return [f"{name}:RANGE" for name in names]


def not_created(name: str, text: str | None, *keys: str, defined: str | None = None, local: str = "") -> Case:
    return case(
        name,
        Step("CreateTable", create(*keys, defined=defined), Fails("ValidationException", text)),
        local=local,
    )


TOO_MANY = (
    "One or more parameter values were invalid: "
    "The KeySchema exceeds the maximum allowed number of {} key attributes"
)
OWN_WORDS = "has a different text"
CREATION = [
    created("an index may have two partition parts", *hashes("ab")),
    created("an index may have four and four parts", *hashes("abcd"), *ranges("efgh")),
    created("an index may have one partition part and four sort parts", "a:HASH", *ranges("efgh")),
    created("an index may use the table's key as a part", "id:HASH", "a:HASH", "b:RANGE"),
    not_created(
        "five partition parts are too many",
        TOO_MANY.format("HASH"),
        *hashes("abcde"),
        local=OWN_WORDS,
    ),
    not_created(
        "five sort parts are too many",
        TOO_MANY.format("RANGE"),
        "a:HASH",
        *ranges("efghi"),
        local=OWN_WORDS,
    ),
    not_created(
        "a sort part may not come first",
        "Invalid KeySchema: The first KeySchemaElement is not a HASH key type",
        "a:RANGE",
        "b:HASH",
        local="has a different text",
    ),
    not_created("a partition part may not follow a sort part", None, "a:HASH", "b:RANGE", "c:HASH"),
    not_created("sort parts alone are not a key", None, *ranges("ab")),
    not_created("a partition part may not appear twice", None, "a:HASH", "a:HASH"),
    not_created("a part may not be both partition and sort", None, "a:HASH", "b:HASH", "a:RANGE"),
    not_created("each part needs a definition", None, *hashes("ab"), defined="a"),
    not_created("a definition that no key uses is rejected", None, *hashes("ab"), defined="abc"),
    case(
        "a table may not have two partition attributes",
        Step(
            "CreateTable",
            {
                "TableName": "Fresh",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": name, "KeyType": "HASH"} for name in "ab"],
                "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "ab"],
            },
            Fails("ValidationException"),
        ),
    ),
    case(
        "a local index may not have two sort attributes",
        Step(
            "CreateTable",
            {
                "TableName": "Fresh",
                "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [
                    {"AttributeName": "a", "KeyType": "HASH"},
                    {"AttributeName": "b", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "abc"],
                "LocalSecondaryIndexes": [
                    {
                        "IndexName": "wide",
                        "KeySchema": [
                            {"AttributeName": name, "KeyType": kind}
                            for name, kind in (("a", "HASH"), ("b", "RANGE"), ("c", "RANGE"))
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
            },
            Fails("ValidationException"),
        ),
    ),
]

CASES: list[Case] = [*SELECTIONS, *KEY_CONDITIONS, *REFUSALS, *SPARSE, *PAGES, *CREATION]
