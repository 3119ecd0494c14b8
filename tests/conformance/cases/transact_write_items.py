"""TransactWriteItems: all actions or none, why a transaction was cancelled, and idempotent tokens.

Concurrent transactions and their conflicts are not reported here.
"""

from __future__ import annotations

import uuid
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid
from ..tables import index, table

OWN_WORDS = "has a different text"
ALL_REASONS = "checks every action instead of stopping at the first invalid one"
FULL_STOP = "ends the reason of a ConditionCheck with a full stop"
NO_MATCH = "The provided key element does not match the schema"
INVALID = "One or more parameter values were invalid: "
EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
    "an empty string value. Key: pk"
)
ABSENT = "attribute_not_exists(pk)"
PRESENT = "attribute_exists(pk)"
FAILED: Json = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
NONE: Json = {"Code": "None"}


def key(value: str) -> Json:
    return {"pk": {"S": value}}


def put(item: Json, name: str = "Hash", **members: Any) -> Json:
    return {"Put": {"TableName": name, "Item": item, **members}}


def delete(key_: Json, name: str = "Hash", **members: Any) -> Json:
    return {"Delete": {"TableName": name, "Key": key_, **members}}


def check(key_: Json, condition: str, name: str = "Hash", **members: Any) -> Json:
    return {"ConditionCheck": {"TableName": name, "Key": key_, "ConditionExpression": condition, **members}}


def update(
    key_: Json, expression: str, name: str = "Hash", values: Json | None = None, **members: Any
) -> Json:
    action = {"TableName": name, "Key": key_, "UpdateExpression": expression, **members}
    if values:
        action["ExpressionAttributeValues"] = values
    return {"Update": action}


def write(expect: Expectation, *actions: Json, **members: Any) -> Step:
    return Step("TransactWriteItems", {"TransactItems": list(actions), **members}, expect)


def stored(item: Json | None, value: str, name: str = "Hash") -> Step:
    return Step("GetItem", {"TableName": name, "Key": key(value)}, {} if item is None else {"Item": item})


def seed(item: Json) -> Step:
    return Step("PutItem", {"TableName": "Hash", "Item": item})


def wrong(message: str) -> Json:
    return {"Code": "ValidationError", "Message": message}


def cancelled(*reasons: Json) -> Fails:
    codes = ", ".join(str(reason["Code"]) for reason in reasons)
    return Fails(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        {"CancellationReasons": list(reasons)},
    )


def capacity(**units: float) -> Expectation:
    def expect(reply: Json) -> None:
        assert {one["TableName"]: one["CapacityUnits"] for one in reply["ConsumedCapacity"]} == units, reply

    return expect


def index_capacity(reply: Json) -> None:
    (got,) = reply["ConsumedCapacity"]
    assert got["CapacityUnits"] == 6.0
    assert got["Table"]["CapacityUnits"] == 2.0
    units = {name: one["CapacityUnits"] for name, one in got["GlobalSecondaryIndexes"].items()}
    assert units == {"gkeys": 2.0, "ginc": 2.0}


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


def null(member: str) -> Fails:
    return invalid(constraint("null", f"transactItems.1.member.{member}", "Member must not be null"))


def token() -> str:
    """A token that no earlier run has used: a target remembers them for ten minutes."""
    return uuid.uuid4().hex


def deep(levels: int) -> Json:
    value: Json = {"S": "leaf"}
    for _ in range(levels):
        value = {"M": {"n": value}}
    return value


ONE_OPERATION = invalid("Transaction request cannot include multiple operations on one item")
PLUS_ONE = update(key("1"), "SET v = v + :one", values={":one": {"N": "1"}})
COUNTER = seed(key("1") | {"v": {"N": "1"}})
ITEM = key("1") | {"v": {"N": "1"}}
NEW = key("new")
TOKENS = [token() for _ in range(6)]
LONG_TOKEN = "t" * 37

REFUSED: list[tuple[str, Step, str]] = [
    (
        "TransactItems is required",
        Step(
            "TransactWriteItems", {}, invalid(constraint("null", "transactItems", "Member must not be null"))
        ),
        OWN_WORDS,
    ),
    (
        "TransactItems cannot be empty",
        write(
            invalid(constraint("'[]'", "transactItems", "Member must have length greater than or equal to 1"))
        ),
        OWN_WORDS,
    ),
    (
        "a long token is reported before an unknown ReturnConsumedCapacity",
        write(
            invalid(
                "2 validation errors detected: "
                f"Value '{LONG_TOKEN}' at 'clientRequestToken' failed to satisfy constraint: "
                "Member must have length less than or equal to 36; "
                "Value 'SOME' at 'returnConsumedCapacity' failed to satisfy constraint: "
                "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]"
            ),
            put(key("1")),
            ClientRequestToken=LONG_TOKEN,
            ReturnConsumedCapacity="SOME",
        ),
        OWN_WORDS,
    ),
    (
        "a Delete's condition is checked before its key",
        write(
            invalid('Invalid ConditionExpression: Syntax error; token: "=", near: "= = b"'),
            {"Delete": {"TableName": "Hash", "Key": {"pk": deep(100)}, "ConditionExpression": "a = = b"}},
        ),
        "",
    ),
    (
        "an empty name is reported before a value that is too deep",
        write(invalid("Empty attribute name"), put(key("1") | {"d": deep(100), "": {"S": "x"}})),
        OWN_WORDS,
    ),
    ("101 actions are rejected", write(invalid(None), *(put(key(str(place))) for place in range(101))), ""),
    ("a Put needs an item", write(null("put.item"), {"Put": {"TableName": "Hash"}}), "accepts the request"),
    ("a Delete needs a key", write(null("delete.key"), {"Delete": {"TableName": "Hash"}}), OWN_WORDS),
    (
        "an Update needs an expression",
        write(null("update.updateExpression"), {"Update": {"TableName": "Hash", "Key": NEW}}),
        "accepts the request",
    ),
    (
        "a ConditionCheck needs a condition",
        write(
            null("conditionCheck.conditionExpression"), {"ConditionCheck": {"TableName": "Hash", "Key": NEW}}
        ),
        "omits the error count",
    ),
    (
        "an item has one action: put and delete",
        write(ONE_OPERATION, put(NEW), delete(NEW)),
        "",
    ),
    (
        "an item has one action: put and check",
        write(ONE_OPERATION, put(NEW), check(NEW, ABSENT)),
        "evaluates the check against the put item",
    ),
    ("an item has one action: check and check", write(ONE_OPERATION, *[check(NEW, ABSENT)] * 2), ""),
    (
        "one number written two ways is one item",
        write(
            ONE_OPERATION,
            put({"pk": {"N": "1000"}}, "NumberHash"),
            delete({"pk": {"N": "1e3"}}, "NumberHash"),
        ),
        "compares numbers as text",
    ),
    (
        "a missing table is not named",
        write(Fails("ResourceNotFoundException", "Requested resource not found"), put(NEW, "Nowhere")),
        OWN_WORDS,
    ),
    (
        "a missing table is found before a repeated item",
        write(Fails("ResourceNotFoundException"), put(NEW, "Nowhere"), delete(NEW, "Nowhere")),
        "",
    ),
    (
        "a malformed condition is found before a missing table",
        write(
            invalid('Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "("'),
            put(NEW, "Nowhere"),
            check(key("2"), "attribute_not_exists("),
        ),
        "",
    ),
    (
        "an unused value is found before a repeated item",
        write(
            invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}"),
            put(NEW),
            check(NEW, ABSENT, ExpressionAttributeValues={":v": {"S": "x"}}),
        ),
        "",
    ),
    (
        "an unknown ReturnConsumedCapacity is found before a missing table",
        write(
            invalid(
                constraint(
                    "'SOME'",
                    "returnConsumedCapacity",
                    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
                )
            ),
            put(NEW, "Nowhere"),
            ReturnConsumedCapacity="SOME",
        ),
        "looks up the tables first",
    ),
    (
        "a token has a greatest length",
        write(
            invalid(
                constraint(
                    f"'{LONG_TOKEN}'",
                    "clientRequestToken",
                    "Member must have length less than or equal to 36",
                )
            ),
            put(NEW),
            ClientRequestToken=LONG_TOKEN,
        ),
        OWN_WORDS,
    ),
    (
        "an undefined name is rejected before the transaction",
        write(
            invalid(
                "Invalid ConditionExpression: An expression attribute name used in the document path "
                "is not defined; attribute name: #x"
            ),
            put(NEW, ConditionExpression="attribute_exists(#x)"),
        ),
        "",
    ),
    (
        "an undefined value is rejected before the transaction",
        write(
            invalid(
                "Invalid ConditionExpression: An expression attribute value used in expression "
                "is not defined; attribute value: :x"
            ),
            put(NEW, ConditionExpression="pk = :x"),
        ),
        "",
    ),
    (
        "an unused name is rejected before the condition is checked",
        write(
            invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}"),
            put(NEW, ConditionExpression=PRESENT, ExpressionAttributeNames={"#x": "x"}),
        ),
        "",
    ),
    (
        "an empty condition is rejected",
        write(
            invalid("Invalid ConditionExpression: The expression can not be empty;"),
            put(NEW, ConditionExpression=""),
        ),
        "",
    ),
    (
        "an empty string as a put key is rejected before the transaction",
        write(invalid(EMPTY_KEY), put(key(""))),
        "",
    ),
    (
        "an empty string as a delete key is rejected before the transaction",
        write(invalid(EMPTY_KEY), delete(key(""))),
        "",
    ),
    (
        "an empty set is rejected before the transaction",
        write(invalid(INVALID + "An string set  may not be empty"), put(NEW | {"a": {"SS": []}})),
        "",
    ),
    (
        "a number out of range is rejected before the transaction",
        write(
            invalid(
                "Number overflow. Attempting to store a number with magnitude larger than supported range"
            ),
            put(NEW | {"a": {"N": "1E999"}}),
        ),
        "",
    ),
    (
        "an item too deep is rejected before the transaction",
        write(
            invalid(
                "Nesting Levels have exceeded supported limits: "
                "Attributes in the item have nested levels beyond supported limit"
            ),
            put(NEW | {"a": deep(32)}),
        ),
        "",
    ),
    (
        "a put too large is rejected before the transaction",
        write(
            invalid("Item size has exceeded the maximum allowed size"), put(NEW | {"a": {"S": "x" * 409600}})
        ),
        "",
    ),
    (
        "more than 4 MB are rejected",
        write(
            Fails("ValidationException"),
            *(put(key(str(place)) | {"a": {"S": "x" * 100000}}) for place in range(50)),
        ),
        "",
    ),
    (
        "a put key of the wrong type cancels",
        write(
            cancelled(wrong(INVALID + "Type mismatch for key pk expected: S actual: N")),
            put({"pk": {"N": "1"}}),
        ),
        "omits the types in the reason",
    ),
    (
        "a put without its key cancels",
        write(cancelled(wrong(INVALID + "Missing the key pk in the item")), put({"a": {"S": "1"}})),
        OWN_WORDS,
    ),
    (
        "a delete key of the wrong type cancels",
        write(cancelled(wrong(NO_MATCH)), delete({"pk": {"N": "1"}})),
        OWN_WORDS,
    ),
    (
        "an update key of the wrong type cancels",
        write(cancelled(wrong(NO_MATCH)), update({"pk": {"N": "1"}}, "REMOVE a")),
        OWN_WORDS,
    ),
    (
        "a check key of the wrong type cancels",
        write(cancelled(wrong(NO_MATCH)), check({"pk": {"N": "1"}}, ABSENT)),
        OWN_WORDS,
    ),
    (
        "an update of the key cancels",
        write(
            cancelled(wrong(INVALID + "Cannot update attribute pk. This attribute is part of the key")),
            update(NEW, "SET pk = :v", values={":v": {"S": "x"}}),
        ),
        "",
    ),
    (
        "an update that reads a missing attribute cancels",
        write(
            cancelled(
                NONE, wrong("The provided expression refers to an attribute that does not exist in the item")
            ),
            put(key("2")),
            update(NEW, "SET a = b"),
        ),
        "rejects the whole request",
    ),
    (
        "an update too large cancels",
        write(
            cancelled(wrong("Item size to update has exceeded the maximum allowed size")),
            update(NEW, "SET a = :v", values={":v": {"S": "x" * 409600}}),
        ),
        "rejects the whole request",
    ),
    (
        "the first invalid action is the only one named, and no condition is checked",
        write(
            cancelled(wrong(NO_MATCH), NONE, NONE),
            delete({"pk": {"N": "1"}}),
            delete({"pk": {"N": "2"}}),
            check(NEW, PRESENT),
        ),
        ALL_REASONS,
    ),
    (
        "an unknown ReturnValuesOnConditionCheckFailure is rejected",
        write(invalid(None), put(NEW, ReturnValuesOnConditionCheckFailure="SOME")),
        "accepts the request",
    ),
]

CASES: list[Case] = [
    *(
        case(name, step, stored(None, "new"), tables="Hash NumberHash", local=local)
        for name, step, local in REFUSED
    ),
    case("a put answers with nothing", write({}, put(ITEM)), stored(ITEM, "1"), tables="Hash"),
    case(
        "a put replaces the whole item",
        COUNTER,
        write({}, put(key("1"))),
        stored(key("1"), "1"),
        tables="Hash",
    ),
    case("a delete removes the item", COUNTER, write({}, delete(key("1"))), stored(None, "1"), tables="Hash"),
    case("a delete of nothing is fine", write({}, delete(NEW)), tables="Hash"),
    case(
        "an update changes the item",
        COUNTER,
        write({}, PLUS_ONE),
        stored(key("1") | {"v": {"N": "2"}}, "1"),
        tables="Hash",
    ),
    case(
        "an update that only removes creates nothing",
        write({}, update(NEW, "REMOVE a")),
        stored(None, "new"),
        tables="Hash",
        local="creates the item",
    ),
    case("a check writes nothing", write({}, check(NEW, ABSENT)), stored(None, "new"), tables="Hash"),
    case(
        "all actions are done together",
        COUNTER,
        write({}, put(key("2")), PLUS_ONE, check(NEW, ABSENT), delete(key("none"))),
        stored(key("1") | {"v": {"N": "2"}}, "1"),
        stored(key("2"), "2"),
        tables="Hash",
    ),
    case(
        "two tables change together",
        write({}, put(key("1")), put({"pk": {"N": "1"}}, "NumberHash")),
        stored(key("1"), "1"),
        tables="Hash NumberHash",
    ),
    case(
        "one failed condition undoes everything",
        COUNTER,
        write(
            cancelled(NONE, NONE, FAILED, FAILED),
            put(NEW),
            delete(key("1"), ConditionExpression=PRESENT),
            put(key("3"), ConditionExpression=PRESENT),
            delete(key("4"), ConditionExpression=PRESENT),
        ),
        stored(None, "new"),
        stored(ITEM, "1"),
        tables="Hash",
    ),
    case(
        "a failed check undoes everything",
        write(cancelled(NONE, FAILED), put(NEW), check(key("none"), PRESENT)),
        stored(None, "new"),
        tables="Hash",
        local=FULL_STOP,
    ),
    case(
        "conditions see the items as they were before the transaction",
        COUNTER,
        write({}, delete(key("1")), put(NEW, ConditionExpression=ABSENT)),
        stored(NEW, "new"),
        tables="Hash",
    ),
    case(
        "a failed action returns its item when asked, others do not",
        COUNTER,
        seed(key("2")),
        write(
            cancelled(FAILED | {"Item": ITEM}, FAILED, NONE),
            put(key("1"), ConditionExpression=ABSENT, ReturnValuesOnConditionCheckFailure="ALL_OLD"),
            put(key("2"), ConditionExpression=ABSENT),
            put(key("3"), ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        ),
        tables="Hash",
    ),
    case(
        "a failed action on a missing item has no item to return",
        write(
            cancelled(FAILED),
            put(NEW, ConditionExpression=PRESENT, ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        ),
        tables="Hash",
    ),
    case(
        "a failed check returns its item when asked",
        COUNTER,
        write(
            cancelled(FAILED | {"Item": ITEM}),
            check(key("1"), ABSENT, ReturnValuesOnConditionCheckFailure="ALL_OLD"),
        ),
        tables="Hash",
        local=FULL_STOP,
    ),
    case(
        "a value of the wrong type for an index cancels",
        Step("CreateTable", table("Typed", "pk:S", types={"x": "S"}, gsi=[index("byx", "x")])),
        write(
            cancelled(wrong(INVALID + "Type mismatch for Index Key x Expected: S Actual: N IndexName: byx")),
            put(NEW | {"x": {"N": "1"}}, "Typed"),
        ),
        stored(None, "new", "Typed"),
        local="omits the types in the reason",
    ),
    case(
        "100 actions are done at once",
        write({}, *(put(key(str(place))) for place in range(100))),
        Step("Scan", {"TableName": "Hash", "Select": "COUNT"}, {"Count": 100, "ScannedCount": 100}),
        tables="Hash",
    ),
    case(
        "3 MB are written at once",
        write({}, *(put(key(str(place)) | {"a": {"S": "x" * 100000}}) for place in range(30))),
        tables="Hash",
    ),
    case(
        "a transaction without a token is done every time",
        COUNTER,
        write({}, PLUS_ONE),
        write({}, PLUS_ONE),
        stored(key("1") | {"v": {"N": "3"}}, "1"),
        tables="Hash",
    ),
    case(
        "a token makes a repeated transaction one",
        COUNTER,
        write({}, PLUS_ONE, ClientRequestToken=TOKENS[0]),
        write({}, PLUS_ONE, ClientRequestToken=TOKENS[0]),
        stored(key("1") | {"v": {"N": "2"}}, "1"),
        tables="Hash",
    ),
    case(
        "another token makes another transaction",
        COUNTER,
        write({}, PLUS_ONE, ClientRequestToken=TOKENS[1]),
        write({}, PLUS_ONE, ClientRequestToken=TOKENS[2]),
        stored(key("1") | {"v": {"N": "3"}}, "1"),
        tables="Hash",
    ),
    case(
        "a token with other actions is a mismatch",
        write({}, put(key("1")), ClientRequestToken=TOKENS[3]),
        write(Fails("IdempotentParameterMismatchException"), put(key("2")), ClientRequestToken=TOKENS[3]),
        stored(None, "2"),
        tables="Hash",
    ),
    case(
        "a cancelled transaction does not use its token up",
        write(
            Fails("TransactionCanceledException"),
            put(key("1"), ConditionExpression=PRESENT),
            ClientRequestToken=TOKENS[4],
        ),
        seed(ITEM),
        write({}, put(key("1"), ConditionExpression=PRESENT), ClientRequestToken=TOKENS[4]),
        stored(key("1"), "1"),
        tables="Hash",
    ),
    case(
        "a repeated transaction does not check its conditions again",
        write({}, put(key("1"), ConditionExpression=ABSENT), ClientRequestToken=TOKENS[5]),
        write({}, put(key("1"), ConditionExpression=ABSENT), ClientRequestToken=TOKENS[5]),
        tables="Hash",
    ),
    case(
        "a transactional put costs two units",
        write(capacity(Hash=2.0), put(key("1")), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "two units for every 1 KB",
        write(capacity(Hash=4.0), put(key("1") | {"a": {"S": "x" * 1500}}), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "a transactional write costs the larger of the old and the new item, doubled",
        seed(key("1") | {"a": {"S": "x" * 2500}}),
        write(capacity(Hash=6.0), put(key("1")), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "INDEXES doubles the indexes too",
        write(
            index_capacity,
            put({"pk": {"S": "1"}, "sk": {"S": "1"}, "gp": {"S": "g"}}, "Indexed"),
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Indexed",
    ),
    case(
        "tables are counted apart",
        write(
            capacity(Hash=4.0, NumberHash=2.0),
            put(key("1")),
            put({"pk": {"N": "1"}}, "NumberHash"),
            put(key("2")),
            ReturnConsumedCapacity="TOTAL",
        ),
        tables="Hash NumberHash",
        local="counts only one action per table",
    ),
    case(
        "stored items do not count towards 4 MB, what the request carries does",
        *(seed(key(str(place)) | {"a": {"S": "x" * 400_000}}) for place in range(11)),
        write(
            {},
            update(key("0"), "SET b = :b", values={":b": {"S": "b"}}),
            put(key("1")),
            *(delete(key(str(place))) for place in range(2, 11)),
        ),
        stored(None, "10"),
        stored(key("1"), "1"),
        tables="Hash",
    ),
]
