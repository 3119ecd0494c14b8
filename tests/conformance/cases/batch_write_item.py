"""BatchWriteItem: puts and deletes that stand alone, and batches that are rejected as a whole."""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

OWN_WORDS = "has a different text"
NO_MATCH = "The provided key element does not match the schema"
DUPLICATES = "Provided list of item keys contains duplicates"
SIZE = 409600


def put(**item: Json) -> Json:
    return {"PutRequest": {"Item": item}}


def delete(**key: Json) -> Json:
    return {"DeleteRequest": {"Key": key}}


def text(value: str) -> Json:
    return {"S": value}


def write(expect: Expectation, *requests: Json, name: str = "Hash", **members: Any) -> Step:
    return Step("BatchWriteItem", {"RequestItems": {name: list(requests)}, **members}, expect)


def stored(expected: Json | None, name: str = "Hash", **key: Json) -> Step:
    return Step("GetItem", {"TableName": name, "Key": key}, {} if expected is None else {"Item": expected})


def puts(count: int, **more: Json) -> list[Json]:
    return [put(pk=text(str(place)), **more) for place in range(count)]


def capacity(*tables: Json) -> Expectation:
    def expect(reply: Json) -> None:
        assert reply["UnprocessedItems"] == {}
        assert sorted(reply["ConsumedCapacity"], key=lambda one: str(one["TableName"])) == list(tables), reply

    return expect


def constraint(value: str, member: str, rule: str) -> str:
    return f"1 validation error detected: Value {value} at '{member}' failed to satisfy constraint: {rule}"


DONE: Json = {"UnprocessedItems": {}}

REFUSED: list[tuple[str, Step, str]] = [
    (
        "RequestItems is required",
        Step("BatchWriteItem", {}, invalid(constraint("null", "requestItems", "Member must not be null"))),
        OWN_WORDS,
    ),
    (
        "RequestItems cannot be empty",
        Step(
            "BatchWriteItem",
            {"RequestItems": {}},
            invalid("The requestItems parameter is required for BatchWriteItem"),
        ),
        OWN_WORDS,
    ),
    (
        "a table's list cannot be empty",
        write(
            invalid(
                constraint(
                    "'{Hash=[]}'",
                    "requestItems",
                    "Map value must satisfy constraint: [Member must have length less than or equal to 25, "
                    "Member must have length greater than or equal to 1]",
                )
            )
        ),
        OWN_WORDS,
    ),
    (
        "a request needs an action",
        write(
            invalid(
                "Supplied AttributeValue has more than one datatypes set, "
                "must contain exactly one of the supported datatypes"
            ),
            {},
        ),
        "",
    ),
    (
        "a request has one action",
        write(
            invalid(
                "Supplied AttributeValue has more than one datatypes set, "
                "must contain exactly one of the supported datatypes"
            ),
            put(pk=text("1")) | delete(pk=text("1")),
        ),
        "",
    ),
    (
        "a put needs an item",
        write(
            invalid(
                constraint(
                    "null", "requestItems.Hash.member.1.member.putRequest.item", "Member must not be null"
                )
            ),
            {"PutRequest": {}},
        ),
        OWN_WORDS,
    ),
    (
        "a delete needs a key",
        write(
            invalid(
                constraint(
                    "null", "requestItems.Hash.member.1.member.deleteRequest.key", "Member must not be null"
                )
            ),
            {"DeleteRequest": {}},
        ),
        OWN_WORDS,
    ),
    ("26 requests of one table are rejected", write(invalid(None), *puts(26)), ""),
    (
        "26 requests of two tables are rejected",
        Step(
            "BatchWriteItem",
            {"RequestItems": {"Hash": puts(25), "Pair": [put(pk=text("1"), sk=text("1"))]}},
            invalid("Too many items requested for the BatchWriteItem call"),
        ),
        "",
    ),
    ("an item cannot be put twice", write(invalid(DUPLICATES), *[put(pk=text("1"))] * 2), ""),
    (
        "an item cannot be put and deleted",
        write(invalid(DUPLICATES), put(pk=text("1")), delete(pk=text("1"))),
        "",
    ),
    (
        "one number written two ways is one item",
        write(invalid(DUPLICATES), put(pk={"N": "1000"}), delete(pk={"N": "1e3"}), name="NumberHash"),
        "",
    ),
    (
        "a put key of the wrong type does not match the schema",
        write(invalid(NO_MATCH), put(pk={"N": "1"})),
        OWN_WORDS,
    ),
    ("a put without a key does not match the schema", write(invalid(NO_MATCH), put(a=text("1"))), OWN_WORDS),
    (
        "a delete key of the wrong type does not match the schema",
        write(invalid(NO_MATCH), delete(pk={"N": "1"})),
        OWN_WORDS,
    ),
    (
        "a delete key with a further attribute does not match the schema",
        write(invalid(NO_MATCH), delete(pk=text("1"), a=text("1"))),
        OWN_WORDS,
    ),
    (
        "a key cannot be an empty string",
        write(
            invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
                "an empty string value. Key: pk"
            ),
            put(pk=text("")),
        ),
        "",
    ),
    (
        "a partition key of 2049 bytes is too long",
        write(
            invalid(
                "One or more parameter values were invalid: "
                "Size of hashkey has exceeded the maximum size limit of2048 bytes"
            ),
            put(pk=text("x" * 2049)),
        ),
        OWN_WORDS,
    ),
    (
        "an item has a greatest size",
        write(
            invalid("Item size has exceeded the maximum allowed size"), put(pk=text("1"), a=text("x" * SIZE))
        ),
        "",
    ),
    (
        "an empty set is rejected",
        write(
            invalid("One or more parameter values were invalid: An string set  may not be empty"),
            put(pk=text("1"), a={"SS": []}),
        ),
        "",
    ),
    (
        "a set cannot repeat a member",
        write(
            invalid(
                "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates."
            ),
            put(pk=text("1"), a={"SS": ["b", "a", "b"]}),
        ),
        "omits the final full stop",
    ),
    (
        "a number set cannot repeat a number written another way",
        write(invalid("Input collection contains duplicates"), put(pk=text("1"), a={"NS": ["1", "1.0"]})),
        "",
    ),
    (
        "a number must be one",
        write(
            invalid("The parameter cannot be converted to a numeric value: x"),
            put(pk=text("1"), a={"N": "x"}),
        ),
        OWN_WORDS,
    ),
    (
        "a number may not be empty",
        write(
            invalid("The parameter cannot be converted to a numeric value"), put(pk=text("1"), a={"N": ""})
        ),
        OWN_WORDS,
    ),
    (
        "a value of the wrong type for an index is rejected",
        write(invalid(None), put(pk=text("1"), sk=text("1"), gp={"N": "1"}), name="Indexed"),
        "",
    ),
    (
        "a missing table is not named",
        write(
            Fails("ResourceNotFoundException", "Requested resource not found"),
            put(pk=text("1")),
            name="Nowhere",
        ),
        OWN_WORDS,
    ),
    (
        "the values are checked before the table is looked up",
        write(
            invalid("One or more parameter values were invalid: An number set  may not be empty"),
            put(pk=text("1"), a={"NS": []}),
            name="Nowhere",
        ),
        "",
    ),
]

CASES: list[Case] = [
    *(case(name, step, tables="Hash Pair NumberHash Indexed", local=local) for name, step, local in REFUSED),
    case(
        "an item is put",
        write(DONE, put(pk=text("1"), a=text("x"))),
        stored({"pk": text("1"), "a": text("x")}, pk=text("1")),
        tables="Hash",
    ),
    case(
        "a put replaces the whole item",
        write(DONE, put(pk=text("1"), a=text("x"))),
        write(DONE, put(pk=text("1"), b=text("y"))),
        stored({"pk": text("1"), "b": text("y")}, pk=text("1")),
        tables="Hash",
    ),
    case(
        "puts and deletes go together",
        write(DONE, put(pk=text("1"))),
        write(DONE, put(pk=text("2")), delete(pk=text("1"))),
        stored(None, pk=text("1")),
        stored({"pk": text("2")}, pk=text("2")),
        tables="Hash",
    ),
    case("a missing item is deleted without a word", write(DONE, delete(pk=text("none"))), tables="Hash"),
    case(
        "one key in two tables is two items",
        Step(
            "BatchWriteItem",
            {"RequestItems": {"Hash": [put(pk=text("1"))], "Pair": [put(pk=text("1"), sk=text("1"))]}},
            DONE,
        ),
        stored({"pk": text("1")}, pk=text("1")),
        stored({"pk": text("1"), "sk": text("1")}, "Pair", pk=text("1"), sk=text("1")),
        tables="Hash Pair",
    ),
    case(
        "a rejected request leaves the whole batch undone",
        write(Fails("ValidationException"), put(pk=text("1")), put(pk={"N": "1"}), put(pk=text("2"))),
        stored(None, pk=text("1")),
        stored(None, pk=text("2")),
        tables="Hash",
    ),
    case(
        "25 requests are done at once",
        write(DONE, *puts(25)),
        Step("Scan", {"TableName": "Hash", "Select": "COUNT"}, {"Count": 25, "ScannedCount": 25}),
        tables="Hash",
    ),
    case(
        "an item of exactly 400 KB is stored",
        write(DONE, put(pk=text("1"), a=text("x" * (SIZE - 4)))),
        tables="Hash",
    ),
    case(
        "empty strings and binaries are stored outside keys",
        write(DONE, put(pk=text("1"), a=text(""), b={"B": ""})),
        stored({"pk": text("1"), "a": text(""), "b": {"B": ""}}, pk=text("1")),
        tables="Hash",
    ),
    case(
        "numbers come back in their plain form",
        write(DONE, put(pk={"N": "+001000"}, a={"NS": ["1e2", "0.10"]}), name="NumberHash"),
        stored({"pk": {"N": "1000"}, "a": {"NS": ["100", "0.1"]}}, "NumberHash", pk={"N": "1000"}),
        tables="NumberHash",
    ),
    case(
        "a write costs the larger of the old and the new item",
        write(DONE, put(pk=text("1"), a=text("x" * 3000))),
        write(
            capacity({"TableName": "Hash", "CapacityUnits": 3.0}),
            put(pk=text("1")),
            ReturnConsumedCapacity="TOTAL",
        ),
        tables="Hash",
    ),
    case(
        "a delete costs the item that was there, and one unit for none",
        write(DONE, put(pk=text("1"), a=text("x" * 1500))),
        write(
            capacity({"TableName": "Hash", "CapacityUnits": 3.0}),
            delete(pk=text("1")),
            delete(pk=text("none")),
            ReturnConsumedCapacity="TOTAL",
        ),
        tables="Hash",
        local="charges nothing for a missing item",
    ),
    case(
        "INDEXES breaks the cost down by table and index",
        write(
            capacity(
                {
                    "TableName": "Indexed",
                    "CapacityUnits": 5.0,
                    "Table": {"CapacityUnits": 1.0},
                    "LocalSecondaryIndexes": {"linc": {"CapacityUnits": 1.0}, "lall": {"CapacityUnits": 1.0}},
                    "GlobalSecondaryIndexes": {
                        "gkeys": {"CapacityUnits": 1.0},
                        "ginc": {"CapacityUnits": 1.0},
                    },
                }
            ),
            put(pk=text("1"), sk=text("1"), gp=text("g"), ls=text("l")),
            name="Indexed",
            ReturnConsumedCapacity="INDEXES",
        ),
        tables="Indexed",
    ),
    case(
        "two tables are counted apart",
        Step(
            "BatchWriteItem",
            {
                "RequestItems": {"Pair": [put(pk=text("1"), sk=text("1"))], "Hash": puts(2)},
                "ReturnConsumedCapacity": "TOTAL",
            },
            capacity(
                {"TableName": "Hash", "CapacityUnits": 2.0}, {"TableName": "Pair", "CapacityUnits": 1.0}
            ),
        ),
        tables="Hash Pair",
    ),
]
