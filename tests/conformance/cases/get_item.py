"""What GetItem answers: replies, keys, capacity and refusals.

Projection expressions and AttributesToGet have their own files.
"""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

KEY: Json = {"pk": {"S": "a"}}
PAIR: Json = {"pk": {"S": "a"}, "sk": {"S": "b"}}
MISMATCH = invalid("The provided key element does not match the schema")
INVALID = "One or more parameter values were invalid: "
LOCAL_TEXT = "has a different text"
LOCAL_TABLE = "looks up the table first"


def put(item: Json, table: str = "Hash") -> Step:
    return Step("PutItem", {"TableName": table, "Item": item}, {})


def get(key: Any, expect: Expectation, table: str = "Hash", **more: Any) -> Step:
    return Step("GetItem", {"TableName": table, "Key": key, **more}, expect)


def sized(bytes_: int) -> Json:
    """An item of exactly this many bytes in table Hash."""
    return {**KEY, "d": {"S": "x" * (bytes_ - 4)}}


def capacity(units: float, table: str = "Hash", **arms: Any) -> Json:
    return {"ConsumedCapacity": {"TableName": table, "CapacityUnits": units, **arms}}


def one(value: str, member: str, rule: str) -> Fails:
    return invalid(
        f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: "
        f"Member must {rule}"
    )


ITEM: Json = {**KEY, "x": {"N": "1"}, "y": {"M": {"z": {"L": [{"BOOL": False}, {"NULL": True}]}}}}

REPLIES = [
    case("an item is answered whole", put(ITEM), get(KEY, {"Item": ITEM}), tables="Hash"),
    case("a missing item is answered without Item", get(KEY, {}), tables="Hash"),
    case(
        "a consistent read answers the same",
        put(ITEM),
        get(KEY, {"Item": ITEM}, ConsistentRead=True),
        tables="Hash",
    ),
    case(
        "an item is found by both parts of its key",
        put({**PAIR, "x": {"N": "1"}}, "Pair"),
        get(PAIR, {"Item": {**PAIR, "x": {"N": "1"}}}, "Pair"),
        get({**PAIR, "sk": {"S": "c"}}, {}, "Pair"),
        tables="Pair",
    ),
    case("keys are compared with case", put(KEY), get({"pk": {"S": "A"}}, {}), tables="Hash"),
    case(
        "keys are not normalised",
        put({"pk": {"S": "\u00e9"}}),
        get({"pk": {"S": "e\u0301"}}, {}),
        tables="Hash",
    ),
    case(
        "a key may hold a NUL and characters beyond the basic plane",
        put({"pk": {"S": "a\x00\U0001f600"}}),
        get({"pk": {"S": "a\x00\U0001f600"}}, {"Item": {"pk": {"S": "a\x00\U0001f600"}}}),
        tables="Hash",
    ),
    case("an unknown member of the request is ignored", get(KEY, {}, Colour="red"), tables="Hash"),
]

KEYS = [
    *(
        case(f"a key {title} does not match the schema", get(key, MISMATCH), tables="Hash", local=LOCAL_TEXT)
        for title, key in (
            ("without attributes", {}),
            ("of another attribute", {"b": {"S": "a"}}),
            ("with an attribute too many", {**KEY, "b": {"S": "a"}}),
            ("of type B", {"pk": {"B": "abcd"}}),
            ("of type N", {"pk": {"N": "1"}}),
            ("of type BOOL", {"pk": {"BOOL": True}}),
            ("of type NULL", {"pk": {"NULL": True}}),
            ("of type SS", {"pk": {"SS": ["a"]}}),
            ("of type M", {"pk": {"M": {}}}),
            ("of type L", {"pk": {"L": []}}),
        )
    ),
    case("a key without its sort part", get(KEY, MISMATCH, "Pair"), tables="Pair", local=LOCAL_TEXT),
    case(
        "an empty string is not a key to look for",
        get(
            {"pk": {"S": ""}},
            invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute "
                "cannot contain an empty string value. Key: pk"
            ),
        ),
        tables="Hash",
    ),
    case(
        "an empty binary is not a key to look for",
        get(
            {**KEY, "sk": {"B": ""}},
            invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute "
                "cannot contain an empty binary value. Key: sk"
            ),
            "BinarySort",
        ),
        tables="BinarySort",
    ),
    case(
        "a partition key of more than 2048 bytes is rejected",
        get(
            {"pk": {"S": "x" * 2049}},
            invalid(f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"),
        ),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "a sort key of more than 1024 bytes is rejected",
        get(
            {**KEY, "sk": {"S": "x" * 1025}},
            invalid(f"{INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
            "Pair",
        ),
        tables="Pair",
        local=LOCAL_TEXT,
    ),
]

REFUSALS = [
    case(
        "a missing table",
        get(KEY, Fails("ResourceNotFoundException", "Requested resource not found"), "Nope"),
        local=LOCAL_TEXT,
    ),
    case(
        "no table name",
        Step("GetItem", {"Key": KEY}, one("null", "tableName", "not be null")),
        local="omits the error count",
    ),
    case(
        "no key",
        Step("GetItem", {"TableName": "Hash"}, one("null", "key", "not be null")),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "a table name with a semicolon",
        get(KEY, one("'abc;'", "tableName", "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"), "abc;"),
        local=LOCAL_TEXT,
    ),
    case(
        "an unknown ReturnConsumedCapacity",
        get(
            KEY,
            one("'hi'", "returnConsumedCapacity", "satisfy enum value set: [INDEXES, TOTAL, NONE]"),
            ReturnConsumedCapacity="hi",
        ),
        tables="Hash",
        local="ignores unknown enum values",
    ),
    case(
        "a bad key value is reported before a missing table",
        get(
            {"pk": {}},
            invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
            "Nope",
        ),
        local=LOCAL_TABLE,
    ),
    case(
        "a bad projection is reported before a missing table",
        get(
            KEY,
            invalid("Invalid ProjectionExpression: The expression can not be empty;"),
            "Nope",
            ProjectionExpression="",
        ),
        local=LOCAL_TABLE,
    ),
    case(
        "a bad key value is reported before a bad projection",
        get(
            {"pk": {"N": "b"}},
            invalid("The parameter cannot be converted to a numeric value: b"),
            ProjectionExpression="",
        ),
        tables="Hash",
        local="checks expressions first",
    ),
    case(
        "a ConsistentRead that is not a boolean",
        get(
            KEY,
            Fails("SerializationException", "NUMBER_VALUE cannot be converted to Boolean"),
            ConsistentRead=23,
        ),
        tables="Hash",
        local="converts numbers to booleans",
    ),
]

CAPACITY = [
    *(
        case(
            f"a {kind} read of {what} costs {cost} units",
            *seed,
            get(
                KEY,
                {**({"Item": seed[0].request["Item"]} if seed else {}), **capacity(cost)},
                ConsistentRead=kind == "consistent",
                ReturnConsumedCapacity="TOTAL",
            ),
            tables="Hash",
        )
        for what, seed, eventual in (
            ("nothing", (), 0.5),
            ("10 bytes", (put(sized(10)),), 0.5),
            ("4096 bytes", (put(sized(4096)),), 0.5),
            ("4097 bytes", (put(sized(4097)),), 1),
            ("8193 bytes", (put(sized(8193)),), 1.5),
        )
        for kind, cost in (("eventual", eventual), ("consistent", eventual * 2))
    ),
    case(
        "INDEXES reports the table's share",
        get(KEY, capacity(0.5, Table={"CapacityUnits": 0.5}), ReturnConsumedCapacity="INDEXES"),
        tables="Hash",
    ),
    case(
        "a projection saves no capacity",
        put(sized(4097)),
        get(
            KEY,
            {"Item": KEY, **capacity(1)},
            ProjectionExpression="pk",
            ReturnConsumedCapacity="TOTAL",
        ),
        tables="Hash",
    ),
    case("NONE reports no capacity", get(KEY, {}, ReturnConsumedCapacity="NONE"), tables="Hash"),
]

CASES: list[Case] = [*REPLIES, *KEYS, *REFUSALS, *CAPACITY]
