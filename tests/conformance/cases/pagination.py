"""Pages of Query and Scan: Limit, LastEvaluatedKey, 1 MB, and what ExclusiveStartKey must look like."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Json, Step, case, invalid


def put(table: str, item: Json) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item})


def query(
    expect: Any, table: str = "Pair", where: str = "pk = :p", values: Json | None = None, **more: Any
) -> Step:
    request = {
        "TableName": table,
        "KeyConditionExpression": where,
        "ExpressionAttributeValues": {":p": {"S": "p"}} | (values or {}),
        **more,
    }
    return Step("Query", request, expect)


def scan(expect: Any, table: str = "Pair", **more: Any) -> Step:
    return Step("Scan", {"TableName": table, **more}, expect)


def row(sort: str, **attributes: Json) -> Json:
    return {"pk": {"S": "p"}, "sk": {"S": sort}, **attributes}


def page(*items: Json, scanned: int | None = None, last: Json | None = None) -> Json:
    reply: Json = {
        "Items": list(items),
        "Count": len(items),
        "ScannedCount": len(items) if scanned is None else scanned,
    }
    return reply | ({"LastEvaluatedKey": last} if last else {})


def counted(count: int, scanned: int, last: Json | None = None) -> Json:
    return {"Count": count, "ScannedCount": scanned} | ({"LastEvaluatedKey": last} if last else {})


R = [row(str(number), x={"N": str(number % 2)}) for number in range(1, 6)]
K = [row(str(number)) for number in range(1, 6)]
FIVE = tuple(put("Pair", item) for item in R)
ODD: Json = {"FilterExpression": "x = :x", "values": {":x": {"N": "1"}}}

LIMITS = [
    case(
        "Limit ends a page and the last key continues it",
        *FIVE,
        query(page(*R[:2], last=K[1]), Limit=2),
        query(page(*R[2:4], last=K[3]), Limit=2, ExclusiveStartKey=K[1]),
        query(page(R[4]), Limit=2, ExclusiveStartKey=K[3]),
        tables="Pair",
    ),
    case(
        "pages go backward too",
        *FIVE,
        query(page(R[4], R[3], last=K[3]), Limit=2, ScanIndexForward=False),
        query(page(R[2], R[1], last=K[1]), Limit=2, ScanIndexForward=False, ExclusiveStartKey=K[3]),
        query(page(R[0]), Limit=2, ScanIndexForward=False, ExclusiveStartKey=K[1]),
        tables="Pair",
    ),
    case(
        "a page that is exactly full has a last key, and the next page is empty",
        *FIVE,
        query(page(*R, last=K[4]), Limit=5),
        query(page(), Limit=5, ExclusiveStartKey=K[4]),
        tables="Pair",
    ),
    case("a page that is not full has no last key", *FIVE, query(page(*R), Limit=6), tables="Pair"),
    case(
        "Limit counts within the key condition",
        *FIVE,
        query(page(R[2], R[3], last=K[3]), where="pk = :p AND sk > :s", values={":s": {"S": "2"}}, Limit=2),
        tables="Pair",
    ),
    case(
        "Limit counts before the filter",
        *FIVE,
        query(page(R[0], scanned=2, last=K[1]), Limit=2, **ODD),
        query(page(R[2], scanned=2, last=K[3]), Limit=2, ExclusiveStartKey=K[1], **ODD),
        query(page(R[4], scanned=1), Limit=2, ExclusiveStartKey=K[3], **ODD),
        tables="Pair",
    ),
    case(
        "a page may be empty and still not the last",
        *FIVE,
        query(page(scanned=1, last=K[1]), Limit=1, ExclusiveStartKey=K[0], **ODD),
        tables="Pair",
    ),
    case(
        "a count page has a last key",
        *FIVE,
        query(counted(2, 2, K[1]), Limit=2, Select="COUNT"),
        tables="Pair",
    ),
    case(
        "a count page counts after the filter",
        *FIVE,
        query(counted(1, 2, K[1]), Limit=2, Select="COUNT", **ODD),
        tables="Pair",
    ),
    case(
        "the last key does not depend on the projection",
        *FIVE,
        query(page({"x": R[0]["x"]}, last=K[0]), Limit=1, ProjectionExpression="x"),
        tables="Pair",
    ),
    case(
        "a scan page ends at Limit",
        *FIVE,
        scan(page(*R[:3], last=K[2]), Limit=3),
        scan(page(*R[3:]), Limit=3, ExclusiveStartKey=K[2]),
        tables="Pair",
    ),
    case("a full scan page has a last key", *FIVE, scan(page(*R, last=K[4]), Limit=5), tables="Pair"),
    case(
        "a scan counts before the filter",
        *FIVE,
        scan(
            page(R[0], scanned=2, last=K[1]),
            Limit=2,
            FilterExpression="x = :x",
            ExpressionAttributeValues={":x": {"N": "1"}},
        ),
        tables="Pair",
    ),
    case(
        "a scan of a table without sort key continues behind the last key",
        put("Hash", {"pk": {"S": "only"}}),
        scan(page({"pk": {"S": "only"}}, last={"pk": {"S": "only"}}), "Hash", Limit=1),
        scan(page(), "Hash", ExclusiveStartKey={"pk": {"S": "only"}}),
        tables="Hash",
    ),
    case(
        "the starting key need not exist",
        *FIVE,
        query(page(*R[2:]), ExclusiveStartKey=row("2x")),
        query(page(*reversed(R[:2])), ExclusiveStartKey=row("2x"), ScanIndexForward=False),
        scan(page(*R[2:]), ExclusiveStartKey=row("2x")),
        tables="Pair",
    ),
    case(
        "a page continues after its last item was deleted",
        *FIVE,
        Step("DeleteItem", {"TableName": "Pair", "Key": K[1]}),
        query(page(*R[2:]), ExclusiveStartKey=K[1]),
        tables="Pair",
    ),
    case(
        "a number starting key compares by value",
        *(put("NumberSort", {"pk": {"S": "p"}, "sk": {"N": value}}) for value in ("9", "10", "11")),
        query(
            page({"pk": {"S": "p"}, "sk": {"N": "10"}}, last={"pk": {"S": "p"}, "sk": {"N": "10"}}),
            "NumberSort",
            Limit=1,
            ExclusiveStartKey={"pk": {"S": "p"}, "sk": {"N": "9.0"}},
        ),
        tables="NumberSort",
    ),
    case(
        "a binary key pages by bytes",
        *(put("BinarySort", {"pk": {"S": "p"}, "sk": {"B": value}}) for value in ("gA==", "fw==")),
        query(
            page({"pk": {"S": "p"}, "sk": {"B": "fw=="}}, last={"pk": {"S": "p"}, "sk": {"B": "fw=="}}),
            "BinarySort",
            Limit=1,
        ),
        query(
            page({"pk": {"S": "p"}, "sk": {"B": "gA=="}}),
            "BinarySort",
            ExclusiveStartKey={"pk": {"S": "p"}, "sk": {"B": "fw=="}},
        ),
        tables="BinarySort",
    ),
]

G = [row(str(n), g={"S": "g"}, n={"N": str(n)}) for n in range(1, 4)]
IK = [row(str(n), n={"N": str(n)}) for n in range(1, 4)]
HOME: Json = {"IndexName": "byn", "table": "Lone"}
ON_GALL: Json = {"table": "Indexed", "IndexName": "gall", "where": "gp = :p"}


def entry(sort: str, number: str, partition: str = "a") -> Json:
    return {"pk": {"S": partition}, "sk": {"S": sort}, "gp": {"S": "p"}, "gs": {"N": number}}


def first_two(reply: Json) -> None:
    assert reply["Count"] == 2
    assert reply["LastEvaluatedKey"] == {name: reply["Items"][1][name] for name in ("pk", "sk", "gp", "gs")}


def four_in_all(reply: Json) -> None:
    assert sorted(item["pk"]["S"] for item in reply["Items"]) == ["a", "b", "c", "d"]


INDEX_PAGES = [
    case(
        "the last key of a local index holds table and index keys",
        *(put("Lone", item) for item in G),
        query(page(IK[0], last=IK[0]), Limit=1, **HOME),
        query(page(IK[1], IK[2]), ExclusiveStartKey=IK[0], **HOME),
        tables="Lone",
    ),
    case(
        "the last key of a global index holds table and index keys",
        *(put("Indexed", entry(sort, number)) for sort, number in (("1", "30"), ("2", "4"), ("3", "5"))),
        query(page(entry("2", "4"), last=entry("2", "4")), Limit=1, **ON_GALL),
        query(
            page(entry("3", "5"), last=entry("3", "5")), Limit=1, ExclusiveStartKey=entry("2", "4"), **ON_GALL
        ),
        query(page(entry("1", "30")), ExclusiveStartKey=entry("3", "5"), **ON_GALL),
        tables="Indexed",
    ),
    case(
        "a global index pages backward",
        *(put("Indexed", entry(sort, number)) for sort, number in (("1", "30"), ("2", "4"), ("3", "5"))),
        query(page(entry("1", "30"), last=entry("1", "30")), Limit=1, ScanIndexForward=False, **ON_GALL),
        query(
            page(entry("3", "5"), entry("2", "4")),
            ScanIndexForward=False,
            ExclusiveStartKey=entry("1", "30"),
            **ON_GALL,
        ),
        tables="Indexed",
    ),
    case(
        "the last key names an attribute once that is a key of table and index",
        put("Indexed", {"pk": {"S": "a"}, "sk": {"S": "1"}, "gp": {"S": "p"}}),
        query(
            page(
                {"pk": {"S": "a"}, "sk": {"S": "1"}, "gp": {"S": "p"}},
                last={"pk": {"S": "a"}, "sk": {"S": "1"}, "gp": {"S": "p"}},
            ),
            table="Indexed",
            IndexName="ginc",
            where="gp = :p",
            Limit=1,
        ),
        tables="Indexed",
    ),
    case(
        "equal index keys are paged without loss",
        *(put("Indexed", entry("1", "7", partition)) for partition in ("a", "b", "c", "d")),
        query(first_two, Limit=2, **ON_GALL),
        query(four_in_all, **ON_GALL),
        tables="Indexed",
    ),
]


BIG = [row(str(number), v={"S": "x" * 300_000}) for number in range(1, 6)]
HUGE = tuple(put("Pair", item) for item in BIG)
NOTHING: Json = {"FilterExpression": "v = :v", "values": {":v": {"S": "no"}}}

# DynamoDB: the item that passes 1 MB is the last one of its page.
MEGABYTES = [
    case(
        "1 MB ends a page",
        *HUGE,
        query(counted(4, 4, K[3]), Select="COUNT"),
        query(counted(1, 1), Select="COUNT", ExclusiveStartKey=K[3]),
        tables="Pair",
    ),
    case(
        "1 MB ends a page backward",
        *HUGE,
        query(counted(4, 4, K[1]), Select="COUNT", ScanIndexForward=False),
        query(counted(1, 1), Select="COUNT", ScanIndexForward=False, ExclusiveStartKey=K[1]),
        tables="Pair",
    ),
    case("1 MB ends a page of a scan", *HUGE, scan(counted(4, 4, K[3]), Select="COUNT"), tables="Pair"),
    case("1 MB ends a page of items", *HUGE, query(page(*BIG[:4], last=K[3])), tables="Pair"),
    case(
        "1 MB counts before the projection",
        *HUGE,
        query(page(*({"sk": item["sk"]} for item in BIG[:4]), last=K[3]), ProjectionExpression="sk"),
        tables="Pair",
    ),
    case(
        "1 MB counts before the filter",
        *HUGE,
        query(page(scanned=4, last=K[3]), **NOTHING),
        query(page(scanned=1), ExclusiveStartKey=K[3], **NOTHING),
        tables="Pair",
        local="measures the page after the filter",
    ),
    case("less than 1 MB is one page", *HUGE[:3], query(counted(3, 3), Select="COUNT"), tables="Pair"),
    case(
        "a page that passes 1 MB with the very last item has a last key",
        *HUGE[:4],
        query(counted(4, 4, K[3]), Select="COUNT"),
        tables="Pair",
        local="reads ahead for another item",
    ),
    case(
        "Limit may end a page before 1 MB",
        *HUGE,
        query(counted(2, 2, K[1]), Select="COUNT", Limit=2),
        tables="Pair",
    ),
    case(
        "1 MB ends a page of an index by the size of its entries",
        *(put("Lone", {**item, "g": {"S": "p"}, "n": {"N": item["sk"]["S"]}}) for item in BIG),
        query(counted(5, 5), Select="COUNT", table="Lone", IndexName="byg", where="g = :p"),
        query(counted(5, 5), Select="COUNT", **HOME),
        tables="Lone",
        local="measures the table's items",
    ),
]

INVALID = "The provided starting key is invalid"
MISMATCH = "The provided key element does not match the schema"
OUTSIDE = "The provided starting key is outside query boundaries based on provided conditions"
PREDICATE = "The provided starting key does not match the range key predicate"
RESTART = "The query can return at most one row and cannot be restarted"
WORDS = "has a different text for starting keys"
S: Json = {"S": "p"}
N: Json = {"N": "1"}


def query_refused(name: str, text: str, start: Json, *, local: str = WORDS, **more: Any) -> Case:
    table = more.get("table", "Pair")
    return case(name, query(invalid(text), ExclusiveStartKey=start, **more), tables=table, local=local)


def scan_refused(
    name: str, text: str, start: Json, table: str = "Pair", local: str = WORDS, **more: Any
) -> Case:
    return case(name, scan(invalid(text), table, ExclusiveStartKey=start, **more), tables=table, local=local)


LOCAL_INDEX: Json = {"table": "Lone", "IndexName": "byn"}
QUERY_STARTS = [
    case(
        "a full page has a last key where the key condition allows no further one, and continues from it",
        *FIVE,
        query(page(R[0], last=K[0]), where="pk = :p AND sk <= :s", values={":s": {"S": "1"}}, Limit=1),
        query(
            page(),
            where="pk = :p AND sk <= :s",
            values={":s": {"S": "1"}},
            Limit=1,
            ExclusiveStartKey=K[0],
        ),
        tables="Pair",
        local="uses the key condition to look ahead",
    ),
    query_refused("an empty starting key is rejected", INVALID, {}, local=""),
    query_refused("a starting key needs the sort key", INVALID, {"pk": S}),
    query_refused("a starting key needs the partition key", INVALID, {"sk": S}),
    query_refused("a starting key takes no further attribute", INVALID, {"pk": S, "sk": S, "z": S}),
    query_refused(
        "a starting key with an unrelated attribute for the sort key is rejected",
        INVALID,
        {"pk": S, "z": S},
        local="",
    ),
    query_refused("a starting key with a wrong partition type is rejected", MISMATCH, {"pk": N, "sk": S}),
    query_refused("a starting key with a wrong sort type is rejected", MISMATCH, {"pk": S, "sk": N}),
    query_refused("a starting key of another partition is outside", OUTSIDE, {"pk": {"S": "q"}, "sk": S}),
    query_refused(
        "a starting key of another partition on a table without sort key is outside",
        OUTSIDE,
        {"pk": {"S": "q"}},
        table="Hash",
    ),
    query_refused(
        "a query of a table without sort key cannot be restarted", RESTART, {"pk": S}, table="Hash"
    ),
    case(
        "a query of a table without sort key has no last key, however small its page",
        put("Hash", {"pk": S}),
        query(page({"pk": S}), table="Hash", Limit=1),
        tables="Hash",
    ),
    *(
        query_refused(
            f"a starting key that does not satisfy sk {operator} is rejected",
            PREDICATE,
            row(sort),
            where=f"pk = :p AND sk {operator} :s",
            values={":s": {"S": "m"}},
            local="",
        )
        for operator, sort in ((">", "m"), (">=", "a"), ("<", "m"), ("<=", "z"))
    ),
    query_refused(
        "a starting key outside BETWEEN is rejected",
        PREDICATE,
        row("z"),
        where="pk = :p AND sk BETWEEN :a AND :b",
        values={":a": {"S": "a"}, ":b": {"S": "b"}},
        local="",
    ),
    query_refused(
        "a starting key without the prefix is rejected",
        PREDICATE,
        row("b"),
        where="pk = :p AND begins_with(sk, :a)",
        values={":a": {"S": "a"}},
        local="",
    ),
    query_refused(
        "a starting key that fits the range but not the partition cannot be restarted",
        RESTART,
        {"pk": {"S": "q"}, "sk": {"S": "a"}},
        where="pk = :p AND sk < :s",
        values={":s": {"S": "m"}},
    ),
    query_refused(
        "a starting key of a local index needs the index key", INVALID, {"pk": S, "sk": S}, **LOCAL_INDEX
    ),
    query_refused(
        "a starting key of a local index with a wrong index key type is rejected",
        MISMATCH,
        {"pk": S, "sk": S, "n": S},
        **LOCAL_INDEX,
    ),
    query_refused(
        "a starting key of a local index with a wrong table key type is rejected",
        f"{INVALID}: {MISMATCH}",
        {"pk": S, "sk": N, "n": N},
        **LOCAL_INDEX,
    ),
    query_refused(
        "a starting key of a global index needs the index keys",
        INVALID,
        {"pk": S, "sk": S},
        local="",
        **ON_GALL,
    ),
    query_refused(
        "a starting key of a global index needs the table keys",
        INVALID,
        {"gp": S, "gs": N},
        local="",
        **ON_GALL,
    ),
    query_refused(
        "a starting key of a global index with a wrong table key type is rejected",
        f"{INVALID}: {MISMATCH}",
        {"pk": N, "sk": S, "gp": S, "gs": N},
        **ON_GALL,
    ),
    query_refused(
        "a starting key of another index partition is outside",
        OUTSIDE,
        {"pk": S, "sk": S, "gp": {"S": "q"}, "gs": N},
        **ON_GALL,
    ),
    query_refused(
        "a starting key with an empty value struct is rejected",
        f"{INVALID}: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        {"pk": {}, "sk": S},
    ),
    query_refused(
        "a starting key with two types in one value is rejected",
        f"{INVALID}: Supplied AttributeValue has more than one datatypes set, "
        "must contain exactly one of the supported datatypes",
        {"pk": {"S": "a", "N": "1"}, "sk": S},
    ),
    query_refused(
        "a starting key with a bad number is rejected without preamble",
        "The parameter cannot be converted to a numeric value: b",
        {"pk": S, "sk": {"N": "b"}},
    ),
    query_refused(
        "a wrong starting key is reported before a missing key element", INVALID, {}, where="z = :p"
    ),
]

SCAN_STARTS = [
    scan_refused(f"a scan rejects the starting key {start}", f"{INVALID}: {MISMATCH}", start, table)
    for table, start in (
        ("Hash", {}),
        ("Hash", {"z": S}),
        ("Hash", {"pk": N}),
        ("Hash", {"pk": S, "sk": S}),
        ("Pair", {"pk": S}),
        ("Pair", {"pk": S, "z": S}),
        ("Pair", {"pk": S, "sk": N}),
    )
] + [
    scan_refused(
        "a scan of an index needs the index keys",
        INVALID,
        {"pk": S, "sk": S},
        "Indexed",
        "",
        IndexName="gall",
    ),
    scan_refused(
        "a scan of a segment rejects a starting key of another segment",
        f"{INVALID}: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with correct Segment. "
        "TotalSegments: 1000000 Segment: 0",
        {"pk": S, "sk": S},
        TotalSegments=1000000,
        Segment=0,
    ),
    scan_refused(
        "a scan of an index rejects a wrong index key type",
        MISMATCH,
        {"pk": S, "sk": S, "gp": S, "gs": S},
        "Indexed",
        IndexName="gall",
    ),
    scan_refused(
        "a scan of an index rejects a wrong table key type",
        f"{INVALID}: {MISMATCH}",
        {"pk": S, "sk": N, "gp": S, "gs": N},
        "Indexed",
        IndexName="gall",
    ),
]

CASES: list[Case] = [*LIMITS, *INDEX_PAGES, *MEGABYTES, *QUERY_STARTS, *SCAN_STARTS]
