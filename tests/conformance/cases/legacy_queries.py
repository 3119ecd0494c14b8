"""KeyConditions, QueryFilter, ScanFilter, AttributesToGet and ConditionalOperator: the words before expressions."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Json, Step, case, invalid


def op(operator: str, *operands: Json) -> Json:
    return {"ComparisonOperator": operator, **({"AttributeValueList": list(operands)} if operands else {})}


def s(value: str) -> Json:
    return {"S": value}


def n(value: str) -> Json:
    return {"N": value}


P = op("EQ", s("p"))


def put(table: str, item: Json) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item})


def query(expect: Any, sort: Json | None = None, table: str = "Pair", **more: Any) -> Step:
    keys = {"pk": P} | ({"sk": sort} if sort else {})
    return Step("Query", {"TableName": table, "KeyConditions": keys, **more}, expect)


def found(*items: Json, scanned: int | None = None) -> Json:
    return {
        "Items": list(items),
        "Count": len(items),
        "ScannedCount": len(items) if scanned is None else scanned,
    }


def row(sort: Json, **attributes: Json) -> Json:
    return {"pk": s("p"), "sk": sort, **attributes}


KINDS: dict[str, tuple[str, list[Json]]] = {
    "string": ("Pair", [s(value) for value in ("A", "a", "aa", "ab", "b")]),
    "number": ("NumberSort", [n(value) for value in ("-3", "0", "2", "10", "30")]),
    "binary": ("BinarySort", [{"B": value} for value in ("AA==", "AAE=", "fw==", "gA==", "/w==")]),
}


def selects(kind: str, operator: str, operands: tuple[int, ...], *expected: int) -> Case:
    """Operands and expected items are places in the partition of that kind."""
    table, keys = KINDS[kind]
    return case(
        f"{operator} of {operands} on a {kind} sort key gives {list(expected)}",
        *(put(table, row(key)) for key in reversed(keys)),
        query(
            found(*(row(keys[place]) for place in expected)),
            op(operator, *(keys[place] for place in operands)),
            table,
        ),
        tables=table,
    )


SELECTIONS = [
    selects(kind, operator, operands, *expected)
    for kind in KINDS
    for operator, operands, expected in (
        ("EQ", (2,), (2,)),
        ("LT", (2,), (0, 1)),
        ("LE", (2,), (0, 1, 2)),
        ("GT", (2,), (3, 4)),
        ("GE", (2,), (2, 3, 4)),
        ("BETWEEN", (1, 3), (1, 2, 3)),
    )
] + [
    selects("string", "BEGINS_WITH", (1,), 1, 2, 3),
    selects("binary", "BEGINS_WITH", (0,), 0, 1),
    case(
        "KeyConditions on the partition alone give it whole, backward too",
        put("Pair", row(s("1"))),
        put("Pair", row(s("2"))),
        query(found(row(s("1")), row(s("2")))),
        query(found(row(s("2")), row(s("1"))), ScanIndexForward=False),
        tables="Pair",
    ),
    case(
        "KeyConditions work on a global index",
        put("Lone", item := row(s("1"), g=s("v"))),
        Step(
            "Query",
            {"TableName": "Lone", "IndexName": "byg", "KeyConditions": {"g": op("EQ", s("v"))}},
            found(item),
        ),
        tables="Lone",
    ),
    case(
        "KeyConditions go with FilterExpression",
        put("Pair", row(s("1"), x=n("1"))),
        query(
            found(scanned=1),
            FilterExpression="x = :x",
            ExpressionAttributeValues={":x": n("2")},
        ),
        tables="Pair",
    ),
    case(
        "KeyConditions go with ProjectionExpression",
        put("Pair", row(s("1"), x=n("1"))),
        query(found({"x": n("1")}), ProjectionExpression="x"),
        tables="Pair",
    ),
]

WRONG = "One or more parameter values were invalid: "
COUNT = WRONG + "Invalid number of argument(s) for the {} ComparisonOperator"
INDEXABLE = "Attempted conditional constraint is not an indexable operation"
ENUM = (
    "1 validation error detected: Value {} at '{}' failed to satisfy constraint: Member must satisfy enum value set: "
    "[IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]"
)


def refused(
    name: str, text: str, conditions: Json, *, table: str = "Pair", local: str = "", **more: Any
) -> Case:
    request = {"TableName": table, "KeyConditions": conditions, **more}
    return case(name, Step("Query", request, invalid(text)), tables=table, local=local)


KEY_REFUSALS = [
    refused(
        "KeyConditions may not be empty",
        "Conditions can be of length 1 or 2 only",
        {},
        local="has a different text",
    ),
    refused(
        "three KeyConditions are too many",
        "Conditions can be of length 1 or 2 only",
        {"pk": P, "sk": P, "z": P},
    ),
    refused(
        "three KeyConditions are too many for an index with two key attributes",
        "Conditions can be of length 1 or 2 only",
        {"gp": P, "gs": op("EQ", n("1")), "z": P},
        table="Indexed",
        IndexName="gall",
    ),
    refused(
        "KeyConditions need the partition key",
        "Query condition missed key schema element: pk",
        {"sk": P},
        local="does not name the key element",
    ),
    refused(
        "a second KeyCondition must be on the sort key",
        "Query condition missed key schema element: sk",
        {"pk": P, "z": P},
        local="does not name the key element",
    ),
    refused(
        "a table without sort key takes one KeyCondition",
        "Query key condition not supported",
        {"pk": P, "z": P},
        table="Hash",
    ),
    *(
        refused(
            f"the partition key does not take {condition['ComparisonOperator']}",
            "Query key condition not supported",
            {"pk": condition},
        )
        for condition in (
            op("LT", s("p")),
            op("LE", s("p")),
            op("GT", s("p")),
            op("GE", s("p")),
            op("BEGINS_WITH", s("p")),
            op("BETWEEN", s("p"), s("q")),
        )
    ),
    *(
        refused(
            f"{condition['ComparisonOperator']} on the partition key cannot use the key",
            INDEXABLE,
            {"pk": condition},
            local="has a different text",
        )
        for condition in (
            op("NULL"),
            op("NOT_NULL"),
            op("NE", s("p")),
            op("IN", s("p")),
            op("CONTAINS", s("p")),
        )
    ),
    *(
        refused(
            f"{condition['ComparisonOperator']} on the sort key cannot use the key",
            INDEXABLE,
            {"pk": P, "sk": condition},
        )
        for condition in (op("IN", s("p")), op("CONTAINS", s("p")), op("NOT_CONTAINS", s("p")))
    ),
    refused(
        "NE on the sort key cannot use the key",
        INDEXABLE,
        {"pk": P, "sk": op("NE", s("p"))},
        local="fails with an internal error",
    ),
    *(
        refused(
            f"{operator} with {len(operands)} operands is rejected in KeyConditions",
            COUNT.format(operator),
            {"pk": P, "sk": op(operator, *operands)},
        )
        for operator, operands in (
            ("EQ", ()),
            ("EQ", (s("a"), s("b"))),
            ("LT", ()),
            ("GE", (s("a"), s("b"))),
            ("BETWEEN", (s("a"),)),
            ("BETWEEN", (s("a"), s("b"), s("c"))),
            ("BEGINS_WITH", ()),
            ("NULL", (s("a"),)),
        )
    ),
    refused(
        "a comparison operator is upper case",
        ENUM.format("'eq'", "keyConditions.pk.member.comparisonOperator"),
        {"pk": op("eq", s("p"))},
        local="has a different text",
    ),
    refused(
        "a comparison operator is required",
        "1 validation error detected: Value null at 'keyConditions.pk.member.comparisonOperator' failed to satisfy "
        "constraint: Member must not be null",
        {"pk": {"AttributeValueList": [s("p")]}},
        local="has a different text",
    ),
    refused(
        "BETWEEN rejects a range that is upside down",
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        {"pk": P, "sk": op("BETWEEN", s("b"), s("a"))},
    ),
    refused(
        "BETWEEN rejects operands of two types",
        WRONG + "AttributeValues inside AttributeValueList must be of same type",
        {"pk": P, "sk": op("BETWEEN", s("b"), n("1"))},
    ),
    refused(
        "BEGINS_WITH takes no number",
        WRONG + "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
        {"pk": P, "sk": op("BEGINS_WITH", n("1"))},
        table="NumberSort",
    ),
    refused(
        "a number does not fit a string sort key",
        WRONG + "Condition parameter type does not match schema type",
        {"pk": P, "sk": op("GT", n("1"))},
    ),
    refused(
        "a value of no type is rejected",
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        {"pk": op("EQ", {})},
    ),
    refused(
        "QueryFilter may not name the partition key",
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: pk",
        {"pk": P},
        QueryFilter={"pk": P},
    ),
    refused(
        "QueryFilter may not name the sort key",
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: sk",
        {"pk": P},
        QueryFilter={"x": P, "sk": P},
    ),
    refused(
        "QueryFilter may not name the key of the index",
        "QueryFilter can only contain non-primary key attributes: Primary key attribute: n",
        {"pk": P},
        table="Lone",
        IndexName="byn",
        QueryFilter={"n": op("EQ", n("1"))},
    ),
]

ITEMS = [
    row(s("1"), x=n("1"), t=s("apple"), c={"SS": ["a", "b"]}, b={"B": "AQ=="}),
    row(s("2"), x=n("10"), t=s("apricot"), c={"L": [s("a"), n("1")]}, b={"B": "gA=="}),
    row(s("3"), x=s("1"), t=s("pear"), c={"NS": ["1"]}),
    row(s("4"), u={"NULL": True}, t=s("Apple")),
]
FILL = tuple(put("Pair", item) for item in ITEMS)


def filters(condition: Json, *expected: int, attribute: str = "x", scan: bool = False) -> Case:
    """The filter on `attribute` keeps the items at these places."""
    operands = condition.get("AttributeValueList", [])
    reply = found(*(ITEMS[place] for place in expected), scanned=4)
    step = (
        Step("Scan", {"TableName": "Pair", "ScanFilter": {attribute: condition}}, reply)
        if scan
        else query(reply, QueryFilter={attribute: condition})
    )
    name = (
        f"{'ScanFilter' if scan else 'QueryFilter'} {attribute} {condition['ComparisonOperator']} {operands}"
    )
    return case(f"{name} keeps {list(expected)}", *FILL, step, tables="Pair")


FILTERS = [
    filters(op("EQ", n("1.0")), 0),
    filters(op("EQ", s("1")), 2),
    filters(op("EQ", {"SS": ["b", "a"]}), 0, attribute="c"),
    filters(op("EQ", {"L": [s("a"), n("1")]}), 1, attribute="c"),
    filters(op("NE", n("1")), 1, 2, 3),
    filters(op("LT", n("10")), 0),
    filters(op("LE", n("10")), 0, 1),
    filters(op("GT", n("2")), 1),
    filters(op("GE", s("0")), 2),
    filters(op("GT", {"B": "fw=="}), 1, attribute="b"),
    filters(op("BETWEEN", n("1"), n("9")), 0),
    filters(op("IN", n("10"), n("7")), 1),
    filters(op("NULL"), 3),
    filters(op("NOT_NULL"), 0, 1, 2),
    filters(op("NOT_NULL"), 3, attribute="u"),
    filters(op("BEGINS_WITH", s("ap")), 0, 1, attribute="t"),
    filters(op("CONTAINS", s("p")), 0, 1, 2, 3, attribute="t"),
    filters(op("CONTAINS", s("a")), 0, 1, attribute="c"),
    filters(op("CONTAINS", n("1")), 1, 2, attribute="c"),
    filters(op("NOT_CONTAINS", s("pp")), 1, 2, attribute="t"),
    filters(op("EQ", n("1")), 0, scan=True),
    filters(op("EQ", s("2")), 1, attribute="sk", scan=True),
    filters(op("EQ", s("p")), 0, 1, 2, 3, attribute="pk", scan=True),
    filters(op("NE", n("1")), 1, 2, 3, scan=True),
    filters(op("IN", s("pear"), s("Apple")), 2, 3, attribute="t", scan=True),
    filters(op("NULL"), 3, scan=True),
    filters(op("NOT_CONTAINS", s("a")), 2, attribute="c", scan=True),
]


def joined(name: str, operator: str | None, *expected: int) -> list[Case]:
    conditions = {"x": op("GT", n("0")), "t": op("BEGINS_WITH", s("apr"))}
    more: Json = {"ConditionalOperator": operator} if operator else {}
    reply = found(*(ITEMS[place] for place in expected), scanned=4)
    return [
        case(f"{name} in QueryFilter", *FILL, query(reply, QueryFilter=conditions, **more), tables="Pair"),
        case(
            f"{name} in ScanFilter",
            *FILL,
            Step("Scan", {"TableName": "Pair", "ScanFilter": conditions, **more}, reply),
            tables="Pair",
        ),
    ]


def filter_refused(name: str, text: str, condition: Json, local: str = "") -> list[Case]:
    return [
        case(
            f"{name} in QueryFilter",
            query(invalid(text), QueryFilter={"x": condition}),
            tables="Pair",
            local=local,
        ),
        case(
            f"{name} in ScanFilter",
            Step("Scan", {"TableName": "Pair", "ScanFilter": {"x": condition}}, invalid(text)),
            tables="Pair",
            local=local,
        ),
    ]


NO_FILTER = "ConditionalOperator cannot be used without Filter or Expected"
TOO_FEW = "ConditionalOperator can only be used when Filter or Expected has two or more elements"
COMBINED = [
    *joined("conditions are joined by AND", None, 1),
    *joined("AND joins conditions", "AND", 1),
    *joined("OR joins conditions", "OR", 0, 1),
    *filter_refused("EQ without operand is rejected", COUNT.format("EQ"), op("EQ")),
    *filter_refused("NULL with an operand is rejected", COUNT.format("NULL"), op("NULL", s("a"))),
    *filter_refused("BETWEEN with one operand is rejected", COUNT.format("BETWEEN"), op("BETWEEN", s("a"))),
    *filter_refused("IN without operands is rejected", COUNT.format("IN"), op("IN")),
    *filter_refused(
        "IN with operands of two types is rejected",
        WRONG + "AttributeValues inside AttributeValueList must be of same type",
        op("IN", s("a"), n("1")),
    ),
    *(
        refusal
        for operator, value in (
            ("LT", {"BOOL": True}),
            ("GE", {"L": []}),
            ("IN", {"SS": ["a"]}),
            ("CONTAINS", {"M": {}}),
            ("BEGINS_WITH", {"N": "1"}),
        )
        for refusal in filter_refused(
            f"{operator} with {next(iter(value))} is rejected",
            f"{WRONG}ComparisonOperator {operator} is not valid for {next(iter(value))} AttributeValue type",
            op(operator, value),
        )
    ),
    *filter_refused(
        "BETWEEN upside down is rejected",
        "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound",
        op("BETWEEN", n("2"), n("1")),
    ),
    case(
        "ConditionalOperator needs a filter",
        query(invalid(NO_FILTER), ConditionalOperator="OR"),
        tables="Pair",
    ),
    case(
        "ConditionalOperator needs two conditions",
        query(invalid(TOO_FEW), QueryFilter={"x": op("NULL")}, ConditionalOperator="OR"),
        tables="Pair",
    ),
    case(
        "ConditionalOperator of a scan needs two conditions",
        Step(
            "Scan",
            {"TableName": "Pair", "ScanFilter": {"x": op("NULL")}, "ConditionalOperator": "AND"},
            invalid(TOO_FEW),
        ),
        tables="Pair",
    ),
]

GETS = [
    case(
        "AttributesToGet gives just those, and empty items",
        *FILL,
        query(
            found(*({"x": item["x"]} if "x" in item else {} for item in ITEMS)),
            AttributesToGet=["x", "nowhere"],
        ),
        tables="Pair",
    ),
    case(
        "AttributesToGet works on a scan",
        *FILL,
        Step(
            "Scan",
            {"TableName": "Pair", "AttributesToGet": ["sk"]},
            found(*({"sk": item["sk"]} for item in ITEMS)),
        ),
        tables="Pair",
    ),
    case(
        "AttributesToGet takes names, not paths",
        put("Pair", row(s("1"), m={"M": {"a": s("A")}})),
        query(found({}), AttributesToGet=["m.a"]),
        tables="Pair",
    ),
    case(
        "AttributesToGet does not hide attributes from the filter",
        *FILL,
        query(found({"sk": s("1")}, scanned=4), AttributesToGet=["sk"], QueryFilter={"x": op("EQ", n("1"))}),
        tables="Pair",
    ),
    case(
        "AttributesToGet may not repeat a name",
        query(invalid(WRONG + "Duplicate value in attribute name: x"), AttributesToGet=["x", "y", "x"]),
        tables="Pair",
        local="has a different text",
    ),
    case(
        "AttributesToGet may not be empty",
        query(
            invalid(
                "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must "
                "have length greater than or equal to 1"
            ),
            AttributesToGet=[],
        ),
        tables="Pair",
        local="treats an empty list as a missing one",
    ),
    case(
        "AttributesToGet of a global index must be projected",
        Step(
            "Query",
            {
                "TableName": "Lone",
                "IndexName": "byg",
                "KeyConditions": {"g": op("EQ", s("v"))},
                "AttributesToGet": ["x", "y"],
            },
            invalid(WRONG + "Global secondary index byg does not project [y]"),
        ),
        tables="Lone",
    ),
    case(
        "AttributesToGet of a local index fetches from the table",
        put("Lone", row(s("1"), n=n("1"), y=s("Y"))),
        query(found({"y": s("Y")}), table="Lone", IndexName="byn", AttributesToGet=["y"]),
        tables="Lone",
    ),
]

CASES: list[Case] = [*SELECTIONS, *KEY_REFUSALS, *FILTERS, *COMBINED, *GETS]
