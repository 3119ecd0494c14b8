"""ConsumedCapacity of reads over many items, and of writes that indexes follow."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Json, Step, case

KB = 1024


def put(table: str, item: Json, expect: Any = None, **more: Any) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item, **more}, expect)


def query(
    expect: Any, table: str = "Pair", where: str = "pk = :p", values: Json | None = None, **more: Any
) -> Step:
    request = {
        "TableName": table,
        "KeyConditionExpression": where,
        "ExpressionAttributeValues": {":p": {"S": "p"}} | (values or {}),
        "ReturnConsumedCapacity": "TOTAL",
        **more,
    }
    return Step("Query", request, expect)


def scan(expect: Any, table: str = "Pair", **more: Any) -> Step:
    return Step("Scan", {"TableName": table, "ReturnConsumedCapacity": "TOTAL", **more}, expect)


def units(table: str, total: float, **parts: Any) -> Json:
    """What ConsumedCapacity must be; `of_table`, `local` and `world` are the parts that INDEXES adds."""
    capacity: Json = {"TableName": table, "CapacityUnits": total}
    if "of_table" in parts:
        capacity["Table"] = {"CapacityUnits": parts["of_table"]}
    for part, member in (("local", "LocalSecondaryIndexes"), ("world", "GlobalSecondaryIndexes")):
        if part in parts:
            capacity[member] = {name: {"CapacityUnits": value} for name, value in parts[part].items()}
    return capacity


def costs(table: str, total: float, **parts: Any) -> Any:
    """The reply's ConsumedCapacity is exactly this, whatever else the reply holds."""
    expected = units(table, total, **parts)

    def check(reply: Json) -> None:
        assert reply["ConsumedCapacity"] == expected, reply["ConsumedCapacity"]

    return check


def row(sort: str, size: int = 0, **attributes: Json) -> Json:
    """An item of `size` bytes, names included, plus `attributes`; 0: as small as it gets."""
    item: Json = {"pk": {"S": "p"}, "sk": {"S": sort}, **attributes}
    return item | ({"v": {"S": "x" * (size - 7)}} if size else {})


EXACT = [put("Pair", row("1", 2 * KB)), put("Pair", row("2", 2 * KB))]
OVER = [put("Pair", row("1", 2 * KB)), put("Pair", row("2", 2 * KB + 1))]
THREE = [put("Pair", row(sort, 3 * KB)) for sort in ("1", "2", "3")]


def costing(name: str, fill: list[Step], *steps: Step, tables: str = "Pair", local: str = "") -> Case:
    return case(name, *fill, *steps, tables=tables, local=local)


def absent(reply: Json) -> None:
    assert "ConsumedCapacity" not in reply


MINIMUM = "charges nothing for an empty reply"
READS = [
    costing("a read costs half a unit for 4 KB", EXACT, query(costs("Pair", 0.5))),
    costing("a consistent read costs one unit for 4 KB", EXACT, query(costs("Pair", 1), ConsistentRead=True)),
    costing("one byte over 4 KB costs a second unit", OVER, query(costs("Pair", 2), ConsistentRead=True)),
    costing("sizes are added up before they are rounded", THREE, query(costs("Pair", 1.5))),
    costing(
        "consistent sizes are added up before they are rounded",
        THREE,
        query(costs("Pair", 3), ConsistentRead=True),
    ),
    costing("a scan adds up before it rounds", THREE, scan(costs("Pair", 1.5))),
    costing("a consistent scan costs double", THREE, scan(costs("Pair", 3), ConsistentRead=True)),
    costing(
        "a filter does not lower the cost",
        THREE,
        query(costs("Pair", 1.5), FilterExpression="v = :v", values={":v": {"S": "no"}}),
    ),
    costing(
        "a projection does not lower the cost", THREE, query(costs("Pair", 1.5), ProjectionExpression="sk")
    ),
    costing("COUNT does not lower the cost", THREE, query(costs("Pair", 1.5), Select="COUNT")),
    costing(
        "only the items of the key condition cost",
        THREE,
        query(costs("Pair", 1), where="pk = :p AND sk > :s", values={":s": {"S": "1"}}),
    ),
    costing("only the items of the page cost", THREE, query(costs("Pair", 0.5), Limit=1)),
    costing(
        "INDEXES names the table",
        EXACT,
        query(costs("Pair", 0.5, of_table=0.5), ReturnConsumedCapacity="INDEXES"),
    ),
    costing(
        "INDEXES of a scan names the table",
        EXACT,
        scan(costs("Pair", 0.5, of_table=0.5), ReturnConsumedCapacity="INDEXES"),
    ),
    costing("NONE gives no capacity", EXACT, query(absent, ReturnConsumedCapacity="NONE")),
    costing("the default gives no capacity", EXACT, Step("Scan", {"TableName": "Pair"}, absent)),
    costing("an empty query costs the minimum", [], query(costs("Pair", 0.5)), local=MINIMUM),
    costing(
        "an empty consistent query costs the minimum",
        [],
        query(costs("Pair", 1), ConsistentRead=True),
        local=MINIMUM,
    ),
    costing(
        "a 1 MB page costs what it read",
        [put("Pair", row(str(number), 256 * KB)) for number in range(4)],
        query(costs("Pair", 128), Select="COUNT"),
    ),
]

G: Json = {"S": "p"}
N: Json = {"N": "1"}
LONE = [put("Lone", row("1", 6 * KB, g=G, n=N))]
BY_G: Json = {"table": "Lone", "IndexName": "byg", "where": "g = :p", "ReturnConsumedCapacity": "INDEXES"}
BY_N: Json = {"table": "Lone", "IndexName": "byn", "ReturnConsumedCapacity": "INDEXES"}
INDEX_READS = [
    costing(
        "a global index bills itself, by the size of its entries",
        LONE,
        query(costs("Lone", 0.5, of_table=0, world={"byg": 0.5}), **BY_G),
        tables="Lone",
    ),
    costing(
        "a local index bills itself, by the size of its entries",
        LONE,
        query(costs("Lone", 0.5, of_table=0, local={"byn": 0.5}), **BY_N),
        tables="Lone",
    ),
    costing(
        "a consistent read of a local index costs double",
        LONE,
        query(costs("Lone", 1, of_table=0, local={"byn": 1}), ConsistentRead=True, **BY_N),
        tables="Lone",
    ),
    costing(
        "TOTAL of an index has no parts",
        LONE,
        query(costs("Lone", 0.5), **(BY_G | {"ReturnConsumedCapacity": "TOTAL"})),
        tables="Lone",
    ),
    costing(
        "a fetch from the table is billed on top of the local index",
        LONE,
        query(costs("Lone", 1.5, of_table=1, local={"byn": 0.5}), Select="ALL_ATTRIBUTES", **BY_N),
        tables="Lone",
    ),
    costing(
        "a projection that needs the table is billed for the whole item",
        LONE,
        query(costs("Lone", 1.5, of_table=1, local={"byn": 0.5}), ProjectionExpression="x", **BY_N),
        tables="Lone",
    ),
    costing(
        "a scan of a global index bills the index",
        LONE,
        scan(
            costs("Lone", 0.5, of_table=0, world={"byg": 0.5}),
            "Lone",
            IndexName="byg",
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Lone",
        local="charges a scan by the size of the table's item",
    ),
]


def writes(name: str, before: Json | None, after: Json, expect: Any) -> Case:
    """Put `before`, then put `after` and look at its cost."""
    fill = [put("Lone", before)] if before else []
    return costing(name, fill, put("Lone", after, expect, ReturnConsumedCapacity="INDEXES"), tables="Lone")


def changes(name: str, before: Json, update: str, values: Json, expect: Any) -> Case:
    request = {
        "TableName": "Lone",
        "Key": {"pk": before["pk"], "sk": before["sk"]},
        "UpdateExpression": update,
        "ReturnConsumedCapacity": "INDEXES",
    }
    request |= {"ExpressionAttributeValues": values} if values else {}
    return costing(name, [put("Lone", before)], Step("UpdateItem", request, expect), tables="Lone")


def deletes(name: str, before: Json | None, expect: Any) -> Case:
    key = {"pk": {"S": "p"}, "sk": {"S": "1"}}
    request = {"TableName": "Lone", "Key": key, "ReturnConsumedCapacity": "INDEXES"}
    return costing(
        name, [put("Lone", before)] if before else [], Step("DeleteItem", request, expect), tables="Lone"
    )


X: Json = {"S": "x"}
FULL = row("1", g=G, n=N, x=X)
LARGE: Json = {"S": "x" * (2 * KB + 500)}
V: Json = {":v": {"S": "new"}}

WRITES = [
    writes(
        "a set of texts is measured in bytes",
        None,
        row("1", a={"SS": ["é" * 300, "ü" * 300]}),
        costs("Lone", 2, of_table=2),
    ),
    writes("a put that no index takes costs the table", None, row("1"), costs("Lone", 1, of_table=1)),
    writes(
        "a put costs one more for a global index",
        None,
        row("1", g=G),
        costs("Lone", 2, of_table=1, world={"byg": 1}),
    ),
    writes(
        "a put costs one more for a local index",
        None,
        row("1", n=N),
        costs("Lone", 2, of_table=1, local={"byn": 1}),
    ),
    writes(
        "a put costs each index that takes the item",
        None,
        FULL,
        costs("Lone", 3, of_table=1, local={"byn": 1}, world={"byg": 1}),
    ),
    writes("an identical put costs only the table", FULL, FULL, costs("Lone", 1, of_table=1)),
    writes(
        "a change that no index projects costs only the table",
        FULL,
        FULL | {"y": X},
        costs("Lone", 1, of_table=1),
    ),
    writes(
        "a change of a projected attribute costs that index once",
        FULL,
        FULL | {"x": {"S": "new"}},
        costs("Lone", 2, of_table=1, world={"byg": 1}),
    ),
    writes(
        "a move in a global index costs a delete and a put",
        FULL,
        FULL | {"g": {"S": "q"}},
        costs("Lone", 3, of_table=1, world={"byg": 2}),
    ),
    writes(
        "a move in a local index costs a delete and a put",
        FULL,
        FULL | {"n": {"N": "2"}},
        costs("Lone", 3, of_table=1, local={"byn": 2}),
    ),
    writes(
        "a put that takes the item out of an index costs one delete",
        FULL,
        {name: value for name, value in FULL.items() if name != "g"},
        costs("Lone", 2, of_table=1, world={"byg": 1}),
    ),
    writes(
        "a put that brings the item into an index costs one put",
        row("1"),
        row("1", n=N),
        costs("Lone", 2, of_table=1, local={"byn": 1}),
    ),
    writes(
        "an index entry costs by its own size",
        None,
        FULL | {"y": LARGE},
        costs("Lone", 5, of_table=3, local={"byn": 1}, world={"byg": 1}),
    ),
    writes(
        "a projected attribute makes the index entry larger",
        None,
        FULL | {"x": LARGE},
        costs("Lone", 7, of_table=3, local={"byn": 1}, world={"byg": 3}),
    ),
    writes(
        "a smaller item costs what the old one was",
        FULL | {"x": LARGE},
        FULL,
        costs("Lone", 6, of_table=3, world={"byg": 3}),
    ),
    writes(
        "a move costs the old size for the delete and the new size for the put",
        FULL | {"x": LARGE},
        FULL | {"g": {"S": "q"}},
        costs("Lone", 7, of_table=3, world={"byg": 4}),
    ),
    writes(
        "a number key that only changes its spelling costs no index",
        FULL,
        FULL | {"n": {"N": "1.0"}},
        costs("Lone", 1, of_table=1),
    ),
    changes(
        "an update of an unindexed attribute costs only the table",
        FULL,
        "SET y = :v",
        V,
        costs("Lone", 1, of_table=1),
    ),
    changes(
        "an update of a projected attribute costs its index",
        FULL,
        "SET x = :v",
        V,
        costs("Lone", 2, of_table=1, world={"byg": 1}),
    ),
    changes(
        "an update of an index key costs a delete and a put",
        FULL,
        "SET g = :v",
        V,
        costs("Lone", 3, of_table=1, world={"byg": 2}),
    ),
    changes(
        "an update that removes an index key costs a delete",
        FULL,
        "REMOVE n",
        {},
        costs("Lone", 2, of_table=1, local={"byn": 1}),
    ),
    changes(
        "an update that changes nothing costs only the table",
        FULL,
        "SET x = :v",
        {":v": X},
        costs("Lone", 1, of_table=1),
    ),
    deletes(
        "a delete costs each index that held the item",
        FULL,
        costs("Lone", 3, of_table=1, local={"byn": 1}, world={"byg": 1}),
    ),
    deletes("a delete of an unindexed item costs the table", row("1"), costs("Lone", 1, of_table=1)),
    deletes("a delete of a missing item costs one unit", None, costs("Lone", 1, of_table=1)),
    deletes(
        "a delete costs the sizes that it removes",
        FULL | {"x": LARGE},
        costs("Lone", 7, of_table=3, local={"byn": 1}, world={"byg": 3}),
    ),
    costing(
        "TOTAL of a write sums table and indexes",
        [],
        put("Lone", FULL, costs("Lone", 3), ReturnConsumedCapacity="TOTAL"),
        tables="Lone",
    ),
    costing(
        "NONE of a write gives no capacity",
        [],
        put("Lone", FULL, absent, ReturnConsumedCapacity="NONE"),
        tables="Lone",
    ),
]


def batch(reply: Json) -> None:
    assert reply["ConsumedCapacity"] == [units("Lone", 4, of_table=2, local={"byn": 1}, world={"byg": 1})]


def doubled(reply: Json) -> None:
    (capacity,) = reply["ConsumedCapacity"]
    assert capacity["CapacityUnits"] == 6
    parts = (
        capacity["Table"],
        capacity["LocalSecondaryIndexes"]["byn"],
        capacity["GlobalSecondaryIndexes"]["byg"],
    )
    assert [part["CapacityUnits"] for part in parts] == [2, 2, 2]


MANY = [
    costing(
        "a batch adds up its writes by table and index",
        [],
        Step(
            "BatchWriteItem",
            {
                "RequestItems": {
                    "Lone": [{"PutRequest": {"Item": row("1", g=G)}}, {"PutRequest": {"Item": row("2", n=N)}}]
                },
                "ReturnConsumedCapacity": "INDEXES",
            },
            batch,
        ),
        tables="Lone",
    ),
    costing(
        "a transaction costs double, in indexes too",
        [],
        Step(
            "TransactWriteItems",
            {
                "TransactItems": [{"Put": {"TableName": "Lone", "Item": FULL}}],
                "ReturnConsumedCapacity": "INDEXES",
            },
            doubled,
        ),
        tables="Lone",
    ),
]

CASES: list[Case] = [*READS, *INDEX_READS, *WRITES, *MANY]
