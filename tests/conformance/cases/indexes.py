"""Secondary indexes: what they hold, in which order, what may be asked of them, and what a write rejects."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..harness import Case, Json, Step, case, invalid

S: Json = {"S": "s"}


def put(item: Json, expect: Any = None, table: str = "Indexed") -> Step:
    return Step("PutItem", {"TableName": table, "Item": item}, expect)


def row(partition: str, sort: str, **attributes: Json) -> Json:
    return {"pk": {"S": partition}, "sk": {"S": sort}, **attributes}


def query(index: str, expect: Any, where: str = "gp = :p", values: Json | None = None, **more: Any) -> Step:
    request = {
        "TableName": "Indexed",
        "IndexName": index,
        "KeyConditionExpression": where,
        "ExpressionAttributeValues": {":p": {"S": "p"}} | (values or {}),
        **more,
    }
    return Step("Query", request, expect)


def scan(index: str, expect: Any, table: str = "Indexed", **more: Any) -> Step:
    return Step("Scan", {"TableName": table, "IndexName": index, **more}, expect)


def found(*items: Json, scanned: int | None = None) -> Json:
    return {
        "Items": list(items),
        "Count": len(items),
        "ScannedCount": len(items) if scanned is None else scanned,
    }


def some(*items: Json) -> Callable[[Json], None]:
    """These items in any order."""

    def check(reply: Json) -> None:
        got, wanted = (
            sorted(json.dumps(item, sort_keys=True) for item in list_) for list_ in (reply["Items"], items)
        )
        assert got == wanted, reply

    return check


def only(item: Json, *names: str) -> Json:
    return {name: item[name] for name in names}


FULL = row("p", "1", gp={"S": "p"}, gs={"N": "3"}, gb={"B": "AQ=="}, ls=S, ln={"N": "9"}, x=S, y=S, z=S)
HOME: Json = {"where": "pk = :p"}

#: index, where its partition is, what a query of FULL gives
PROJECTIONS = [
    ("gall", "gp = :p", FULL),
    ("gkeys", "gp = :p", only(FULL, "pk", "sk", "gp")),
    ("ginc", "gp = :p", only(FULL, "pk", "sk", "gp", "x", "y")),
    ("gbin", "gp = :p", FULL),
    ("lall", "pk = :p", FULL),
    ("lkeys", "pk = :p", only(FULL, "pk", "sk", "ln")),
    ("linc", "pk = :p", only(FULL, "pk", "sk", "ls", "x")),
]
CONTENTS = [
    *(
        case(
            f"a query of {index} gives what it projects",
            put(FULL),
            query(index, found(item), where),
            tables="Indexed",
        )
        for index, where, item in PROJECTIONS
    ),
    *(
        case(
            f"a scan of {index} gives what it projects", put(FULL), scan(index, found(item)), tables="Indexed"
        )
        for index, _, item in PROJECTIONS
    ),
    case(
        "a global index gathers items of many partitions",
        *(put(row(pk, "1", gp={"S": "p"}, gs={"N": gs})) for pk, gs in (("c", "1"), ("a", "2"), ("b", "3"))),
        query(
            "gall",
            found(
                *(
                    row(pk, "1", gp={"S": "p"}, gs={"N": gs})
                    for pk, gs in (("c", "1"), ("a", "2"), ("b", "3"))
                )
            ),
        ),
        tables="Indexed",
    ),
    case(
        "a global index may hold equal keys",
        *(put(row(pk, "1", gp={"S": "p"}, gs={"N": "1"})) for pk in "abc"),
        query("gall", some(*(row(pk, "1", gp={"S": "p"}, gs={"N": "1"}) for pk in "abc"))),
        tables="Indexed",
    ),
    case(
        "a local index holds one partition's items in its own order",
        put(row("p", "1", ls={"S": "z"})),
        put(row("p", "2", ls={"S": "a"})),
        put(row("q", "3", ls={"S": "b"})),
        query("lall", found(row("p", "2", ls={"S": "a"}), row("p", "1", ls={"S": "z"})), **HOME),
        tables="Indexed",
    ),
    case(
        "a local index may hold equal keys",
        *(put(row("p", sort, ls=S)) for sort in ("c", "a", "b")),
        query("lall", some(*(row("p", sort, ls=S) for sort in "abc")), **HOME),
        query("lall", some(*(row("p", sort, ls=S) for sort in "abc")), ScanIndexForward=False, **HOME),
        tables="Indexed",
    ),
    case(
        "the table's sort key may be the sort key of a global index",
        *(put(row(pk, sk, gp={"S": "p"})) for pk, sk in (("a", "3"), ("b", "1"), ("c", "2"))),
        query(
            "ginc", found(*(row(pk, sk, gp={"S": "p"}) for pk, sk in (("b", "1"), ("c", "2"), ("a", "3"))))
        ),
        tables="Indexed",
    ),
]


def ordered(index: str, key: str, tag: str, values: list[str], where: str) -> list[Case]:
    items = [row("p", str(place), gp={"S": "p"}, **{key: {tag: value}}) for place, value in enumerate(values)]
    shown = [only(item, "pk", "sk", key) for item in items] if index == "lkeys" else items
    return [
        case(
            f"{index} sorts its {tag} key {way}",
            *(put(item) for item in reversed(items)),
            query(index, found(*(shown if forward else reversed(shown))), where, ScanIndexForward=forward),
            tables="Indexed",
        )
        for way, forward in (("forward", True), ("backward", False))
    ]


def ranged(index: str, clause: str, operand: Json, *expected: str, where: str = "gp = :p") -> Case:
    """A range on an index key; items are reported apart by their sort key."""
    items = [
        row(
            "p",
            str(place),
            gp={"S": "p"},
            gs={"N": number},
            gb={"B": octets},
            ls={"S": text},
            ln={"N": number},
        )
        for place, (number, octets, text) in enumerate(
            (("-5", "AA==", "a"), ("4", "fw==", "ab"), ("10", "gA==", "b"))
        )
    ]

    def check(reply: Json) -> None:
        assert [item["sk"]["S"] for item in reply["Items"]] == list(expected), reply

    return case(
        f"{clause} with {operand} on {index} gives {list(expected)}",
        *(put(item) for item in items),
        query(index, check, f"{where} AND {clause}", {":v": operand}),
        tables="Indexed",
    )


ORDERS = [
    *ordered("gall", "gs", "N", ["-10", "-2", "0", "3", "20"], "gp = :p"),
    *ordered("gbin", "gb", "B", ["AA==", "AQ==", "fw==", "gA==", "/w=="], "gp = :p"),
    *ordered("lall", "ls", "S", ["1", "10", "2", "Z", "a", "é"], "pk = :p"),
    *ordered("lkeys", "ln", "N", ["-1", "2", "10"], "pk = :p"),
    ranged("gall", "gs > :v", {"N": "-5.0"}, "1", "2"),
    ranged("gall", "gs <= :v", {"N": "4"}, "0", "1"),
    ranged("gall", "gs BETWEEN :v AND :v", {"N": "1e1"}, "2"),
    ranged("gbin", "gb >= :v", {"B": "gA=="}, "2"),
    ranged("gbin", "begins_with(gb, :v)", {"B": "fw=="}, "1"),
    ranged("lall", "begins_with(ls, :v)", {"S": "a"}, "0", "1", where="pk = :p"),
    ranged("lall", "ls = :v", {"S": "ab"}, "1", where="pk = :p"),
    ranged("lkeys", "ln < :v", {"N": "5"}, "0", "1", where="pk = :p"),
]

SPARSE = [
    case(
        "an item without the partition key of an index is not in it",
        put(row("p", "1", gs={"N": "1"})),
        scan("gall", found()),
        tables="Indexed",
    ),
    case(
        "an item without the sort key of an index is not in it",
        put(row("p", "1", gp={"S": "p"})),
        scan("gall", found()),
        scan("gkeys", found(row("p", "1", gp={"S": "p"}))),
        tables="Indexed",
    ),
    case(
        "an item without the key of a local index is not in it",
        put(row("p", "1")),
        query("lall", found(), **HOME),
        tables="Indexed",
    ),
    case(
        "an item enters an index when it gets the key",
        put(row("p", "1", gp={"S": "p"})),
        Step(
            "UpdateItem",
            {
                "TableName": "Indexed",
                "Key": row("p", "1"),
                "UpdateExpression": "SET gs = :n",
                "ExpressionAttributeValues": {":n": {"N": "1"}},
            },
        ),
        query("gall", found(row("p", "1", gp={"S": "p"}, gs={"N": "1"}))),
        tables="Indexed",
    ),
    case(
        "an item leaves an index when it loses the key",
        put(FULL),
        Step("UpdateItem", {"TableName": "Indexed", "Key": row("p", "1"), "UpdateExpression": "REMOVE gs"}),
        query("gall", found()),
        query("gkeys", found(only(FULL, "pk", "sk", "gp"))),
        tables="Indexed",
    ),
    case(
        "an item moves in an index when its key changes",
        put(row("p", "1", gp={"S": "p"}, gs={"N": "1"})),
        put(row("p", "2", gp={"S": "p"}, gs={"N": "2"})),
        put(row("p", "1", gp={"S": "p"}, gs={"N": "3"})),
        query(
            "gall",
            found(row("p", "2", gp={"S": "p"}, gs={"N": "2"}), row("p", "1", gp={"S": "p"}, gs={"N": "3"})),
        ),
        tables="Indexed",
    ),
    case(
        "a deleted item leaves its indexes",
        put(FULL),
        Step("DeleteItem", {"TableName": "Indexed", "Key": row("p", "1")}),
        query("gall", found()),
        query("lkeys", found(), **HOME),
        tables="Indexed",
    ),
    case(
        "an index follows a change of a projected attribute",
        put(FULL),
        put(FULL | {"x": {"S": "new"}}),
        query("ginc", found(only(FULL, "pk", "sk", "gp", "y") | {"x": {"S": "new"}})),
        query("linc", found(only(FULL, "pk", "sk", "ls") | {"x": {"S": "new"}}), **HOME),
        tables="Indexed",
    ),
    case(
        "a projected attribute that is missing is just missing",
        put(row("p", "1", gp={"S": "p"}, y=S)),
        query("ginc", found(row("p", "1", gp={"S": "p"}, y=S))),
        tables="Indexed",
    ),
]

WRONG = "One or more parameter values were invalid: "
EMPTY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is not supported. "
    "The AttributeValue for a key attribute cannot contain an empty {} value. IndexName: {}, IndexKey: {}"
)
SHORT = "does not name the key, the types and the index"


def mistyped(key: str, expected: str, index: str, value: Json) -> Case:
    (actual,) = value
    return case(
        f"a put rejects {actual} for the {expected} key of {index}",
        put(
            row("p", "1", **{key: value}),
            invalid(
                f"{WRONG}Type mismatch for Index Key {key} Expected: {expected} Actual: {actual} IndexName: {index}"
            ),
            "Lone",
        ),
        Step("GetItem", {"TableName": "Lone", "Key": row("p", "1")}, {}),
        tables="Lone",
        local=SHORT,
    )


def update(value: Json, expect: Any) -> Step:
    return Step(
        "UpdateItem",
        {
            "TableName": "Lone",
            "Key": row("p", "1"),
            "UpdateExpression": "SET g = :v",
            "ExpressionAttributeValues": {":v": value},
        },
        expect,
    )


MISTYPED: list[Json] = [
    {"N": "1"},
    {"B": "AQ=="},
    {"NULL": True},
    {"BOOL": True},
    {"SS": ["a"]},
    {"L": []},
    {"M": {}},
]
WRITES = [
    *(mistyped("g", "S", "byg", value) for value in MISTYPED),
    mistyped("n", "N", "byn", {"S": "1"}),
    mistyped("n", "N", "byn", {"NULL": True}),
    case(
        "a put rejects an empty string as key of an index",
        put(row("p", "1", g={"S": ""}), invalid(EMPTY.format("string", "byg", "g")), "Lone"),
        tables="Lone",
    ),
    case(
        "an update rejects a wrong type that it works out for the key of a local index",
        put(row("p", "1", x={"S": "1"}), table="Lone"),
        Step(
            "UpdateItem",
            {
                "TableName": "Lone",
                "Key": row("p", "1"),
                "UpdateExpression": "SET n = if_not_exists(x, :v)",
                "ExpressionAttributeValues": {":v": {"N": "1"}},
            },
            invalid("The update expression attempted to update the secondary index key to unsupported type"),
        ),
        tables="Lone",
        local="accepts any type",
    ),
    case(
        "an update rejects to DELETE a set from the key of an index, whether or not it is there",
        Step(
            "UpdateItem",
            {
                "TableName": "Lone",
                "Key": row("p", "1"),
                "UpdateExpression": "DELETE g :v",
                "ExpressionAttributeValues": {":v": {"SS": ["a"]}},
            },
            invalid(f"{WRONG}Type mismatch for Index Key g Expected: S Actual: SS IndexName: byg"),
        ),
        tables="Lone",
        local="rejects it only if the attribute exists",
    ),
    case(
        "an update rejects a wrong type for the key of an index",
        update(
            {"N": "1"},
            invalid(
                "One or more parameter values were invalid: Type mismatch for Index Key g "
                "Expected: S Actual: N IndexName: byg"
            ),
        ),
        tables="Lone",
        local="omits the attribute and the index",
    ),
    case(
        "an update rejects NULL for the key of an index",
        update(
            {"NULL": True},
            invalid(
                "One or more parameter values were invalid: Type mismatch for Index Key g "
                "Expected: S Actual: NULL IndexName: byg"
            ),
        ),
        tables="Lone",
        local="has a different text",
    ),
    case(
        "an update rejects an empty string as key of an index",
        update(
            {"S": ""},
            invalid(
                "One or more parameter values are not valid. The update expression attempted to update a secondary index "
                "key to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty "
                "string value."
            ),
        ),
        tables="Lone",
    ),
    case(
        "a batch rejects a wrong type for the key of an index",
        Step(
            "BatchWriteItem",
            {"RequestItems": {"Lone": [{"PutRequest": {"Item": row("p", "1", g={"N": "1"})}}]}},
            invalid(f"{WRONG}Type mismatch for Index Key g Expected: S Actual: N IndexName: byg"),
        ),
        tables="Lone",
        local=SHORT,
    ),
    case(
        "a batch rejects an empty string as key of an index",
        Step(
            "BatchWriteItem",
            {"RequestItems": {"Lone": [{"PutRequest": {"Item": row("p", "1", g={"S": ""})}}]}},
            invalid(EMPTY.format("string", "byg", "g")),
        ),
        tables="Lone",
    ),
]

NOT_PROJECTED = "One or more parameter values were invalid: Global secondary index {} does not project [{}]"
NOT_FILTERED = "One or more parameter values were invalid: Secondary index {} does not project one or more filter attributes: [{}]"
CONSISTENT = "Consistent reads are not supported on global secondary indexes"
ASKS = [
    case(
        "a global index does not give attributes that it does not project",
        query("gkeys", invalid(NOT_PROJECTED.format("gkeys", "x")), ProjectionExpression="x"),
        tables="Indexed",
    ),
    case(
        "the error names only the attribute that is not projected",
        query("ginc", invalid(NOT_PROJECTED.format("ginc", "z")), ProjectionExpression="pk, x, z.a"),
        tables="Indexed",
    ),
    case(
        "a scan of a global index does not give attributes that it does not project",
        scan("gkeys", invalid(NOT_PROJECTED.format("gkeys", "x")), ProjectionExpression="x"),
        tables="Indexed",
    ),
    case(
        "a global index gives projected attributes, keys of the table among them",
        put(FULL),
        query("ginc", found(only(FULL, "pk", "x")), ProjectionExpression="pk, x"),
        tables="Indexed",
    ),
    case(
        "a local index fetches attributes that it does not project",
        put(FULL),
        query("lkeys", found(only(FULL, "z", "gp")), ProjectionExpression="z, gp", **HOME),
        tables="Indexed",
    ),
    case(
        "a local index fetches whole items",
        put(FULL),
        query("linc", found(FULL), Select="ALL_ATTRIBUTES", **HOME),
        tables="Indexed",
    ),
    case(
        "a scan of a local index fetches whole items",
        put(FULL),
        scan("lkeys", found(FULL), Select="ALL_ATTRIBUTES"),
        tables="Indexed",
    ),
    case(
        "a filter on a global index needs projected attributes",
        query("gkeys", invalid(NOT_FILTERED.format("gkeys", "x")), FilterExpression="x = :p"),
        tables="Indexed",
    ),
    case(
        "a filter on a local index needs projected attributes",
        query("linc", invalid(NOT_FILTERED.format("linc", "z")), FilterExpression="z = :p", **HOME),
        tables="Indexed",
    ),
    case(
        "a filter on a local index needs projected attributes, even where whole items are fetched",
        query(
            "lkeys",
            invalid(NOT_FILTERED.format("lkeys", "z")),
            Select="ALL_ATTRIBUTES",
            FilterExpression="z = :p",
            **HOME,
        ),
        tables="Indexed",
    ),
    *(
        case(
            f"to the filter of a scan, what {index} does not project is missing",
            put(FULL),
            scan(index, found(scanned=1), FilterExpression="attribute_exists(z)"),
            scan(index, {"Count": 1, "ScannedCount": 1}, FilterExpression="NOT z = pk", Select="COUNT"),
            tables="Indexed",
            local="applies the filter to the table's items",
        )
        for index in ("gkeys", "ginc", "lkeys", "linc")
    ),
    case(
        "a filter on an index may name the table's keys",
        put(FULL),
        query("gkeys", found(only(FULL, "pk", "sk", "gp")), FilterExpression="pk = :p"),
        query("gkeys", found(scanned=1), FilterExpression="sk = :p"),
        tables="Indexed",
    ),
    *(
        case(
            f"a filter on {index} may not name its key {key}",
            query(
                index,
                invalid(
                    f"Filter Expression can only contain non-primary key attributes: Primary key attribute: {key}"
                ),
                where,
                FilterExpression=f"attribute_exists({key})",
            ),
            tables="Indexed",
        )
        for index, where, key in (
            ("gall", "gp = :p", "gp"),
            ("gall", "gp = :p", "gs"),
            ("lall", "pk = :p", "ls"),
        )
    ),
    case(
        "a consistent query of a global index is rejected",
        query("gall", invalid(CONSISTENT), ConsistentRead=True),
        tables="Indexed",
    ),
    case(
        "a consistent scan of a global index is rejected",
        scan("gall", invalid(CONSISTENT), ConsistentRead=True),
        tables="Indexed",
    ),
    case(
        "a consistent query of a local index is fine",
        put(FULL),
        query("lall", found(FULL), ConsistentRead=True, **HOME),
        tables="Indexed",
    ),
    case(
        "a consistent scan of a local index is fine",
        put(FULL),
        scan("lall", found(FULL), ConsistentRead=True),
        tables="Indexed",
    ),
    case(
        "a consistent read of a global index is reported before a wrong starting key",
        query("gall", invalid(CONSISTENT), ConsistentRead=True, ExclusiveStartKey={}),
        tables="Indexed",
    ),
    *(
        case(
            f"a query of {index} must know {missed}",
            query(index, invalid(f"Query condition missed key schema element: {missed}"), where),
            tables="Indexed",
            local="does not name the key element",
        )
        for index, where, missed in (
            ("gall", "pk = :p", "gp"),
            ("gall", "gp = :p AND sk = :p", "gs"),
            ("lall", "ls = :p", "pk"),
            ("lall", "pk = :p AND sk = :p", "ls"),
        )
    ),
    case(
        "an index without sort key takes one condition",
        query("gkeys", invalid("Query key condition not supported"), "gp = :p AND sk = :p"),
        tables="Indexed",
    ),
    case(
        "an index key condition must have the key's type",
        query(
            "gall",
            invalid(
                "One or more parameter values were invalid: Condition parameter type does not match schema type"
            ),
            "gp = :p AND gs = :p",
        ),
        tables="Indexed",
    ),
]


def add_index(expect: Any = None) -> Step:
    return Step(
        "UpdateTable",
        {
            "TableName": "Hash",
            "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
            "GlobalSecondaryIndexUpdates": [
                {
                    "Create": {
                        "IndexName": "later",
                        "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        },
        expect,
    )


#: What an item may have under g before there is an index on g.
UNFIT: list[Json] = [{"N": "1"}, {"NULL": True}, {"S": ""}, {"L": []}]
BACKFILL = [
    case(
        "a new index takes the items that fit",
        put({"pk": {"S": "a"}, "g": S}, table="Hash"),
        put({"pk": {"S": "b"}}, table="Hash"),
        add_index(),
        scan("later", found({"pk": {"S": "a"}, "g": S}), "Hash"),
        tables="Hash",
        local="builds the index in the background",
    ),
    *(
        case(
            f"a new index passes over {unfit}",
            put({"pk": {"S": "a"}, "g": unfit}, table="Hash"),
            put({"pk": {"S": "b"}, "g": S}, table="Hash"),
            add_index(),
            scan("later", found({"pk": {"S": "b"}, "g": S}), "Hash"),
            Step(
                "GetItem",
                {"TableName": "Hash", "Key": {"pk": {"S": "a"}}},
                {"Item": {"pk": {"S": "a"}, "g": unfit}},
            ),
            tables="Hash",
            local="includes an item with a wrong key type, or never finishes the index",
        )
        for unfit in UNFIT
    ),
    case(
        "a new index holds later writes to its type",
        add_index(),
        put(
            {"pk": {"S": "a"}, "g": {"N": "1"}},
            invalid(f"{WRONG}Type mismatch for Index Key g Expected: S Actual: N IndexName: later"),
            "Hash",
        ),
        tables="Hash",
        local=SHORT,
    ),
]

CASES: list[Case] = [*CONTENTS, *ORDERS, *SPARSE, *WRITES, *ASKS, *BACKFILL]
