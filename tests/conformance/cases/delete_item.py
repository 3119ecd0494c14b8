"""What DeleteItem answers: replies, return values, conditions, capacity and refusals."""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
PAIR: Json = {"pk": {"S": "a"}, "sk": {"S": "b"}}
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
INVALID = "One or more parameter values were invalid: "
LOCAL_TEXT = "has a different text"
LOCAL_TABLE = "looks up the table first"
LOCAL_UNASKED = "returns the capacity without a request for it if the item does not exist"


def put(item: Json, table: str = "Hash") -> Step:
    return Step("PutItem", {"TableName": table, "Item": item}, {})


def delete(key: Any, expect: Expectation, table: str = "Hash", **more: Any) -> Step:
    return Step("DeleteItem", {"TableName": table, "Key": key, **more}, expect)


def get(expect: Json, table: str = "Hash", key: Json = KEY) -> Step:
    return Step("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True}, expect)


def sized(bytes_: int) -> Json:
    """An item of exactly this many bytes in table Hash."""
    return {**KEY, "d": {"S": "x" * (bytes_ - 4)}}


def capacity(units: float, table: str = "Hash", **arms: Any) -> Json:
    return {"ConsumedCapacity": {"TableName": table, "CapacityUnits": units, **arms}}


def units(number: float) -> Json:
    return {"CapacityUnits": number}


def one(value: str, member: str, rule: str) -> Fails:
    return invalid(
        f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: "
        f"Member must {rule}"
    )


def failed(item: Json | None) -> Fails:
    return Fails(FAILED.code, FAILED.message, {"Item": item})


A: Json = {**KEY, "x": {"N": "1"}}
INDEXED: Json = {**PAIR, "gp": {"S": "g"}, "gs": {"N": "1"}, "ls": {"S": "l"}}

REPLIES = [
    case("a delete answers an empty object", put(A), delete(KEY, {}), get({}), tables="Hash"),
    case("deleting a missing item is not an error", delete(KEY, {}), tables="Hash", local=LOCAL_UNASKED),
    case(
        "a delete takes one item of its partition",
        put(PAIR, "Pair"),
        put({**PAIR, "sk": {"S": "c"}}, "Pair"),
        delete(PAIR, {}, "Pair"),
        get({}, "Pair", PAIR),
        get({"Item": {**PAIR, "sk": {"S": "c"}}}, "Pair", {**PAIR, "sk": {"S": "c"}}),
        tables="Pair",
    ),
    case("NONE returns no attributes", put(A), delete(KEY, {}, ReturnValues="NONE"), tables="Hash"),
    case(
        "ALL_OLD returns the deleted item",
        put(A),
        delete(KEY, {"Attributes": A}, ReturnValues="ALL_OLD"),
        tables="Hash",
    ),
    case(
        "ALL_OLD without an item has no Attributes",
        delete(KEY, {}, ReturnValues="ALL_OLD"),
        tables="Hash",
        local=LOCAL_UNASKED,
    ),
    *(
        case(
            f"{value} is not a return value of a delete",
            put(A),
            delete(
                KEY,
                counted("ReturnValues can only be ALL_OLD or NONE", evidence.RETURN_VALUES),
                ReturnValues=value,
            ),
            get({"Item": A}),
            tables="Hash",
            local=LOCAL_TEXT,
        )
        for value in ("ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
    ),
]

CONDITIONS = [
    case(
        "a condition that holds lets the delete through",
        put(A),
        delete(KEY, {}, ConditionExpression="x = :one", ExpressionAttributeValues={":one": {"N": "1.0"}}),
        get({}),
        tables="Hash",
    ),
    case(
        "a condition that fails leaves the item",
        put(A),
        delete(KEY, FAILED, ConditionExpression="attribute_exists(y)"),
        get({"Item": A}),
        tables="Hash",
    ),
    case(
        "a condition can require that an item is there to delete",
        delete(KEY, FAILED, ConditionExpression="attribute_exists(pk)"),
        tables="Hash",
    ),
    case(
        "a condition that holds for a missing item deletes nothing",
        delete(KEY, {}, ConditionExpression="attribute_not_exists(pk)"),
        tables="Hash",
        local=LOCAL_UNASKED,
    ),
    case(
        "ALL_OLD on condition failure returns the item",
        put(A),
        delete(
            KEY,
            failed(A),
            ConditionExpression="attribute_exists(y)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ),
        tables="Hash",
    ),
    case(
        "NONE on condition failure returns no item",
        put(A),
        delete(
            KEY,
            failed(None),
            ConditionExpression="attribute_exists(y)",
            ReturnValuesOnConditionCheckFailure="NONE",
        ),
        tables="Hash",
    ),
    case(
        "ALL_OLD on condition failure without an item returns none",
        delete(
            KEY,
            failed(None),
            ConditionExpression="attribute_exists(y)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        ),
        tables="Hash",
    ),
    case(
        "Expected and ConditionExpression exclude each other",
        delete(
            KEY,
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
        "attribute values without an expression are rejected",
        delete(
            KEY,
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

REFUSALS = [
    case(
        "a missing table",
        delete(KEY, Fails("ResourceNotFoundException", "Requested resource not found"), "Nope"),
        local=LOCAL_TEXT,
    ),
    case(
        "no table name",
        Step("DeleteItem", {"Key": KEY}, one("null", "tableName", "not be null")),
        local="omits the error count",
    ),
    case(
        "no key",
        Step("DeleteItem", {"TableName": "Hash"}, one("null", "key", "not be null")),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "an unknown ReturnValuesOnConditionCheckFailure",
        delete(
            KEY,
            one("'hi'", "returnValuesOnConditionCheckFailure", "satisfy enum value set: [ALL_OLD, NONE]"),
            ReturnValuesOnConditionCheckFailure="hi",
        ),
        tables="Hash",
    ),
    *(
        case(
            f"a key {title} does not match the schema",
            delete(key, invalid("The provided key element does not match the schema"), table),
            tables=table,
            local=LOCAL_TEXT,
        )
        for title, key, table in (
            ("without attributes", {}, "Hash"),
            ("with an attribute too many", {**KEY, "b": {"S": "a"}}, "Hash"),
            ("of the wrong type", {"pk": {"N": "1"}}, "Hash"),
            ("without its sort part", KEY, "Pair"),
        )
    ),
    case(
        "an empty string is not a key to delete",
        delete(
            {"pk": {"S": ""}},
            invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute "
                "cannot contain an empty string value. Key: pk"
            ),
        ),
        tables="Hash",
    ),
    case(
        "a partition key of more than 2048 bytes is rejected",
        delete(
            {"pk": {"S": "x" * 2049}},
            invalid(f"{INVALID}Size of hashkey has exceeded the maximum size limit of2048 bytes"),
        ),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "a bad expression is reported before a missing table",
        delete(
            KEY,
            counted(
                "Invalid ConditionExpression: The expression can not be empty;", evidence.EMPTY_EXPRESSION
            ),
            "Nope",
            ConditionExpression="",
        ),
        local=LOCAL_TABLE,
    ),
    case(
        "a wrong key is reported before the condition is evaluated",
        delete(
            {},
            invalid("The provided key element does not match the schema"),
            ConditionExpression="attribute_exists(pk)",
        ),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
]

CAPACITY = [
    *(
        case(
            f"deleting {what} costs {cost} units",
            *seed,
            delete(KEY, capacity(cost), ReturnConsumedCapacity="TOTAL"),
            tables="Hash",
        )
        for what, seed, cost in (
            ("nothing", (), 1),
            ("1024 bytes", (put(sized(1024)),), 1),
            ("1025 bytes", (put(sized(1025)),), 2),
            ("3000 bytes", (put(sized(3000)),), 3),
        )
    ),
    case(
        "a delete costs every index that the item was in",
        put(INDEXED, "Indexed"),
        delete(
            PAIR,
            capacity(
                6,
                "Indexed",
                Table=units(1),
                GlobalSecondaryIndexes={"gall": units(1), "gkeys": units(1), "ginc": units(1)},
                LocalSecondaryIndexes={"lall": units(1), "linc": units(1)},
            ),
            "Indexed",
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Indexed",
    ),
    case(
        "a delete of an item in no index reports the table alone",
        put(PAIR, "Indexed"),
        delete(PAIR, capacity(1, "Indexed", Table=units(1)), "Indexed", ReturnConsumedCapacity="INDEXES"),
        tables="Indexed",
    ),
    case(
        "SIZE reports the item collection of a table with local indexes",
        put(PAIR, "Indexed"),
        delete(
            PAIR,
            {"ItemCollectionMetrics": {"ItemCollectionKey": KEY, "SizeEstimateRangeGB": [0, 1]}},
            "Indexed",
            ReturnItemCollectionMetrics="SIZE",
        ),
        tables="Indexed",
        local="returns no item collection metrics",
    ),
    case(
        "attributes, capacity and the old item come in one answer",
        put(A),
        delete(
            KEY,
            {"Attributes": A, **capacity(1)},
            ReturnValues="ALL_OLD",
            ReturnConsumedCapacity="TOTAL",
        ),
        tables="Hash",
    ),
]

CASES: list[Case] = [*REPLIES, *CONDITIONS, *REFUSALS, *CAPACITY]
