"""Attribute values: numbers, sets, binaries, documents, empties, sizes, and their refusals on the wire."""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid, reworded

KEY: Json = {"pk": {"S": "a"}}
INVALID = "One or more parameter values were invalid: "
EMPTY = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
TWO_TYPES = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes"
NOT_NUMERIC = "The parameter cannot be converted to a numeric value"
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"
PRECISION = "Attempting to store more than 38 significant digits in a Number"
NESTING = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)
NO_NAME = invalid("Empty attribute name")
LOCAL_TEXT = "has a different text"
LOCAL_ZERO = "accepts zero with any exponent"


def put(value: Any, expect: Expectation | None = None, **more: Any) -> Step:
    return Step("PutItem", {"TableName": "Hash", "Item": {**KEY, "v": value}, **more}, expect)


def refused(why: str, captured: str) -> Fails:
    """What a put says of a value; of a number that is the empty string, it said less in 2025."""
    return counted(why, captured, older=why.removesuffix(": "))


def stored(value: Json) -> Step:
    return Step("GetItem", {"TableName": "Hash", "Key": KEY}, {"Item": {**KEY, "v": value}})


def kept(title: str, value: Json, back: Json | None = None) -> Case:
    """A value is stored, and comes back as it was or as `back`."""
    return case(title, put(value, {}), stored(back or value), tables="Hash")


def nested(depth: int) -> Json:
    value: Json = {"S": "leaf"}
    for _ in range(depth):
        value = {"M": {"n": value}}
    return value


NINES = "9" * 38
REASONS = {OVERFLOW: "too large", UNDERFLOW: "too small", PRECISION: "of more than 38 digits"}
NUMBERS = [
    *(
        kept(
            f"the number {text} comes back as {back if len(back) < 40 else 'its digits'}",
            {"N": text},
            {"N": back},
        )
        for text, back in (
            ("0", "0"),
            ("-0", "0"),
            ("0.0", "0"),
            ("0e125", "0"),
            ("+5", "5"),
            ("5.", "5"),
            (".5", "0.5"),
            ("1.e5", "100000"),
            ("001000", "1000"),
            ("1e3", "1000"),
            ("+1000", "1000"),
            ("1E+3", "1000"),
            ("0012.500", "12.5"),
            ("-1.50e-3", "-0.0015"),
            (NINES, NINES),
            ("0000012345678901234567890123456789012345678", "12345678901234567890123456789012345678"),
            ("1.2345678901234567890123456789012345678000", "1.2345678901234567890123456789012345678"),
            ("9.9999999999999999999999999999999999999E+125", NINES + "0" * 88),
            ("-9.9999999999999999999999999999999999999E+125", "-" + NINES + "0" * 88),
            ("1E-130", "0." + "0" * 129 + "1"),
            ("0e-130", "0"),
            ("-1E-130", "-0." + "0" * 129 + "1"),
        )
    ),
    *(
        case(
            f"rejected: {text!r} is {REASONS.get(why, 'not a number')}",
            put({"N": text}, refused(why, evidence.NUMBER)),
            tables="Hash",
            local=local,
        )
        for text, why, local in (
            *(
                (text, f"{NOT_NUMERIC}: {text}", LOCAL_TEXT)
                for text in (
                    "b",
                    "NaN",
                    "Infinity",
                    "-Infinity",
                    " 1",
                    "1 ",
                    "1e",
                    "+",
                    ".",
                    "--1",
                    "0x1",
                    "1_0",
                    "1,5",
                    "1.2.3",
                )
            ),
            ("", f"{NOT_NUMERIC}: ", LOCAL_TEXT),
            ("1e126", OVERFLOW, ""),
            ("-1e126", OVERFLOW, ""),
            ("1e-131", UNDERFLOW, ""),
            ("-1e-131", UNDERFLOW, ""),
            ("0e126", OVERFLOW, LOCAL_ZERO),
            ("0e-131", UNDERFLOW, LOCAL_ZERO),
            ("1e99999999999", OVERFLOW, LOCAL_TEXT),
            ("1e-99999999999", UNDERFLOW, LOCAL_TEXT),
            ("1e9223372036854775808", f"{NOT_NUMERIC}: 1e9223372036854775808", LOCAL_TEXT),
            ("123456789012345678901234567890123456789", PRECISION, LOCAL_TEXT),
            ("-1.23456789012345678901234567890123456789", PRECISION, LOCAL_TEXT),
        )
    ),
    case(
        "a bad number in an expression is rejected",
        Step(
            "DeleteItem",
            {
                "TableName": "Hash",
                "Key": KEY,
                "ConditionExpression": "x = :v",
                "ExpressionAttributeValues": {":v": {"N": "1e126"}},
            },
            counted(
                OVERFLOW,
                evidence.NUMBER,
                older=f"ExpressionAttributeValues contains invalid value: {OVERFLOW} for key :v",
            ),
        ),
        tables="Hash",
    ),
    case(
        "a bad number deep in a document is rejected",
        put({"M": {"x": {"L": [{"N": "b"}]}}}, refused(f"{NOT_NUMERIC}: b", evidence.NUMBER)),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    *(
        case(
            f"the key 1000 is found as {text}",
            Step("PutItem", {"TableName": "NumberHash", "Item": {"pk": {"N": "1000"}}}, {}),
            Step(
                "GetItem",
                {"TableName": "NumberHash", "Key": {"pk": {"N": text}}},
                {"Item": {"pk": {"N": "1000"}}},
            ),
            tables="NumberHash",
        )
        for text in ("1e3", "+1000", "001000", "1000.00")
    ),
    *(
        case(
            f"the number {number} counts {cost} bytes",
            # 1024 bytes with the number, then one more: only an exact cost gives 1 and 2 units.
            *(
                Step(
                    "PutItem",
                    {
                        "TableName": "Hash",
                        "Item": {**KEY, "n": {"N": number}, "d": {"S": "x" * (1024 - 5 - cost + more)}},
                        "ReturnConsumedCapacity": "TOTAL",
                    },
                    {"ConsumedCapacity": {"TableName": "Hash", "CapacityUnits": 1 + more}},
                )
                for more in (0, 1)
            ),
            tables="Hash",
        )
        for number, cost in (
            ("0", 1),
            ("12", 2),
            ("123", 3),
            ("1E125", 2),
            ("1010", 3),
            ("1.5", 3),
            ("3.14159", 5),
            ("100.5", 4),
            ("0.15", 2),
            ("-42", 3),
            ("12345678901234567890123456789012345678", 20),
        )
    ),
]

#: A set with a member twice: the newer words for it, the older ones, and a note on DynamoDB Local. The
#: newer words list the members in order up to the first one that repeats.
DUPLICATES = (
    (
        "a string twice in a set",
        {"SS": ["b", "a", "b"]},
        '["a", "b", "b"] contains duplicates',
        f"{INVALID}Input collection [b, a, b] contains duplicates.",
        "omits the final full stop",
    ),
    (
        "a number twice in a set",
        {"NS": ["1", "1"]},
        "contains duplicates",
        "Input collection contains duplicates",
        "",
    ),
    (
        "a number twice in a set, written in two ways",
        {"NS": ["1000", "1e3"]},
        "contains duplicates",
        "Input collection contains duplicates",
        "",
    ),
    (
        "a binary twice in a set",
        {"BS": ["/w==", "AA==", "AA=="]},
        '["AA==","/w==","AA=="]of type BS contains duplicates',
        f"{INVALID}Input collection [/w==, AA==, AA==]of type BS contains duplicates.",
        "does not show the members",
    ),
)


def keyed(value: Json) -> Json:
    return {"TableName": "Hash", "Key": {"pk": value}}


def filtered(value: Json, **more: Any) -> Json:
    """A Query, or with the members of `more` a Scan, whose filter has this value."""
    query: Json = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
    members = more or query
    values = {**members.get("ExpressionAttributeValues", {}), ":v": value}
    return {
        "TableName": "Hash",
        **members,
        "FilterExpression": "v = :v",
        "ExpressionAttributeValues": values,
    }


def of_value(why: str) -> str:
    return f"ExpressionAttributeValues contains invalid value: {why} for key :v"


SETS = [
    kept("a set of strings is kept", {"SS": ["b", "a"]}),
    kept("a set of numbers is kept by value", {"NS": ["1.0", "2e1"]}, {"NS": ["1", "20"]}),
    kept("a set of binaries is kept", {"BS": ["Yg==", "YQ=="]}),
    kept("a set of strings may hold the empty one", {"SS": ["", "a"]}),
    kept("a set of binaries may hold the empty one", {"BS": ["", "YQ=="]}),
    *(
        case(f"rejected: {title}", put(value, refused(why, captured)), tables="Hash", local=local)
        for title, value, why, captured, local in (
            (
                "an empty set of strings",
                {"SS": []},
                f"{INVALID}An string set  may not be empty",
                evidence.EMPTY_SET,
                "",
            ),
            (
                "an empty set of numbers",
                {"NS": []},
                f"{INVALID}An number set  may not be empty",
                evidence.EMPTY_SET,
                "",
            ),
            (
                "an empty set of binaries",
                {"BS": []},
                f"{INVALID}Binary sets should not be empty",
                evidence.EMPTY_SET,
                "",
            ),
            (
                "an empty set within a map",
                {"M": {"x": {"SS": []}}},
                f"{INVALID}An string set  may not be empty",
                evidence.EMPTY_SET,
                "",
            ),
            ("a bad number in a set", {"NS": ["1", "b"]}, f"{NOT_NUMERIC}: b", evidence.NUMBER, LOCAL_TEXT),
            ("an empty number in a set", {"NS": ["1", ""]}, f"{NOT_NUMERIC}: ", evidence.NUMBER, LOCAL_TEXT),
        )
    ),
    *(
        case(
            f"rejected: {title}",
            put(
                value,
                counted(f"{INVALID}Input collection {newer}.", evidence.DUPLICATES, older=older),
            ),
            tables="Hash",
            local=local,
        )
        for title, value, newer, older, local in DUPLICATES
    ),
    # The reads have the newer words without the count; of the writes in batches and transactions,
    # nothing has changed.
    *(
        case(
            f"{operation} rejects {title}",
            Step(operation, request(value), expect),
            tables="Hash",
            local=local,
        )
        for title, value, newer, older, local in DUPLICATES
        for operation, request, expect in (
            ("GetItem", keyed, reworded(older, f"{INVALID}Input collection {newer}.", evidence.DUPLICATES)),
            (
                "BatchGetItem",
                lambda value: {"RequestItems": {"Hash": {"Keys": [{"pk": value}]}}},
                reworded(older, f"{INVALID}Input collection {newer}.", evidence.DUPLICATES),
            ),
            (
                "Query",
                filtered,
                reworded(of_value(older), f"{INVALID}Input collection {newer}.", evidence.DUPLICATES),
            ),
            ("Scan", lambda value: filtered(value, Select="COUNT"), invalid(of_value(older))),
            (
                "BatchWriteItem",
                lambda value: {"RequestItems": {"Hash": [{"PutRequest": {"Item": {**KEY, "v": value}}}]}},
                invalid(older),
            ),
            (
                "TransactWriteItems",
                lambda value: {
                    "TransactItems": [{"Put": {"TableName": "Hash", "Item": {**KEY, "v": value}}}]
                },
                invalid(older),
            ),
            (
                "TransactGetItems",
                lambda value: {"TransactItems": [{"Get": keyed(value)}]},
                invalid(older),
            ),
        )
    ),
]

EMPTY_NUMBER = {"N": ""}
READS = [
    case(
        f"{operation} rejects the empty number", Step(operation, request, expect), tables="Hash", local=local
    )
    for operation, request, expect, local in (
        (
            "GetItem",
            keyed(EMPTY_NUMBER),
            reworded(NOT_NUMERIC, f"{NOT_NUMERIC}: ", evidence.NUMBER),
            LOCAL_TEXT,
        ),
        (
            "BatchGetItem",
            {"RequestItems": {"Hash": {"Keys": [{"pk": EMPTY_NUMBER}]}}},
            reworded(NOT_NUMERIC, f"{NOT_NUMERIC}: ", evidence.NUMBER),
            LOCAL_TEXT,
        ),
        (
            "Query",
            filtered(EMPTY_NUMBER),
            reworded(of_value(NOT_NUMERIC), f"{NOT_NUMERIC}: ", evidence.NUMBER),
            LOCAL_TEXT,
        ),
        ("Scan", filtered(EMPTY_NUMBER, Select="COUNT"), invalid(of_value(NOT_NUMERIC)), LOCAL_TEXT),
        (
            "BatchWriteItem",
            {"RequestItems": {"Hash": [{"PutRequest": {"Item": {**KEY, "v": EMPTY_NUMBER}}}]}},
            invalid(NOT_NUMERIC),
            LOCAL_TEXT,
        ),
        (
            "TransactGetItems",
            {"TransactItems": [{"Get": keyed(EMPTY_NUMBER)}]},
            invalid(NOT_NUMERIC),
            LOCAL_TEXT,
        ),
    )
]

DOCUMENTS = [
    kept("an empty string is kept", {"S": ""}),
    kept("an empty binary is kept", {"B": ""}),
    kept("an empty list is kept", {"L": []}),
    kept("an empty map is kept", {"M": {}}),
    kept(
        "empty values within a document are kept", {"M": {"s": {"S": ""}, "l": {"L": [{"B": ""}, {"M": {}}]}}}
    ),
    kept("a null is kept", {"NULL": True}),
    kept("booleans are kept", {"L": [{"BOOL": True}, {"BOOL": False}]}),
    kept("a list keeps its order and its duplicates", {"L": [{"N": "2"}, {"N": "1"}, {"N": "2"}]}),
    kept("text is kept as it is", {"S": '\u0000\n\t"\\ \u00e9 e\u0301 \ufeff \U0001f600'}),
    kept("binaries are kept byte for byte", {"B": "AAECA/3+/w=="}),
    kept(
        "every type is kept within a map",
        {
            "M": {
                "s": {"S": "a"},
                "n": {"N": "-56.789"},
                "b": {"B": "Yg=="},
                "t": {"BOOL": False},
                "z": {"NULL": True},
                "ss": {"SS": ["a"]},
                "ns": {"NS": ["-56.789"]},
                "bs": {"BS": ["Yg=="]},
                "l": {"L": [{"L": [{"M": {}}]}]},
                "m": {"M": {"m": {"M": {}}}},
            }
        },
    ),
    kept(
        "names with any character are kept", {"M": {"a.b[0] #:\u00e9\U0001f600": {"N": "1"}, " ": {"N": "2"}}}
    ),
    kept("a document of 31 maps is kept", nested(31)),
    case(
        "rejected: a document of 32 maps", put(nested(32), counted(NESTING, evidence.NESTING)), tables="Hash"
    ),
    case(
        "rejected: a document of 32 lists",
        put({"L": [nested(31)]}, counted(NESTING, evidence.NESTING)),
        tables="Hash",
    ),
    *(
        case(f"rejected: {title}", put(value, refusal), tables="Hash")
        for title, value, refusal in (
            ("a value without a type", {}, invalid(EMPTY)),
            ("a value of an unknown type", {"X": "a"}, invalid(EMPTY)),
            ("a map with a value without a type", {"M": {"a": {}}}, invalid(EMPTY)),
            ("a list with a value without a type", {"L": [{}]}, invalid(EMPTY)),
            ("a value of two types", {"S": "a", "N": "1"}, invalid(TWO_TYPES)),
            (
                "a false null",
                {"NULL": False},
                counted(
                    f"{INVALID}Null attribute value types must have the value of true", evidence.FALSE_NULL
                ),
            ),
            ("an empty name in a map", {"M": {"": {"S": "a"}}}, NO_NAME),
        )
    ),
    case(
        "rejected: an empty attribute name",
        Step("PutItem", {"TableName": "Hash", "Item": {**KEY, "": {"S": "a"}}}, NO_NAME),
        tables="Hash",
    ),
    case(
        "an attribute name may have 65535 bytes",
        Step("PutItem", {"TableName": "Hash", "Item": {**KEY, "n" * 65_535: {"S": "a"}}}, {}),
        tables="Hash",
    ),
    case(
        "rejected: an attribute name of 65536 bytes",
        Step(
            "PutItem",
            {"TableName": "Hash", "Item": {**KEY, "n" * 65_536: {"S": "a"}}},
            invalid("Attribute name is too large, must be less than 65536 bytes"),
        ),
        tables="Hash",
    ),
    *(
        case(
            f"{title} counts {cost} bytes",
            # 1024 bytes with the value, then one more: only an exact cost gives 1 and 2 units.
            *(
                Step(
                    "PutItem",
                    {
                        "TableName": "Hash",
                        "Item": {**KEY, "v": value, "d": {"S": "x" * (1024 - 5 - cost + more)}},
                        "ReturnConsumedCapacity": "TOTAL",
                    },
                    {"ConsumedCapacity": {"TableName": "Hash", "CapacityUnits": 1 + more}},
                )
                for more in (0, 1)
            ),
            tables="Hash",
        )
        for title, value, cost in (
            ("a text of two characters in five bytes", {"S": "e\U0001f600"}, 5),
            ("a binary of two bytes", {"B": "AQI="}, 2),
            ("a boolean", {"BOOL": False}, 1),
            ("a null", {"NULL": True}, 1),
            ("a set of strings", {"SS": ["a", "bcd"]}, 4),
            ("a set of binaries", {"BS": ["AQI=", "AQ=="]}, 3),
            ("an empty list", {"L": []}, 3),
            ("an empty map", {"M": {}}, 3),
            ("a list of two strings", {"L": [{"S": "a"}, {"S": "aa"}]}, 8),
            ("a map of two strings", {"M": {"aa": {"S": "aa"}, "bbb": {"S": "bbb"}}}, 15),
        )
    ),
]


def unreadable(title: str, value: Any, message: str, local: str) -> Case:
    return case(
        f"cannot be read: {title}",
        put(value, Fails("SerializationException", message)),
        tables="Hash",
        local=local,
    )


CONVERTS = "converts the value"
FAILS = "fails with an internal error"
COLLECTION = "Unrecognized collection type "
MODEL = "com.amazonaws.dynamodb.v20120810.AttributeValue"
WIRE = [
    unreadable(
        "a number that is not a string", {"N": 123}, "NUMBER_VALUE cannot be converted to String", CONVERTS
    ),
    unreadable(
        "a decimal where a string should be",
        {"S": 34.56},
        "DECIMAL_VALUE cannot be converted to String",
        CONVERTS,
    ),
    unreadable(
        "a boolean where a string should be",
        {"S": True},
        "TRUE_VALUE cannot be converted to String",
        CONVERTS,
    ),
    unreadable("a list where a string should be", {"S": []}, f"{COLLECTION}class java.lang.String", FAILS),
    unreadable(
        "a map where a string should be",
        {"S": {}},
        "Start of structure or map found where not expected",
        FAILS,
    ),
    unreadable(
        "a number where a binary should be",
        {"B": 23},
        "only base-64-encoded strings are convertible to bytes",
        FAILS,
    ),
    unreadable(
        "base64 of a length that is not a multiple of four",
        {"B": "23456"},
        "Base64 encoded length is expected a multiple of 4 bytes but found: 5",
        FAILS,
    ),
    unreadable(
        "base64 with bits left over",
        {"B": "+/+="},
        "Invalid last non-pad Base64 character dectected",
        "ignores the extra bits",
    ),
    unreadable(
        "a number where a boolean should be",
        {"BOOL": 23},
        "NUMBER_VALUE cannot be converted to Boolean",
        CONVERTS,
    ),
    unreadable(
        "a word where a boolean should be", {"BOOL": "23"}, "Unexpected token received from parser", FAILS
    ),
    unreadable("a string where a set should be", {"SS": "23"}, "Unexpected field type", FAILS),
    unreadable(
        "a number within a set of strings",
        {"SS": [23]},
        "NUMBER_VALUE cannot be converted to String",
        CONVERTS,
    ),
    unreadable(
        "a map where a list should be", {"L": {}}, "Start of structure or map found where not expected", FAILS
    ),
    unreadable(
        "a number where a value of a list should be", {"L": [23]}, "Unexpected value type in payload", FAILS
    ),
    unreadable(
        "a list where a map should be",
        {"M": []},
        f"{COLLECTION}java.util.Map<java.lang.String, {MODEL}>",
        FAILS,
    ),
    unreadable("a string where a value should be", "23", "Unexpected value type in payload", FAILS),
    unreadable("a list where a value should be", [], f"{COLLECTION}class {MODEL}", FAILS),
    kept("the words true and false are booleans on the wire", {"BOOL": "true"}, {"BOOL": True}),
    case(
        "cannot be read: an item that is not a map",
        Step(
            "PutItem",
            {"TableName": "Hash", "Item": "23"},
            Fails("SerializationException", "Unexpected field type"),
        ),
        tables="Hash",
        local=FAILS,
    ),
    case(
        "cannot be read: a table name that is not a string",
        Step(
            "PutItem",
            {"TableName": 23, "Item": KEY},
            Fails("SerializationException", "NUMBER_VALUE cannot be converted to String"),
        ),
        local=CONVERTS,
    ),
    case(
        "what cannot be read is reported before what is missing",
        Step(
            "PutItem",
            {"ReturnValues": 23},
            Fails("SerializationException", "NUMBER_VALUE cannot be converted to String"),
        ),
        local=CONVERTS,
    ),
]

CASES: list[Case] = [*NUMBERS, *SETS, *READS, *DOCUMENTS, *WIRE]
