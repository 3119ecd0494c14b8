"""BatchGetItem: what is found, projected and counted, and which batches are rejected as a whole."""

from __future__ import annotations

import re
from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, invalid, reworded

OWN_WORDS = "has a different text"
NO_MATCH = "The provided key element does not match the schema"
EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
    "an empty string value. Key: pk"
)


def key(value: str) -> Json:
    return {"pk": {"S": value}}


def get(
    expect: Expectation, *keys: Json, name: str = "Hash", top: Json | None = None, **members: Any
) -> Step:
    """Ask one table; `top` holds further members of the request itself."""
    return Step(
        "BatchGetItem", {"RequestItems": {name: {"Keys": list(keys), **members}}, **(top or {})}, expect
    )


def put(name: str = "Hash", **item: Json) -> Step:
    return Step("PutItem", {"TableName": name, "Item": item})


def found(*items: Json, name: str = "Hash") -> Expectation:
    """Exactly these items in any order, nothing unprocessed."""

    def expect(reply: Json) -> None:
        assert set(reply) == {"Responses", "UnprocessedKeys"}
        assert reply["UnprocessedKeys"] == {}
        got = reply["Responses"][name]
        assert sorted(map(repr, _ordered(got))) == sorted(map(repr, _ordered(list(items))))

    return expect


def _ordered(items: list[Json]) -> list[list[tuple[str, Any]]]:
    return [sorted(item.items()) for item in items]


def capacity(units: float, **more: Any) -> Expectation:
    def expect(reply: Json) -> None:
        assert reply["ConsumedCapacity"] == [{"TableName": "Hash", "CapacityUnits": units, **more}], reply

    return expect


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


TOTAL = {"ReturnConsumedCapacity": "TOTAL"}
ITEM: Json = {"pk": {"S": "1"}, "a": {"S": "x"}, "m": {"M": {"c": {"N": "1"}}}}
ONE = put(**ITEM)

REFUSED: list[tuple[str, Step, str]] = [
    (
        "RequestItems is required",
        Step("BatchGetItem", {}, invalid(constraint("null", "requestItems", "Member must not be null"))),
        OWN_WORDS,
    ),
    (
        "RequestItems cannot be empty",
        Step(
            "BatchGetItem",
            {"RequestItems": {}},
            reworded(
                "The requestItems parameter is required for BatchGetItem",
                "1 validation error detected: Value at 'RequestItems' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1",
                evidence.EMPTY_BATCH,
            ),
        ),
        OWN_WORDS,
    ),
    (
        "Keys is required",
        Step(
            "BatchGetItem",
            {"RequestItems": {"Hash": {}}},
            invalid(constraint("null", "requestItems.Hash.member.keys", "Member must not be null")),
        ),
        OWN_WORDS,
    ),
    (
        "Keys cannot be empty",
        get(
            reworded(
                constraint(
                    "'[]'",
                    "requestItems.Hash.member.keys",
                    "Member must have length greater than or equal to 1",
                ),
                "1 validation error detected: Value at 'RequestItems.Hash.member.Keys' failed to satisfy "
                "constraint: Member must have length greater than or equal to 1",
                evidence.BATCH_KEYS,
            )
        ),
        OWN_WORDS,
    ),
    (
        "101 keys of one table are rejected",
        get(
            reworded(
                re.compile(
                    constraint(
                        r"'\[.+\]'",
                        "requestItems.Hash.member.keys",
                        "Member must have length less than or equal to 100",
                    )
                ),
                "1 validation error detected: Value at 'RequestItems.Hash.member.Keys' failed to satisfy "
                "constraint: Member must have length less than or equal to 100",
                evidence.BATCH_KEYS,
            ),
            *(key(str(place)) for place in range(101)),
        ),
        OWN_WORDS,
    ),
    (
        "101 keys of two tables are rejected",
        Step(
            "BatchGetItem",
            {
                "RequestItems": {
                    "Hash": {"Keys": [key(str(place)) for place in range(100)]},
                    "Pair": {"Keys": [{"pk": {"S": "1"}, "sk": {"S": "1"}}]},
                }
            },
            invalid("Too many items requested for the BatchGetItem call"),
        ),
        "",
    ),
    (
        "a key cannot be asked for twice",
        get(invalid("Provided list of item keys contains duplicates"), *[key("1")] * 2),
        "",
    ),
    (
        "one number written two ways is one key",
        get(
            invalid("Provided list of item keys contains duplicates"),
            {"pk": {"N": "1000"}},
            {"pk": {"N": "+1e3"}},
            name="NumberHash",
        ),
        "compares numbers as text",
    ),
    (
        "a key of the wrong type does not match the schema",
        get(invalid(NO_MATCH), {"pk": {"N": "1"}}),
        OWN_WORDS,
    ),
    ("an empty key does not match the schema", get(invalid(NO_MATCH), {}), OWN_WORDS),
    (
        "a key under another name does not match the schema",
        get(invalid(NO_MATCH), {"a": {"S": "1"}}),
        OWN_WORDS,
    ),
    (
        "a key with a further attribute does not match the schema",
        get(invalid(NO_MATCH), key("1") | {"a": {"S": "1"}}),
        OWN_WORDS,
    ),
    ("a key cannot be an empty string", get(invalid(EMPTY_KEY), key("")), ""),
    (
        "a value needs a type",
        get(
            invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"),
            {"pk": {}},
        ),
        "",
    ),
    (
        "a value has one type",
        get(
            invalid(
                "Supplied AttributeValue has more than one datatypes set, "
                "must contain exactly one of the supported datatypes"
            ),
            {"pk": {"S": "1", "N": "1"}},
        ),
        "",
    ),
    (
        "a missing table is not named",
        get(Fails("ResourceNotFoundException", "Requested resource not found"), key("1"), name="Nowhere"),
        OWN_WORDS,
    ),
    (
        "one missing table rejects the whole batch",
        Step(
            "BatchGetItem",
            {"RequestItems": {"Hash": {"Keys": [key("1")]}, "Nowhere": {"Keys": [key("1")]}}},
            Fails("ResourceNotFoundException", "Requested resource not found"),
        ),
        OWN_WORDS,
    ),
    (
        "AttributesToGet cannot repeat a name",
        get(
            invalid("One or more parameter values were invalid: Duplicate value in attribute name: a"),
            key("1"),
            AttributesToGet=["a", "a"],
        ),
        "",
    ),
    (
        "AttributesToGet and ProjectionExpression exclude each other",
        get(
            invalid(
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"
            ),
            key("1"),
            AttributesToGet=["a"],
            ProjectionExpression="a",
        ),
        "",
    ),
    (
        "names without an expression are rejected",
        get(
            invalid("ExpressionAttributeNames can only be specified when using expressions"),
            key("1"),
            ExpressionAttributeNames={"#a": "a"},
        ),
        "",
    ),
    (
        "an unused name is rejected",
        get(
            invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}"),
            key("1"),
            ProjectionExpression="a",
            ExpressionAttributeNames={"#a": "a"},
        ),
        "",
    ),
    (
        "an undefined name is rejected",
        get(
            invalid(
                "Invalid ProjectionExpression: An expression attribute name used in the document path "
                "is not defined; attribute name: #a"
            ),
            key("1"),
            ProjectionExpression="#a",
        ),
        "",
    ),
    (
        "a projection is checked though no item is found",
        get(
            invalid(
                "Invalid ProjectionExpression: Two document paths overlap with each other; "
                "must remove or rewrite one of these paths; path one: [a], path two: [a, b]"
            ),
            key("none"),
            ProjectionExpression="a, a.b",
        ),
        "",
    ),
    (
        "an unknown ReturnConsumedCapacity is checked before the table is looked up",
        get(
            invalid(
                constraint(
                    "'SOME'",
                    "returnConsumedCapacity",
                    "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]",
                )
            ),
            key("1"),
            name="Nowhere",
            top={"ReturnConsumedCapacity": "SOME"},
        ),
        "looks up the table first",
    ),
]

CASES: list[Case] = [
    *(case(name, step, tables="Hash Pair NumberHash", local=local) for name, step, local in REFUSED),
    case("a batch of missing items finds nothing", get(found(), key("1"), key("2")), tables="Hash"),
    case("missing items are left out", ONE, get(found(ITEM), key("1"), key("none")), tables="Hash"),
    case(
        "two tables answer apart",
        ONE,
        put("Pair", pk={"S": "1"}, sk={"S": "2"}),
        Step(
            "BatchGetItem",
            {
                "RequestItems": {
                    "Hash": {"Keys": [key("1")]},
                    "Pair": {"Keys": [{"pk": {"S": "1"}, "sk": {"S": "2"}}]},
                }
            },
            {
                "Responses": {"Hash": [ITEM], "Pair": [{"pk": {"S": "1"}, "sk": {"S": "2"}}]},
                "UnprocessedKeys": {},
            },
        ),
        tables="Hash Pair",
    ),
    case(
        "sort keys of one partition are different keys",
        put("Pair", pk={"S": "1"}, sk={"S": "1"}),
        put("Pair", pk={"S": "1"}, sk={"S": "2"}),
        get(
            found({"pk": {"S": "1"}, "sk": {"S": "1"}}, {"pk": {"S": "1"}, "sk": {"S": "2"}}, name="Pair"),
            {"pk": {"S": "1"}, "sk": {"S": "1"}},
            {"pk": {"S": "1"}, "sk": {"S": "2"}},
            name="Pair",
        ),
        tables="Pair",
    ),
    case(
        "a projection keeps the shape of the item",
        ONE,
        get(
            found({"pk": {"S": "1"}, "m": {"M": {"c": {"N": "1"}}}}),
            key("1"),
            ProjectionExpression="m.c, #p",
            ExpressionAttributeNames={"#p": "pk"},
        ),
        tables="Hash",
    ),
    case(
        "a projection that matches nothing leaves an empty item",
        ONE,
        get(found({}), key("1"), ProjectionExpression="nothing"),
        tables="Hash",
    ),
    case(
        "AttributesToGet keeps whole attributes",
        ONE,
        get(found({"a": {"S": "x"}}), key("1"), AttributesToGet=["a"]),
        tables="Hash",
    ),
    case(
        "a number key is found however it is written",
        put("NumberHash", pk={"N": "1000"}),
        get(found({"pk": {"N": "1000"}}, name="NumberHash"), {"pk": {"N": "001e3"}}, name="NumberHash"),
        tables="NumberHash",
    ),
    case(
        "100 keys are asked for at once",
        get(found(), *(key(str(place)) for place in range(100))),
        tables="Hash",
    ),
    case(
        "every key costs half a unit, found or not",
        ONE,
        get(capacity(1.0), key("1"), key("none"), top=TOTAL),
        tables="Hash",
        local="charges nothing for a missing item",
    ),
    case(
        "a consistent read costs double",
        ONE,
        get(capacity(2.0), key("1"), key("none"), top=TOTAL, ConsistentRead=True),
        tables="Hash",
        local="charges nothing for a missing item",
    ),
    case(
        "each item is rounded up by itself",
        put(pk={"S": "1"}, a={"S": "x" * 4096}),
        put(pk={"S": "2"}, a={"S": "x" * 4096}),
        get(capacity(2.0), key("1"), key("2"), top=TOTAL),
        tables="Hash",
    ),
    case(
        "INDEXES breaks the cost down to the table",
        ONE,
        get(capacity(0.5, Table={"CapacityUnits": 0.5}), key("1"), top={"ReturnConsumedCapacity": "INDEXES"}),
        tables="Hash",
    ),
    case(
        "a projection costs the whole item",
        put(pk={"S": "1"}, a={"S": "x" * 5000}),
        get(capacity(1.0), key("1"), top=TOTAL, ProjectionExpression="pk"),
        tables="Hash",
    ),
]
