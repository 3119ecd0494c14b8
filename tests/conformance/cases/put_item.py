"""What PutItem answers: replies, return values, conditions, limits, capacity and refusals.

Expressions, value rules and the legacy parameters have their own files.
"""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
PAIR: Json = {"pk": {"S": "a"}, "sk": {"S": "b"}}
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
NOT_FOUND = Fails("ResourceNotFoundException", "Requested resource not found")
EMPTY = invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
INVALID = "One or more parameter values were invalid: "
NOT_VALID = "One or more parameter values are not valid. "
LOCAL_TEXT = "has a different text"
LOCAL_ENUM = "ignores unknown enum values"
LOCAL_TABLE = "looks up the table first"


def put(item: Any, expect: Expectation | None = None, table: str = "Hash", **more: Any) -> Step:
    return Step("PutItem", {"TableName": table, "Item": item, **more}, expect)


def stored(item: Json, table: str = "Hash", key: Json = KEY) -> Step:
    """The item is there, exactly."""
    return Step("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True}, {"Item": item})


def absent(key: Json = KEY) -> Step:
    return Step("GetItem", {"TableName": "Hash", "Key": key, "ConsistentRead": True}, {})


def sized(bytes_: int) -> Json:
    """An item of exactly this many bytes in table Hash: `pk` and `a` count 3, `d` counts 1."""
    return {**KEY, "d": {"S": "x" * (bytes_ - 4)}}


def constraint(value: str, member: str, rule: str) -> str:
    return f"Value {value} at '{member}' failed to satisfy constraint: Member must {rule}"


def capacity(units: float, table: str = "Hash", **arms: Any) -> Json:
    return {"ConsumedCapacity": {"TableName": table, "CapacityUnits": units, **arms}}


def units(number: float) -> Json:
    return {"CapacityUnits": number}


A: Json = {**KEY, "x": {"N": "1"}}
B: Json = {**KEY, "y": {"N": "2"}}
INDEXED: Json = {**PAIR, "gp": {"S": "g"}, "gs": {"N": "1"}, "ls": {"S": "l"}}
ALL_ARMS: Json = {
    "Table": units(1),
    "GlobalSecondaryIndexes": {"gall": units(1), "gkeys": units(1), "ginc": units(1)},
    "LocalSecondaryIndexes": {"lall": units(1), "linc": units(1)},
}

REPLIES = [
    case("a put answers an empty object", put(A, {}), stored(A), tables="Hash"),
    case("a put replaces the whole item", put(A, {}), put(B, {}), stored(B), tables="Hash"),
    case(
        "items with one partition and two sort keys are two items",
        put(PAIR, {}, "Pair"),
        put({**PAIR, "sk": {"S": "c"}, "x": {"N": "1"}}, {}, "Pair"),
        stored(PAIR, "Pair", PAIR),
        tables="Pair",
    ),
    case("an unknown member of the request is ignored", put(A, {}, Colour="red"), tables="Hash"),
    case("NONE returns no attributes", put(A), put(B, {}, ReturnValues="NONE"), tables="Hash"),
    case(
        "ALL_OLD returns the whole item that was replaced",
        put(A),
        put(B, {"Attributes": A}, ReturnValues="ALL_OLD"),
        tables="Hash",
    ),
    case("ALL_OLD without an old item has no Attributes", put(A, {}, ReturnValues="ALL_OLD"), tables="Hash"),
    case(
        "ALL_OLD returns the old item also when nothing changes",
        put(A),
        put(A, {"Attributes": A}, ReturnValues="ALL_OLD"),
        tables="Hash",
    ),
    *(
        case(
            f"{value} is not a return value of a put",
            put(
                A,
                counted("ReturnValues can only be ALL_OLD or NONE", evidence.RETURN_VALUES),
                ReturnValues=value,
            ),
            absent(),
            tables="Hash",
            local=LOCAL_TEXT,
        )
        for value in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
    ),
]

CONDITIONS = [
    case(
        "a condition that holds lets the put through",
        put(A, {}, ConditionExpression="attribute_not_exists(pk)"),
        stored(A),
        tables="Hash",
    ),
    case(
        "a condition that fails leaves the item alone",
        put(A),
        put(B, FAILED, ConditionExpression="attribute_not_exists(pk)"),
        stored(A),
        tables="Hash",
    ),
    case(
        "a condition is checked against the old item, not the new one",
        put(A),
        put(B, FAILED, ConditionExpression="attribute_exists(y)"),
        tables="Hash",
    ),
    case(
        "ALL_OLD on condition failure returns the item that was found",
        put(A),
        put(
            B,
            Fails("ConditionalCheckFailedException", "The conditional request failed", {"Item": A}),
            ConditionExpression="attribute_not_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ),
        tables="Hash",
    ),
    *(
        case(
            f"condition failure {title}",
            *seed,
            put(
                B,
                Fails("ConditionalCheckFailedException", "The conditional request failed", {"Item": None}),
                ConditionExpression="attribute_exists(nope)",
                **more,
            ),
            tables="Hash",
        )
        for title, seed, more in (
            ("with NONE returns no item", (put(A),), {"ReturnValuesOnConditionCheckFailure": "NONE"}),
            ("returns no item by default", (put(A),), {}),
            ("with ALL_OLD on no item returns none", (), {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
        )
    ),
    case(
        "ALL_OLD on condition failure adds nothing to a success",
        put(A),
        put(
            B,
            {},
            ConditionExpression="attribute_exists(pk)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ),
        tables="Hash",
    ),
    case(
        "Expected and ConditionExpression exclude each other",
        put(
            A,
            counted(
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {Expected} Expression parameters: {ConditionExpression}",
                evidence.MIXED,
            ),
            ConditionExpression="attribute_exists(pk)",
            Expected={"pk": {"Exists": False}},
        ),
        tables="Hash",
    ),
    case(
        "attribute names without an expression are rejected",
        put(
            A,
            counted(
                "ExpressionAttributeNames can only be specified when using expressions",
                evidence.WITHOUT_EXPRESSION,
            ),
            ExpressionAttributeNames={"#a": "a"},
        ),
        tables="Hash",
    ),
    case(
        "attribute values without an expression are rejected",
        put(
            A,
            counted(
                "ExpressionAttributeValues can only be specified when using expressions",
                evidence.WITHOUT_EXPRESSION,
                older="ExpressionAttributeValues can only be specified when using expressions: "
                "ConditionExpression is null",
            ),
            ExpressionAttributeValues={":a": {"S": "a"}},
        ),
        tables="Hash",
    ),
]

CAPACITIES = "satisfy enum value set: [INDEXES, TOTAL, NONE]"
METRICS = "satisfy enum value set: [SIZE, NONE]"
VALUES = "satisfy enum value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]"
PATTERN = "satisfy regular expression pattern: [a-zA-Z0-9_.-]+"
CONSTRAINTS = [
    *(
        case(
            f"rejected: {title}",
            Step(
                "PutItem",
                {
                    name: member
                    for name, member in {"TableName": "Hash", "Item": KEY, **change}.items()
                    if member is not None
                },
                invalid(f"1 validation error detected: {constraint(value, path, rule)}"),
            ),
            tables="Hash",
            local=local,
        )
        for title, change, value, path, rule, local in (
            (
                "no table name",
                {"TableName": None},
                "null",
                "tableName",
                "not be null",
                "omits the error count",
            ),
            ("no item", {"Item": None}, "null", "item", "not be null", LOCAL_TEXT),
            (
                "a table name of 256 characters",
                {"TableName": "a" * 256},
                f"'{'a' * 256}'",
                "tableName",
                "have length less than or equal to 255",
                LOCAL_TEXT,
            ),
            (
                "a table name with a semicolon",
                {"TableName": "abc;"},
                "'abc;'",
                "tableName",
                PATTERN,
                LOCAL_TEXT,
            ),
            (
                "an unknown ReturnConsumedCapacity",
                {"ReturnConsumedCapacity": "hi"},
                "'hi'",
                "returnConsumedCapacity",
                CAPACITIES,
                LOCAL_ENUM,
            ),
            (
                "an unknown ReturnItemCollectionMetrics",
                {"ReturnItemCollectionMetrics": "hi"},
                "'hi'",
                "returnItemCollectionMetrics",
                METRICS,
                LOCAL_ENUM,
            ),
            (
                "an unknown ReturnValuesOnConditionCheckFailure",
                {"ReturnValuesOnConditionCheckFailure": "ALL_NEW"},
                "'ALL_NEW'",
                "returnValuesOnConditionCheckFailure",
                "satisfy enum value set: [ALL_OLD, NONE]",
                "",
            ),
        )
    ),
    case(
        "all broken constraints are reported together, except the table's name",
        Step(
            "PutItem",
            {
                "TableName": "abc;",
                "ReturnConsumedCapacity": "hi",
                "ReturnItemCollectionMetrics": "hi",
                "ReturnValues": "hi",
            },
            invalid(
                "4 validation errors detected: "
                + "; ".join(
                    (
                        constraint("'hi'", "returnConsumedCapacity", CAPACITIES),
                        constraint("null", "item", "not be null"),
                        constraint("'hi'", "returnValues", VALUES),
                        constraint("'hi'", "returnItemCollectionMetrics", METRICS),
                    )
                )
            ),
        ),
        local=LOCAL_TEXT,
    ),
]

ORDER = [
    case(
        "a missing table is reported after the request is valid", put(A, NOT_FOUND, "Nope"), local=LOCAL_TEXT
    ),
    case(
        "a bad value is reported before a missing table",
        put(
            {"x": {}},
            EMPTY,
            "Nope",
        ),
        local=LOCAL_TABLE,
    ),
    case(
        "a bad value is reported before a bad return value",
        put(
            {"x": {}},
            EMPTY,
            ReturnValues="ALL_NEW",
        ),
        tables="Hash",
        local="checks ReturnValues first",
    ),
    case(
        "a bad return value is reported before a bad expression",
        put(
            A,
            counted("ReturnValues can only be ALL_OLD or NONE", evidence.RETURN_VALUES),
            ReturnValues="ALL_NEW",
            ConditionExpression="",
        ),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "a bad expression is reported before a missing table",
        put(
            A,
            counted(
                "Invalid ConditionExpression: The expression can not be empty;", evidence.EMPTY_EXPRESSION
            ),
            "Nope",
            ConditionExpression="",
        ),
        local=LOCAL_TABLE,
    ),
    case(
        "a missing key is reported before the condition is evaluated",
        put(
            {"x": {"N": "1"}},
            invalid(f"{INVALID}Missing the key pk in the item"),
            ConditionExpression="attribute_exists(pk)",
        ),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "an item too large is reported before a missing table",
        put(sized(409_601), invalid("Item size has exceeded the maximum allowed size"), "Nope"),
        local=LOCAL_TABLE,
    ),
]

KEYS = [
    case(
        "an item without its partition key is rejected",
        put({"x": {"S": "a"}}, invalid(f"{INVALID}Missing the key pk in the item")),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "an item without its sort key is rejected",
        put(KEY, invalid(f"{INVALID}Missing the key sk in the item"), "Pair"),
        tables="Pair",
        local=LOCAL_TEXT,
    ),
    *(
        case(
            f"a key of type {actual} where S is declared is rejected",
            put(
                {"pk": {actual: value}},
                invalid(f"{INVALID}Type mismatch for key pk expected: S actual: {actual}"),
            ),
            tables="Hash",
            local="does not name the key and the types",
        )
        for actual, value in (
            ("N", "1"),
            ("B", "YQ=="),
            ("BOOL", True),
            ("NULL", True),
            ("SS", ["a"]),
            ("L", []),
            ("M", {}),
        )
    ),
    case(
        "an empty string is not a partition key",
        put(
            {"pk": {"S": ""}},
            invalid(
                f"{NOT_VALID}The AttributeValue for a key attribute cannot contain an empty string value. "
                "Key: pk"
            ),
        ),
        tables="Hash",
    ),
    case(
        "an empty binary is not a sort key",
        put(
            {**KEY, "sk": {"B": ""}},
            invalid(
                f"{NOT_VALID}The AttributeValue for a key attribute cannot contain an empty binary value. "
                "Key: sk"
            ),
            "BinarySort",
        ),
        tables="BinarySort",
    ),
    case("a partition key may have 2048 bytes", put({"pk": {"S": "x" * 2048}}, {}), tables="Hash"),
    *(
        case(
            f"a partition key of more than 2048 {what} is rejected",
            put(
                {"pk": {"S": text}},
                invalid(f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"),
            ),
            tables="Hash",
            local=LOCAL_TEXT,
        )
        for what, text in (("characters", "x" * 2049), ("bytes in 1025 characters", "é" * 1025))
    ),
    case("a sort key may have 1024 bytes", put({**KEY, "sk": {"S": "x" * 1024}}, {}, "Pair"), tables="Pair"),
    case(
        "a sort key of more than 1024 bytes is rejected",
        put(
            {**KEY, "sk": {"S": "x" * 1025}},
            invalid(f"{INVALID}Aggregated size of all range keys has exceeded the size limit of 1024 bytes"),
            "Pair",
        ),
        tables="Pair",
        local=LOCAL_TEXT,
    ),
    case(
        "a binary sort key counts its bytes, not its base64",
        put({**KEY, "sk": {"B": "eHh4" * 341}}, {}, "BinarySort"),
        tables="BinarySort",
    ),
    *(
        case(
            f"an index key {name} of type {actual} is rejected",
            put(
                {**PAIR, name: {actual: value}},
                invalid(
                    f"{INVALID}Type mismatch for Index Key {name} Expected: N Actual: {actual} "
                    f"IndexName: {index}"
                ),
                "Indexed",
            ),
            tables="Indexed",
            local="does not name the key, the types and the index",
        )
        for name, actual, value, index in (("gs", "S", "1", "gall"), ("gs", "NULL", True, "gall"))
    ),
    case(
        "an empty binary is not an index key",
        put(
            {**PAIR, "gb": {"B": ""}},
            invalid(
                f"{NOT_VALID}A value specified for a secondary index key is not supported. "
                "The AttributeValue for a key attribute cannot contain an empty binary value. "
                "IndexName: gbin, IndexKey: gb"
            ),
            "Indexed",
        ),
        tables="Indexed",
    ),
    case("a missing index key is not an error", put(PAIR, {}, "Indexed"), tables="Indexed"),
]

SIZES = [
    case("an item of 409600 bytes is stored", put(sized(409_600), {}), tables="Hash"),
    case(
        "an item of 409601 bytes is rejected",
        put(sized(409_601), invalid("Item size has exceeded the maximum allowed size")),
        absent(),
        tables="Hash",
    ),
    case(
        "attribute names count towards the size of an item",
        put(
            {**KEY, "n" * 60_000: {"S": "x" * 349_598}},
            invalid("Item size has exceeded the maximum allowed size"),
        ),
        tables="Hash",
    ),
]

CAPACITY = [
    case(
        "capacity is not reported unless asked for", put(A, {}, ReturnConsumedCapacity="NONE"), tables="Hash"
    ),
    *(
        case(
            f"putting {size} bytes costs {cost} units",
            put(sized(size), capacity(cost), ReturnConsumedCapacity="TOTAL"),
            tables="Hash",
        )
        for size, cost in ((10, 1), (1024, 1), (1025, 2), (2048, 2), (10_241, 11))
    ),
    case(
        "INDEXES reports the table's share",
        put(A, capacity(1, Table=units(1)), ReturnConsumedCapacity="INDEXES"),
        tables="Hash",
    ),
    case(
        "a put costs the old item when that is larger",
        put(sized(3000)),
        put(A, capacity(3), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "INDEXES reports the share of every index that the item enters",
        put(INDEXED, capacity(6, "Indexed", **ALL_ARMS), "Indexed", ReturnConsumedCapacity="INDEXES"),
        tables="Indexed",
    ),
    case(
        "TOTAL includes the indexes",
        put(INDEXED, capacity(6, "Indexed"), "Indexed", ReturnConsumedCapacity="TOTAL"),
        tables="Indexed",
    ),
    case(
        "an index that the item does not enter costs nothing and is not reported",
        put(PAIR, capacity(1, "Indexed", Table=units(1)), "Indexed", ReturnConsumedCapacity="INDEXES"),
        tables="Indexed",
    ),
    case(
        "putting the same item again costs no index anything",
        put(INDEXED, None, "Indexed"),
        put(INDEXED, capacity(1, "Indexed", Table=units(1)), "Indexed", ReturnConsumedCapacity="INDEXES"),
        tables="Indexed",
    ),
    case(
        "moving an item within an index costs that index two writes",
        put({**PAIR, "ln": {"N": "1"}}, None, "Indexed"),
        put(
            {**PAIR, "ln": {"N": "2"}},
            capacity(3, "Indexed", Table=units(1), LocalSecondaryIndexes={"lkeys": units(2)}),
            "Indexed",
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Indexed",
    ),
    case(
        "SIZE reports the item collection of a table with local indexes",
        put(
            PAIR,
            {"ItemCollectionMetrics": {"ItemCollectionKey": KEY, "SizeEstimateRangeGB": [0, 1]}},
            "Indexed",
            ReturnItemCollectionMetrics="SIZE",
        ),
        tables="Indexed",
        local="returns no item collection metrics",
    ),
    case(
        "a table without local indexes has no item collections to report",
        put(PAIR, {}, "Pair", ReturnItemCollectionMetrics="SIZE"),
        tables="Pair",
    ),
    case(
        "NONE reports no item collection",
        put(PAIR, {}, "Indexed", ReturnItemCollectionMetrics="NONE"),
        tables="Indexed",
    ),
]

CASES: list[Case] = [*REPLIES, *CONDITIONS, *CONSTRAINTS, *ORDER, *KEYS, *SIZES, *CAPACITY]
