"""What UpdateItem answers: what it creates, return values, conditions, capacity and refusals.

The language of update expressions and the legacy AttributeUpdates have their own files.
"""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
PAIR: Json = {"pk": {"S": "a"}, "sk": {"S": "b"}}
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
INVALID = "One or more parameter values were invalid: "
NOT_VALID = "One or more parameter values are not valid. "
PATH = invalid("The document path provided in the update expression is invalid for update")
EMPTY_UPDATE = counted(
    "Invalid UpdateExpression: The expression can not be empty;", evidence.EMPTY_EXPRESSION
)
EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
LOCAL_TEXT = "has a different text"
LOCAL_TABLE = "looks up the table first"
LOCAL_CREATES = "creates the item"
LOCAL_LEAVES = "returns the whole top-level attribute"


def put(item: Json, table: str = "Hash") -> Step:
    return Step("PutItem", {"TableName": table, "Item": item}, {})


def update(
    expression: str | None,
    expect: Expectation | None = None,
    values: Json | None = None,
    *,
    table: str = "Hash",
    key: Any = None,
    **more: Any,
) -> Step:
    request: Json = {"TableName": table, "Key": KEY if key is None else key, **more}
    if expression is not None:
        request["UpdateExpression"] = expression
    if values is not None:
        request["ExpressionAttributeValues"] = values
    return Step("UpdateItem", request, expect)


def get(expect: Json, table: str = "Hash", key: Json = KEY) -> Step:
    return Step("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True}, expect)


def n(number: int) -> Json:
    return {"N": str(number)}


def numbers(*members: int) -> Json:
    return {"L": [n(member) for member in members]}


def capacity(units_: float, table: str = "Hash", **arms: Any) -> Json:
    return {"ConsumedCapacity": {"TableName": table, "CapacityUnits": units_, **arms}}


def units(number: float) -> Json:
    return {"CapacityUnits": number}


def one(value: str, member: str, rule: str) -> Fails:
    return invalid(
        f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: "
        f"Member must {rule}"
    )


V: Json = {":v": n(9)}
S: Json = {":s": {"SS": ["p"]}}
ITEM: Json = {**KEY, "x": n(1), "y": n(2), "doc": {"M": {"p": n(3), "q": numbers(4, 5, 6)}}}

CREATION = [
    case("an update answers an empty object", put(ITEM), update("SET x = :v", {}, V), tables="Hash"),
    case(
        "SET creates a missing item",
        update("SET x = :v", {}, V),
        get({"Item": {**KEY, "x": n(9)}}),
        tables="Hash",
    ),
    case(
        "ADD creates a missing item",
        update("ADD x :v", {}, V),
        get({"Item": {**KEY, "x": n(9)}}),
        tables="Hash",
    ),
    case(
        "an update without an expression creates the key", update(None, {}), get({"Item": KEY}), tables="Hash"
    ),
    case(
        "an update without an expression leaves an item alone",
        put(ITEM),
        update(None, {}),
        get({"Item": ITEM}),
        tables="Hash",
    ),
    case("REMOVE creates no item", update("REMOVE x", {}), get({}), tables="Hash", local=LOCAL_CREATES),
    case("DELETE creates no item", update("DELETE x :s", {}, S), get({}), tables="Hash", local=LOCAL_CREATES),
    case(
        "ALL_NEW of a REMOVE on a missing item has no Attributes",
        update("REMOVE x", {}, ReturnValues="ALL_NEW"),
        tables="Hash",
        local=LOCAL_CREATES,
    ),
    case(
        "REMOVE with SET creates the item",
        update("REMOVE y SET x = :v", {}, V),
        get({"Item": {**KEY, "x": n(9)}}),
        tables="Hash",
    ),
    *(
        case(
            f"{text} on a missing item is silently fine",
            update(text, {}),
            get({}),
            tables="Hash",
            local=local,
        )
        for text, local in (
            ("REMOVE x.y", "rejects the path"),
            ("REMOVE x[0]", "rejects the path"),
        )
    ),
    case("REMOVE x.y on an item without x is rejected", put(KEY), update("REMOVE x.y", PATH), tables="Hash"),
    case("SET x.y on a missing item is rejected", update("SET x.y = :v", PATH, V), get({}), tables="Hash"),
    case(
        "an update keeps the attributes that it does not touch",
        put(ITEM),
        update("SET x = :v", {}, V),
        get({"Item": {**ITEM, "x": n(9)}}),
        tables="Hash",
    ),
]

NEW: Json = {**ITEM, "x": n(9)}
RETURNS = [
    case(
        "UPDATED_NEW shows only the member that ADD has changed",
        put(KEY | {"m": {"M": {"a": n(1), "b": n(2)}}}),
        update(
            "ADD m.a :v",
            {"Attributes": {"m": {"M": {"a": n(2)}}}},
            {":v": n(1)},
            ReturnValues="UPDATED_NEW",
        ),
        tables="Hash",
        local="returns the whole map",
    ),
    *(
        case(
            f"{kind} of an existing item",
            put(ITEM),
            update(
                "SET x = :v, z = :v REMOVE y",
                {"Attributes": attributes} if attributes else {},
                V,
                ReturnValues=kind,
            ),
            tables="Hash",
        )
        for kind, attributes in (
            ("NONE", None),
            ("ALL_OLD", ITEM),
            ("UPDATED_OLD", {"x": n(1), "y": n(2)}),
            ("ALL_NEW", {**KEY, "x": n(9), "z": n(9), "doc": ITEM["doc"]}),
            ("UPDATED_NEW", {"x": n(9), "z": n(9)}),
        )
    ),
    *(
        case(
            f"{kind} of a new item",
            update("SET x = :v", {"Attributes": attributes} if attributes else {}, V, ReturnValues=kind),
            tables="Hash",
        )
        for kind, attributes in (
            ("ALL_OLD", None),
            ("UPDATED_OLD", None),
            ("ALL_NEW", {**KEY, "x": n(9)}),
            ("UPDATED_NEW", {"x": n(9)}),
        )
    ),
    *(
        case(
            f"{kind} after {text}: {title}",
            put(ITEM),
            update(text, reply, V if ":v" in text else None, ReturnValues=kind),
            tables="Hash",
            local=local,
        )
        for kind, text, title, reply, local in (
            ("UPDATED_OLD", "SET z = :v", "a new attribute has no old value", {}, ""),
            ("UPDATED_NEW", "REMOVE x", "a removed attribute has no new value", {}, ""),
            (
                "UPDATED_OLD",
                "SET doc.p = :v",
                "the leaf alone",
                {"Attributes": {"doc": {"M": {"p": n(3)}}}},
                LOCAL_LEAVES,
            ),
            (
                "UPDATED_NEW",
                "SET doc.p = :v",
                "the leaf alone",
                {"Attributes": {"doc": {"M": {"p": n(9)}}}},
                LOCAL_LEAVES,
            ),
            (
                "UPDATED_OLD",
                "SET doc.q[1] = :v",
                "the element alone",
                {"Attributes": {"doc": {"M": {"q": numbers(5)}}}},
                LOCAL_LEAVES,
            ),
            (
                "UPDATED_NEW",
                "SET doc.q[1] = :v, doc.p = :v",
                "all touched leaves",
                {"Attributes": {"doc": {"M": {"p": n(9), "q": numbers(9)}}}},
                LOCAL_LEAVES,
            ),
            ("UPDATED_OLD", "SET doc.r = :v", "a new leaf has no old value", {}, ""),
            ("UPDATED_NEW", "SET doc.q[9] = :v", "past the end of a list is nothing", {}, ""),
            (
                "UPDATED_NEW",
                "REMOVE doc.q[0]",
                "the element that moved into its place",
                {"Attributes": {"doc": {"M": {"q": numbers(5)}}}},
                LOCAL_LEAVES,
            ),
            (
                "UPDATED_OLD",
                "REMOVE doc.q[0], doc.q[7]",
                "only what was there",
                {"Attributes": {"doc": {"M": {"q": numbers(4)}}}},
                LOCAL_LEAVES,
            ),
            ("UPDATED_NEW", "SET x = x + :v", "the sum", {"Attributes": {"x": n(10)}}, ""),
        )
    ),
    *(
        case(
            f"{kind} of an update without an expression",
            put(ITEM),
            update(None, reply, ReturnValues=kind),
            tables="Hash",
        )
        for kind, reply in (
            ("UPDATED_OLD", {}),
            ("UPDATED_NEW", {}),
            ("ALL_OLD", {"Attributes": ITEM}),
            ("ALL_NEW", {"Attributes": ITEM}),
        )
    ),
]

CONDITIONS = [
    case(
        "a condition that fails changes nothing",
        put(ITEM),
        update("SET x = :v", FAILED, V, ConditionExpression="attribute_exists(nope)"),
        get({"Item": ITEM}),
        tables="Hash",
    ),
    case(
        "a condition that fails creates nothing",
        update("SET x = :v", FAILED, V, ConditionExpression="attribute_exists(pk)"),
        get({}),
        tables="Hash",
    ),
    case(
        "a condition sees the item before the update",
        put(ITEM),
        update("SET x = :v", {}, V, ConditionExpression="x < :v"),
        tables="Hash",
    ),
    case(
        "a failed condition is reported before an update that cannot be applied",
        put(ITEM),
        update("SET nope.x = :v", FAILED, V, ConditionExpression="attribute_exists(nope)"),
        tables="Hash",
    ),
    *(
        case(
            f"condition failure with {setting} returns {'the old item' if item else 'no item'}",
            put(ITEM),
            update(
                "SET x = :v",
                Fails(FAILED.code, FAILED.message, {"Item": item}),
                V,
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure=setting,
            ),
            tables="Hash",
        )
        for setting, item in (("ALL_OLD", ITEM), ("NONE", None))
    ),
    case(
        "names and values may be used by either expression",
        put(ITEM),
        update(
            "SET #x = :v",
            {},
            {**V, ":w": n(2)},
            ConditionExpression="#y = :w",
            ExpressionAttributeNames={"#x": "x", "#y": "y"},
        ),
        tables="Hash",
    ),
    case(
        "a value that neither expression uses is rejected before the condition is checked",
        update(
            "SET x = :v",
            counted(
                "Value provided in ExpressionAttributeValues unused in expressions: keys: {:w}",
                evidence.UNUSED,
            ),
            {**V, ":w": n(2)},
            ConditionExpression="attribute_exists(pk)",
        ),
        tables="Hash",
    ),
]

REFUSALS = [
    *(
        case(
            f"{text} touches the key",
            update(
                text,
                invalid(f"{INVALID}Cannot update attribute pk. This attribute is part of the key"),
                values,
            ),
            tables="Hash",
        )
        for text, values in (
            ("SET pk = :v", V),
            ("REMOVE pk", None),
            ("ADD pk :v", V),
            ("DELETE pk :s", S),
            ("SET pk.x = :v", V),
            ("REMOVE z SET y = :v, pk = :v", V),
        )
    ),
    case(
        "the sort key cannot be updated either",
        update(
            "SET sk = :v",
            invalid(f"{INVALID}Cannot update attribute sk. This attribute is part of the key"),
            V,
            table="Pair",
            key=PAIR,
        ),
        tables="Pair",
    ),
    case(
        "a key has no parts to read",
        update(
            "SET x = pk.y",
            invalid(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
                "Key: pk"
            ),
        ),
        tables="Hash",
    ),
    case(
        "a key may be copied",
        update("SET x = pk", {}),
        get({"Item": {**KEY, "x": {"S": "a"}}}),
        tables="Hash",
    ),
    case(
        "an index key cannot be set to another type",
        update(
            "SET gs = :v",
            invalid(f"{INVALID}Type mismatch for Index Key gs Expected: N Actual: S IndexName: gall"),
            {":v": {"S": "1"}},
            table="Indexed",
            key=PAIR,
        ),
        tables="Indexed",
        local="does not name the key, the types and the index",
    ),
    case(
        "an index key cannot be copied from another type",
        put({**PAIR, "x": {"S": "1"}}, "Indexed"),
        update(
            "SET gs = x",
            invalid("The update expression attempted to update the secondary index key to unsupported type"),
            table="Indexed",
            key=PAIR,
        ),
        tables="Indexed",
        local=LOCAL_TEXT,
    ),
    case(
        "an index key cannot be set to an empty string",
        update(
            "SET gp = :v",
            invalid(
                f"{NOT_VALID}The update expression attempted to update a secondary index key to a value that "
                "is not supported. The AttributeValue for a key attribute cannot contain an empty string value."
            ),
            {":v": {"S": ""}},
            table="Indexed",
            key=PAIR,
        ),
        tables="Indexed",
    ),
    *(
        case(
            f"a key {title} does not match the schema",
            update("SET x = :v", invalid("The provided key element does not match the schema"), V, key=key),
            tables="Hash",
            local=LOCAL_TEXT,
        )
        for title, key in (
            ("of another attribute", {"b": {"S": "a"}}),
            ("with an attribute too many", {**KEY, "b": {"S": "a"}}),
            ("of the wrong type", {"pk": {"N": "1"}}),
        )
    ),
    case(
        "an empty string is not a key to update",
        update(
            "SET x = :v",
            invalid(
                f"{NOT_VALID}The AttributeValue for a key attribute cannot contain an empty string value. "
                "Key: pk"
            ),
            V,
            key={"pk": {"S": ""}},
        ),
        tables="Hash",
    ),
    case(
        "an update may not grow an item beyond 400 KB",
        put(ITEM),
        update(
            "SET big = :v",
            invalid("Item size to update has exceeded the maximum allowed size"),
            {":v": {"S": "x" * 409_600}},
        ),
        get({"Item": ITEM}),
        tables="Hash",
    ),
    case(
        "a missing table",
        update(
            "SET x = :v", Fails("ResourceNotFoundException", "Requested resource not found"), V, table="Nope"
        ),
        local=LOCAL_TEXT,
    ),
    case(
        "no key",
        Step("UpdateItem", {"TableName": "Hash"}, one("null", "key", "not be null")),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "expressions and legacy parameters exclude each other",
        update(
            "SET y = :v",
            counted(
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributeUpdates, Expected} "
                "Expression parameters: {UpdateExpression, ConditionExpression}",
                evidence.MIXED,
            ),
            V,
            ConditionExpression="x = :v",
            AttributeUpdates={"x": {"Value": n(1)}},
            Expected={"x": {"Exists": False}},
        ),
        tables="Hash",
    ),
    case(
        "values need one of the two expressions",
        update(
            None,
            counted(
                "ExpressionAttributeValues can only be specified when using expressions",
                evidence.INFERRED,
                older="ExpressionAttributeValues can only be specified when using expressions: "
                "UpdateExpression and ConditionExpression are null",
            ),
            V,
        ),
        tables="Hash",
    ),
    case(
        "a bad key is reported before a bad expression",
        update("", invalid(EMPTY), key={"pk": {}}),
        tables="Hash",
    ),
    case(
        "a bad update expression is reported before a bad condition",
        update("", EMPTY_UPDATE, ConditionExpression=""),
        tables="Hash",
    ),
    case(
        "a bad condition is reported when the update is valid",
        update(
            "SET x = :v",
            counted(
                "Invalid ConditionExpression: The expression can not be empty;", evidence.EMPTY_EXPRESSION
            ),
            V,
            ConditionExpression="",
        ),
        tables="Hash",
    ),
    case(
        "a bad expression is reported before a missing table",
        update("", EMPTY_UPDATE, table="Nope"),
        local=LOCAL_TABLE,
    ),
]

BIG: Json = {":v": {"S": "x" * 2000}}
INDEXED: Json = {**PAIR, "gp": {"S": "g"}, "x": n(1), "misc": n(1)}
CAPACITY = [
    *(
        case(
            title, *seed, update(text, capacity(cost), values, ReturnConsumedCapacity="TOTAL"), tables="Hash"
        )
        for title, seed, text, values, cost in (
            ("creating a small item costs 1 unit", (), "SET x = :v", V, 1),
            ("an update costs the size of the new item when it grows", (put(ITEM),), "SET big = :v", BIG, 2),
            (
                "an update costs the size of the old item when it shrinks",
                (put({**KEY, "big": BIG[":v"]}),),
                "REMOVE big",
                None,
                2,
            ),
            (
                "an update costs the whole item, not the change",
                (put({**KEY, "big": BIG[":v"]}),),
                "SET x = :v",
                V,
                2,
            ),
            ("an update that changes nothing costs the item", (put(ITEM),), "SET x = x", None, 1),
            ("a REMOVE on a missing item costs 1 unit", (), "REMOVE x", None, 1),
        )
    ),
    case(
        "INDEXES reports the table's share",
        update("SET x = :v", capacity(1, Table=units(1)), V, ReturnConsumedCapacity="INDEXES"),
        tables="Hash",
    ),
    *(
        case(
            title,
            put(INDEXED, "Indexed"),
            update(
                text,
                capacity(
                    1 + sum(shares.values()),
                    "Indexed",
                    Table=units(1),
                    GlobalSecondaryIndexes={name: units(share) for name, share in shares.items()},
                ),
                values,
                table="Indexed",
                key=PAIR,
                ReturnConsumedCapacity="INDEXES",
            ),
            tables="Indexed",
        )
        for title, text, values, shares in (
            ("a change of a projected attribute costs the index one write", "SET x = :v", V, {"ginc": 1}),
            (
                "a change of an index key costs the index two writes",
                "SET gp = :v",
                {":v": {"S": "h"}},
                {"gkeys": 2, "ginc": 2},
            ),
            ("removing an index key costs the index one write", "REMOVE gp", None, {"gkeys": 1, "ginc": 1}),
        )
    ),
    case(
        "a change of an attribute in no index reports the table alone",
        put(INDEXED, "Indexed"),
        update(
            "SET misc = :v",
            capacity(1, "Indexed", Table=units(1)),
            V,
            table="Indexed",
            key=PAIR,
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Indexed",
    ),
    case(
        "SIZE reports the item collection of a table with local indexes",
        update(
            "SET x = :v",
            {"ItemCollectionMetrics": {"ItemCollectionKey": KEY, "SizeEstimateRangeGB": [0, 1]}},
            V,
            table="Indexed",
            key=PAIR,
            ReturnItemCollectionMetrics="SIZE",
        ),
        tables="Indexed",
        local="returns no item collection metrics",
    ),
]

CASES: list[Case] = [*CREATION, *RETURNS, *CONDITIONS, *REFUSALS, *CAPACITY]
