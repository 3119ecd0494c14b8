"""TransactGetItems: answers in order, at double the cost, or one cancellation for all."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

OWN_WORDS = "has a different text"
NO_REASONS = "cancels without reasons"
NO_MATCH = "The provided key element does not match the schema"
CANCELLED = "Transaction cancelled, please refer cancellation reasons for specific reasons "


def key(value: str) -> Json:
    return {"pk": {"S": value}}


def get(key_: Json, name: str = "Hash", **members: Any) -> Json:
    return {"Get": {"TableName": name, "Key": key_, **members}}


def read(expect: Expectation, *items: Json, **members: Any) -> Step:
    return Step("TransactGetItems", {"TransactItems": list(items), **members}, expect)


def put(name: str = "Hash", **item: Json) -> Step:
    return Step("PutItem", {"TableName": name, "Item": item})


def cancelled(*messages: str | None) -> Fails:
    """A cancellation; None stands for an action with nothing to blame."""
    codes = ", ".join("None" if message is None else "ValidationError" for message in messages)
    reasons = [
        {"Code": "None"} if message is None else {"Code": "ValidationError", "Message": message}
        for message in messages
    ]
    return Fails("TransactionCanceledException", f"{CANCELLED}[{codes}]", {"CancellationReasons": reasons})


def capacity(**units: float) -> Expectation:
    def expect(reply: Json) -> None:
        assert {one["TableName"]: one["CapacityUnits"] for one in reply["ConsumedCapacity"]} == units, reply

    return expect


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


ITEM: Json = {"pk": {"S": "1"}, "a": {"S": "x"}}
ONE = put(**ITEM)

REFUSED: list[tuple[str, Step, str]] = [
    (
        "TransactItems is required",
        Step("TransactGetItems", {}, invalid(constraint("null", "transactItems", "Member must not be null"))),
        OWN_WORDS,
    ),
    (
        "TransactItems cannot be empty",
        read(
            invalid(constraint("'[]'", "transactItems", "Member must have length greater than or equal to 1"))
        ),
        OWN_WORDS,
    ),
    (
        "an action needs a Get",
        read(invalid(constraint("null", "transactItems.1.member.get", "Member must not be null")), {}),
        OWN_WORDS,
    ),
    (
        "a Get needs a key",
        read(
            invalid(constraint("null", "transactItems.1.member.get.key", "Member must not be null")),
            {"Get": {"TableName": "Hash"}},
        ),
        OWN_WORDS,
    ),
    ("101 gets are rejected", read(invalid(None), *(get(key(str(place))) for place in range(101))), ""),
    (
        "an item cannot be read twice",
        read(
            invalid("Transaction request cannot include multiple operations on one item"),
            get(key("1")),
            get(key("1")),
        ),
        "",
    ),
    (
        "a missing table is not named",
        read(Fails("ResourceNotFoundException", "Requested resource not found"), get(key("1"), "Nowhere")),
        OWN_WORDS,
    ),
    (
        "one missing table rejects the whole transaction",
        read(Fails("ResourceNotFoundException"), get(key("1")), get(key("1"), "Nowhere")),
        "",
    ),
    (
        "an unknown ReturnConsumedCapacity is checked before the table is looked up",
        read(
            invalid(
                constraint(
                    "'SOME'",
                    "returnConsumedCapacity",
                    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
                )
            ),
            get(key("1"), "Nowhere"),
            ReturnConsumedCapacity="SOME",
        ),
        "looks up the table first",
    ),
    ("a key of the wrong type cancels", read(cancelled(NO_MATCH), get({"pk": {"N": "1"}})), NO_REASONS),
    ("an empty key cancels", read(cancelled(NO_MATCH), get({})), NO_REASONS),
    (
        "the reasons are in the order of the actions",
        read(cancelled(None, NO_MATCH), get(key("1")), get({"a": {"S": "1"}})),
        NO_REASONS,
    ),
    (
        "an empty string as a key is rejected before the transaction",
        read(
            invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
                "an empty string value. Key: pk"
            ),
            get(key("")),
        ),
        "",
    ),
    (
        "a key that is not a number is rejected before the transaction",
        read(
            invalid("The parameter cannot be converted to a numeric value: x"),
            get({"pk": {"N": "x"}}, "NumberHash"),
        ),
        OWN_WORDS,
    ),
    (
        "an unused name is rejected before the transaction",
        read(
            invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}"),
            get(key("1"), ProjectionExpression="#a", ExpressionAttributeNames={"#a": "a", "#b": "b"}),
        ),
        "",
    ),
    (
        "an undefined name is rejected before the transaction",
        read(
            invalid(
                "Invalid ProjectionExpression: An expression attribute name used in the document path "
                "is not defined; attribute name: #a"
            ),
            get(key("1"), ProjectionExpression="#a"),
        ),
        "",
    ),
    (
        "a syntax error is rejected before the transaction",
        read(
            invalid('Invalid ProjectionExpression: Syntax error; token: "b", near: "a b"'),
            get(key("1"), ProjectionExpression="a b"),
        ),
        "",
    ),
    (
        "names without an expression are rejected",
        read(
            invalid("ExpressionAttributeNames can only be specified when using expressions"),
            get(key("1"), ExpressionAttributeNames={"#a": "a"}),
        ),
        "",
    ),
]

CASES: list[Case] = [
    *(case(name, step, tables="Hash NumberHash", local=local) for name, step, local in REFUSED),
    case(
        "answers are in the order of the actions, a missing item as an empty one",
        ONE,
        put(pk={"S": "2"}),
        read(
            {"Responses": [{"Item": {"pk": {"S": "2"}}}, {}, {"Item": ITEM}]},
            *(get(key(value)) for value in "201"),
        ),
        tables="Hash",
    ),
    case(
        "two tables are read together",
        ONE,
        put("Pair", pk={"S": "1"}, sk={"S": "2"}),
        read(
            {"Responses": [{"Item": {"pk": {"S": "1"}, "sk": {"S": "2"}}}, {"Item": ITEM}]},
            get({"pk": {"S": "1"}, "sk": {"S": "2"}}, "Pair"),
            get(key("1")),
        ),
        tables="Hash Pair",
    ),
    case(
        "an action has its own projection",
        ONE,
        read(
            {"Responses": [{"Item": {"a": {"S": "x"}}}]},
            get(key("1"), ProjectionExpression="#a", ExpressionAttributeNames={"#a": "a"}),
        ),
        tables="Hash",
    ),
    case(
        "a projection that matches nothing leaves an empty item, not a missing one",
        ONE,
        read({"Responses": [{"Item": {}}]}, get(key("1"), ProjectionExpression="nothing")),
        tables="Hash",
    ),
    case(
        "100 items are read at once",
        read({"Responses": [{}] * 100}, *(get(key(str(place))) for place in range(100))),
        tables="Hash",
    ),
    case(
        "a transactional read costs two units, found or not",
        ONE,
        read(capacity(Hash=4.0), get(key("1")), get(key("none")), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "two units for every 4 KB",
        put(pk={"S": "1"}, a={"S": "x" * 4096}),
        read(capacity(Hash=4.0), get(key("1")), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
    ),
    case(
        "tables are counted apart",
        read(
            capacity(Hash=2.0, Pair=2.0),
            get(key("1")),
            get({"pk": {"S": "1"}, "sk": {"S": "2"}}, "Pair"),
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Hash Pair",
    ),
]
