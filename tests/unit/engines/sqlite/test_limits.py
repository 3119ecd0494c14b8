"""Every limit of DynamoDB at its last granted and its first refused value, with DynamoDB's words of 2025."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from solotable._values import item_size
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ServiceError, TransactionCancelled
from tests.conformance.tables import index, table

from .clocked import opened

Json = dict[str, Any]

ITEM_BYTES = 409_600
PAGE_BYTES = 1_048_576
REPLY_BYTES = 16_777_216
TRANSACTION_BYTES = 4_194_304


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with opened(error_texts="2025") as made:
        made.call("CreateTable", table("Things", "pk:S"))
        yield made


def refusal(engine: SqliteEngine, operation: str, payload: Json) -> str:
    with pytest.raises(ServiceError) as refused:
        engine.call(operation, payload)
    assert refused.value.code == "ValidationException"
    return refused.value.message


def sized(size: int, key: str = "k") -> Json:
    """An item of exactly so many bytes."""
    item = {"pk": {"S": key}, "a": {"S": ""}}
    item["a"]["S"] = "x" * (size - item_size(item))
    assert item_size(item) == size
    return item


def put(engine: SqliteEngine, item: Json, name: str = "Things") -> None:
    engine.call("PutItem", {"TableName": name, "Item": item})


def count(engine: SqliteEngine, name: str = "Things") -> int:
    total: int = engine.call("Scan", {"TableName": name, "Select": "COUNT"})["Count"]
    return total


def test_an_item_has_at_most_400_kb(engine: SqliteEngine) -> None:
    put(engine, sized(ITEM_BYTES))
    too_large = {"TableName": "Things", "Item": sized(ITEM_BYTES + 1)}
    expected = "Item size has exceeded the maximum allowed size"
    assert refusal(engine, "PutItem", too_large) == expected
    batch = {"RequestItems": {"Things": [{"PutRequest": {"Item": sized(ITEM_BYTES + 1)}}]}}
    assert refusal(engine, "BatchWriteItem", batch) == expected
    assert refusal(engine, "TransactWriteItems", {"TransactItems": [{"Put": too_large}]}) == expected


def test_names_and_multibyte_letters_count_in_bytes(engine: SqliteEngine) -> None:
    item = {"pk": {"S": "k"}, "\u00e9\u00e9": {"S": "\u00e9" * ((ITEM_BYTES - 7) // 2)}}
    assert item_size(item) == ITEM_BYTES - 1
    put(engine, item)
    item["\u00e9\u00e9"]["S"] += "\u00e9"
    message = refusal(engine, "PutItem", {"TableName": "Things", "Item": item})
    assert message == "Item size has exceeded the maximum allowed size"


def test_an_update_makes_at_most_400_kb(engine: SqliteEngine) -> None:
    put(engine, sized(ITEM_BYTES - 3))
    update = {
        "TableName": "Things",
        "Key": {"pk": {"S": "k"}},
        "UpdateExpression": "SET b = :b",
        "ExpressionAttributeValues": {":b": {"S": "xxx"}},
    }
    expected = "Item size to update has exceeded the maximum allowed size"
    assert refusal(engine, "UpdateItem", update) == expected
    update["ExpressionAttributeValues"] = {":b": {"S": "xx"}}
    engine.call("UpdateItem", update)
    with pytest.raises(TransactionCancelled) as cancelled:
        engine.call(
            "TransactWriteItems",
            {"TransactItems": [{"Update": update | {"ExpressionAttributeValues": {":b": {"S": "xxx"}}}}]},
        )
    assert cancelled.value.reasons == [{"Code": "ValidationError", "Message": expected}]


def nested(levels: int) -> Json:
    value: Json = {"S": "x"}
    for level in range(levels):
        value = {"L": [value]} if level % 2 else {"M": {"a": value}}
    return value


TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)


def test_values_nest_32_levels_deep(engine: SqliteEngine) -> None:
    put(engine, {"pk": {"S": "k"}, "a": nested(31)})
    for levels in (32, 33, 500):
        payload = {"TableName": "Things", "Item": {"pk": {"S": "k"}, "a": nested(levels)}}
        assert refusal(engine, "PutItem", payload) == TOO_DEEP


def test_an_update_nests_no_deeper_than_a_put(engine: SqliteEngine) -> None:
    put(engine, {"pk": {"S": "k"}, "a": nested(30)})
    inner = {"M": {"a": {"S": "x"}}}
    path = "a" + "".join("[0]" if level % 2 else ".a" for level in range(29, -1, -1))
    update = {
        "TableName": "Things",
        "Key": {"pk": {"S": "k"}},
        "UpdateExpression": f"SET {path} = :x",
        "ExpressionAttributeValues": {":x": inner},
    }
    engine.call("UpdateItem", update)
    update["ExpressionAttributeValues"] = {":x": {"M": {"a": inner}}}
    assert refusal(engine, "UpdateItem", update) == "Nesting Levels have exceeded supported limits"


def test_an_attribute_name_has_at_most_65535_bytes(engine: SqliteEngine) -> None:
    put(engine, {"pk": {"S": "k"}, "n" * 65_535: {"S": "x"}})
    payload = {"TableName": "Things", "Item": {"pk": {"S": "k"}, "n" * 65_536: {"S": "x"}}}
    expected = "Attribute name is too large, must be less than 65536 bytes"
    assert refusal(engine, "PutItem", payload) == expected


@pytest.mark.parametrize("spelling", ["{}", "{}e0", "0.{}E38", "-{}", "000{}.000"])
def test_a_number_has_at_most_38_digits(engine: SqliteEngine, spelling: str) -> None:
    put(engine, {"pk": {"S": "k"}, "n": {"N": spelling.format("1" * 38)}})
    payload = {"TableName": "Things", "Item": {"pk": {"S": "k"}, "n": {"N": spelling.format("1" * 39)}}}
    message = refusal(engine, "PutItem", payload)
    assert message == "Attempting to store more than 38 significant digits in a Number"


@pytest.mark.parametrize("granted", ["9" * 38 + "E87", "-" + "9" * 38 + "E87", "1E-130", "-1E-130", "1E125"])
def test_the_largest_and_smallest_numbers_are_stored(engine: SqliteEngine, granted: str) -> None:
    put(engine, {"pk": {"S": "k"}, "n": {"N": granted}})


@pytest.mark.parametrize(
    "refused, what",
    [("1E126", "overflow"), ("-1E126", "overflow"), ("1E999", "overflow"), ("1E-131", "underflow")],
)
def test_numbers_beyond_the_range_are_refused(engine: SqliteEngine, refused: str, what: str) -> None:
    payload = {"TableName": "Things", "Item": {"pk": {"S": "k"}, "n": {"N": refused}}}
    size = "larger" if what == "overflow" else "smaller"
    assert refusal(engine, "PutItem", payload) == (
        f"Number {what}. Attempting to store a number with magnitude {size} than supported range"
    )


def of_kind(kind: str, size: int) -> Json:
    return {kind: "x" * size if kind == "S" else b64encode(b"x" * size).decode()}


PARTITION_TOO_LONG = (
    "One or more parameter values were invalid: "
    "Size of hashkey has exceeded the maximum size limit of2048 bytes"
)
SORT_TOO_LONG = (
    "One or more parameter values were invalid: "
    "Aggregated size of all range keys has exceeded the size limit of 1024 bytes"
)


@pytest.mark.parametrize("kind", ["S", "B"])
def test_a_partition_key_has_at_most_2048_bytes(engine: SqliteEngine, kind: str) -> None:
    engine.call("CreateTable", table("Keys", f"pk:{kind}"))
    put(engine, {"pk": of_kind(kind, 2048)}, "Keys")
    too_long = {"pk": of_kind(kind, 2049)}
    assert refusal(engine, "PutItem", {"TableName": "Keys", "Item": too_long}) == PARTITION_TOO_LONG
    for operation in ("GetItem", "DeleteItem", "UpdateItem"):
        assert refusal(engine, operation, {"TableName": "Keys", "Key": too_long}) == PARTITION_TOO_LONG


@pytest.mark.parametrize("kind", ["S", "B"])
def test_a_sort_key_has_at_most_1024_bytes(engine: SqliteEngine, kind: str) -> None:
    engine.call("CreateTable", table("Keys", "pk:S", f"sk:{kind}"))
    put(engine, {"pk": {"S": "k"}, "sk": of_kind(kind, 1024)}, "Keys")
    too_long = {"pk": {"S": "k"}, "sk": of_kind(kind, 1025)}
    assert refusal(engine, "PutItem", {"TableName": "Keys", "Item": too_long}) == SORT_TOO_LONG
    assert refusal(engine, "GetItem", {"TableName": "Keys", "Key": too_long}) == SORT_TOO_LONG


def test_the_longest_keys_in_multibyte_letters(engine: SqliteEngine) -> None:
    put(engine, {"pk": {"S": "\u00e9" * 1024}})
    payload = {"TableName": "Things", "Item": {"pk": {"S": "\u00e9" * 1024 + "x"}}}
    assert refusal(engine, "PutItem", payload) == PARTITION_TOO_LONG


@pytest.mark.parametrize("kind", ["S", "B"])
def test_the_keys_of_an_index_have_the_same_limits(engine: SqliteEngine, kind: str) -> None:
    definition = table("Keys", "pk:S", types={"gp": kind, "gs": kind}, gsi=[index("global", "gp", "gs")])
    engine.call("CreateTable", definition)
    item = {"pk": {"S": "k"}, "gp": of_kind(kind, 2048), "gs": of_kind(kind, 1024)}
    put(engine, item, "Keys")
    found = engine.call("Scan", {"TableName": "Keys", "IndexName": "global"})["Items"]
    assert found == [item]
    for name, size, expected in (("gp", 2049, PARTITION_TOO_LONG), ("gs", 1025, SORT_TOO_LONG)):
        bad = item | {name: of_kind(kind, size)}
        assert refusal(engine, "PutItem", {"TableName": "Keys", "Item": bad}) == expected
        update = {
            "TableName": "Keys",
            "Key": {"pk": {"S": "k"}},
            "UpdateExpression": f"SET {name} = :v",
            "ExpressionAttributeValues": {":v": of_kind(kind, size)},
        }
        assert refusal(engine, "UpdateItem", update) == expected
    assert engine.call("Scan", {"TableName": "Keys", "IndexName": "global"})["Items"] == [item]


@pytest.mark.parametrize("operation", ["Scan", "Query"])
def test_a_page_ends_at_1_mb(engine: SqliteEngine, operation: str) -> None:
    engine.call("CreateTable", table("Pages", "pk:S", "sk:N"))
    full = PAGE_BYTES // 4
    for number in range(5):
        item = {"pk": {"S": "k"}, "sk": {"N": str(number)}, "a": {"S": ""}}
        item["a"]["S"] = "x" * (full - item_size(item))
        put(engine, item, "Pages")
    request: Json = {"TableName": "Pages"}
    if operation == "Query":
        request |= {
            "KeyConditionExpression": "pk = :k",
            "ExpressionAttributeValues": {":k": {"S": "k"}},
        }
    page = engine.call(operation, request)
    assert page["Count"] == 4
    rest = engine.call(operation, request | {"ExclusiveStartKey": page["LastEvaluatedKey"]})
    assert rest["Count"] == 1
    assert "LastEvaluatedKey" not in rest


def test_a_batch_get_gives_16_mb_and_hands_back_the_rest(engine: SqliteEngine) -> None:
    each = 400_000
    fitting = REPLY_BYTES // each
    keys = [{"pk": {"S": f"{number:03}"}} for number in range(fitting + 2)]
    for key in keys:
        put(engine, sized(each, key["pk"]["S"]))
    last = sized(REPLY_BYTES - fitting * each, "last")
    put(engine, last)
    exact = [*keys[:fitting], {"pk": {"S": "last"}}]
    reply = engine.call("BatchGetItem", {"RequestItems": {"Things": {"Keys": exact}}})
    assert reply["UnprocessedKeys"] == {}
    put(engine, sized(REPLY_BYTES - fitting * each + 1, "last"))
    entry = {"Keys": exact, "ConsistentRead": True, "ProjectionExpression": "pk"}
    reply = engine.call("BatchGetItem", {"RequestItems": {"Things": entry}})
    assert len(reply["Responses"]["Things"]) == fitting
    left = reply["UnprocessedKeys"]
    assert left == {"Things": entry | {"Keys": [{"pk": {"S": "last"}}]}}
    rest = engine.call("BatchGetItem", {"RequestItems": left})
    assert rest == {"Responses": {"Things": [{"pk": {"S": "last"}}]}, "UnprocessedKeys": {}}
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Things"
    reply = engine.call("BatchGetItem", {"RequestItems": {arn: entry}})
    assert reply["Responses"].keys() == {arn}
    assert reply["UnprocessedKeys"] == {arn: left["Things"]}


def puts(number: int, start: int = 0) -> list[Json]:
    return [{"PutRequest": {"Item": {"pk": {"S": str(place)}}}} for place in range(start, start + number)]


def test_a_batch_writes_at_most_25_items(engine: SqliteEngine) -> None:
    engine.call("CreateTable", table("Other", "pk:S"))
    engine.call("BatchWriteItem", {"RequestItems": {"Things": puts(25)}})
    message = refusal(engine, "BatchWriteItem", {"RequestItems": {"Things": puts(26, 100)}})
    assert message.endswith(
        "at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
        "[Member must have length less than or equal to 25, "
        "Member must have length greater than or equal to 1]"
    )
    spread = {"RequestItems": {"Things": puts(20, 100), "Other": puts(6)}}
    assert refusal(engine, "BatchWriteItem", spread) == "Too many items requested for the BatchWriteItem call"
    assert (count(engine), count(engine, "Other")) == (25, 0)


def test_a_batch_gets_at_most_100_items(engine: SqliteEngine) -> None:
    engine.call("CreateTable", table("Other", "pk:S"))
    keys = [{"pk": {"S": str(place)}} for place in range(101)]
    engine.call("BatchGetItem", {"RequestItems": {"Things": {"Keys": keys[:100]}}})
    message = refusal(engine, "BatchGetItem", {"RequestItems": {"Things": {"Keys": keys}}})
    assert message.endswith(
        "at 'requestItems.Things.member.keys' failed to satisfy constraint: "
        "Member must have length less than or equal to 100"
    )
    spread = {"Things": {"Keys": keys[:100]}, "Other": {"Keys": keys[:1]}}
    message = refusal(engine, "BatchGetItem", {"RequestItems": spread})
    assert message == "Too many items requested for the BatchGetItem call"


def test_empty_batches_are_refused(engine: SqliteEngine) -> None:
    for operation in ("BatchGetItem", "BatchWriteItem"):
        message = refusal(engine, operation, {"RequestItems": {}})
        assert message == f"The requestItems parameter is required for {operation}"


def test_a_transaction_has_at_most_100_actions(engine: SqliteEngine) -> None:
    def writes(number: int) -> Json:
        items = ({"pk": {"S": str(place)}} for place in range(number))
        return {"TransactItems": [{"Put": {"TableName": "Things", "Item": item}} for item in items]}

    engine.call("TransactWriteItems", writes(100))
    message = refusal(engine, "TransactWriteItems", writes(101))
    assert message.endswith(
        "at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"
    )
    message = refusal(engine, "TransactWriteItems", writes(0))
    assert message == (
        "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1"
    )
    gets = [{"Get": {"TableName": "Things", "Key": {"pk": {"S": str(place)}}}} for place in range(101)]
    assert len(engine.call("TransactGetItems", {"TransactItems": gets[:100]})["Responses"]) == 100
    assert "less than or equal to 100" in refusal(engine, "TransactGetItems", {"TransactItems": gets})


def test_a_transaction_carries_at_most_4_mb(engine: SqliteEngine) -> None:
    def writes(total: int) -> Json:
        sizes = [ITEM_BYTES] * (total // ITEM_BYTES) + [total % ITEM_BYTES]
        items = (sized(size, str(place)) for place, size in enumerate(sizes))
        return {"TransactItems": [{"Put": {"TableName": "Things", "Item": item}} for item in items]}

    engine.call("TransactWriteItems", writes(TRANSACTION_BYTES))
    message = refusal(engine, "TransactWriteItems", writes(TRANSACTION_BYTES + 1))
    assert message.startswith("Transaction payload size cannot exceed 4MB")


def test_a_transaction_reads_at_most_4_mb(engine: SqliteEngine) -> None:
    sizes = [ITEM_BYTES] * 10 + [TRANSACTION_BYTES - 10 * ITEM_BYTES]
    for place, size in enumerate(sizes):
        put(engine, sized(size, str(place)))
    keys = ({"pk": {"S": str(place)}} for place in range(len(sizes)))
    gets = {"TransactItems": [{"Get": {"TableName": "Things", "Key": key}} for key in keys]}
    assert len(engine.call("TransactGetItems", gets)["Responses"]) == len(sizes)
    put(engine, sized(sizes[-1] + 1, "10"))
    message = refusal(engine, "TransactGetItems", gets)
    assert message == "Aggregated size of items in a transaction cannot exceed 4 MB"


def test_a_client_token_has_1_to_36_characters(engine: SqliteEngine) -> None:
    write = {"TransactItems": [{"Put": {"TableName": "Things", "Item": {"pk": {"S": "k"}}}}]}
    engine.call("TransactWriteItems", write | {"ClientRequestToken": "t" * 36})
    message = refusal(engine, "TransactWriteItems", write | {"ClientRequestToken": "t" * 37})
    assert message.endswith("Member must have length less than or equal to 36")
    message = refusal(engine, "TransactWriteItems", write | {"ClientRequestToken": ""})
    assert message.endswith("Member must have length greater than or equal to 1")


def test_a_batch_has_at_most_25_statements_and_a_statement_8192_characters(engine: SqliteEngine) -> None:
    select = "SELECT * FROM Things WHERE pk = 'k{}'"
    statements = [{"Statement": select.format(place)} for place in range(26)]
    assert len(engine.call("BatchExecuteStatement", {"Statements": statements[:25]})["Responses"]) == 25
    message = refusal(engine, "BatchExecuteStatement", {"Statements": statements})
    assert message.endswith("Member must have length less than or equal to 25")
    padding = 8192 - len(select.format(""))
    engine.call("ExecuteStatement", {"Statement": select.format("") + " " * padding})
    long = {"Statement": select.format("") + " " * (padding + 1)}
    assert refusal(engine, "ExecuteStatement", long).endswith(
        "Member must have length less than or equal to 8192"
    )


def conditional(expression: str, values: Json | None = None) -> Json:
    request = {"TableName": "Things", "Item": {"pk": {"S": "k"}}, "ConditionExpression": expression}
    return request if values is None else request | {"ExpressionAttributeValues": values}


def test_an_expression_has_at_most_4_kb(engine: SqliteEngine) -> None:
    base = "attribute_not_exists(pk)"
    engine.call("PutItem", conditional(base + " " * (4096 - len(base))))
    message = refusal(engine, "PutItem", conditional(base + " " * (4097 - len(base))))
    assert message == (
        "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; "
        "expression size: 4097"
    )


def test_an_expression_has_at_most_300_operators(engine: SqliteEngine) -> None:
    def expression(operators: int) -> str:
        # Each comparison is an operator, and so is what joins or negates it.
        terms = " OR ".join(["a<b"] * ((operators - 1) // 2) + ["c<>d"])
        return terms if operators % 2 else f"NOT {terms}"

    for operators in (299, 300):
        engine.call("PutItem", conditional(expression(operators)))
    for operators in (301, 302):
        message = refusal(engine, "PutItem", conditional(expression(operators)))
        assert message == (
            "Invalid ConditionExpression: The expression contains too many operators; operator count: 301"
        )


def test_in_takes_at_most_100_operands(engine: SqliteEngine) -> None:
    def request(operands: int) -> Json:
        values = {f":{place}": {"N": str(place)} for place in range(operands)}
        return conditional(f"NOT a IN ({','.join(values)})", values)

    engine.call("PutItem", request(100))
    message = refusal(engine, "PutItem", request(101))
    assert message == (
        "Invalid ConditionExpression: The IN operator is provided with too many operands; "
        "number of operands: 101"
    )


def test_a_path_has_at_most_32_levels(engine: SqliteEngine) -> None:
    engine.call("PutItem", conditional(f"attribute_not_exists({'.'.join('a' * 32)})"))
    message = refusal(engine, "PutItem", conditional(f"attribute_not_exists({'.'.join('a' * 33)})"))
    assert message == (
        "Invalid ConditionExpression: The document path has too many nesting levels; nesting levels: 33"
    )


def test_a_list_index_has_31_bits(engine: SqliteEngine) -> None:
    engine.call("PutItem", conditional("attribute_not_exists(a[2147483647])"))
    for place in ("2147483648", "4294967296", "9" * 1000):
        message = refusal(engine, "PutItem", conditional(f"attribute_not_exists(a[{place}])"))
        assert message == (
            f"Invalid ConditionExpression: List index is not within the allowable range; index: [{place}]"
        )


def test_a_place_far_behind_a_list_is_its_next_one(engine: SqliteEngine) -> None:
    put(engine, {"pk": {"S": "k"}, "l": {"L": []}})
    reply = engine.call(
        "UpdateItem",
        {
            "TableName": "Things",
            "Key": {"pk": {"S": "k"}},
            "UpdateExpression": "SET l[1000000000] = :b, l[5] = :a",
            "ExpressionAttributeValues": {":a": {"S": "a"}, ":b": {"S": "b"}},
            "ReturnValues": "ALL_NEW",
        },
    )
    assert reply["Attributes"]["l"] == {"L": [{"S": "a"}, {"S": "b"}]}


def test_a_table_name_has_3_to_255_letters(engine: SqliteEngine) -> None:
    for name in ("abc", "t" * 255, "..."):
        engine.call("CreateTable", table(name, "pk:S"))
        assert engine.call("DescribeTable", {"TableName": name})["Table"]["TableName"] == name
    for name, constraint in (
        ("ab", "Member must have length greater than or equal to 3"),
        ("t" * 256, "Member must have length less than or equal to 255"),
    ):
        assert refusal(engine, "CreateTable", table(name, "pk:S")) == (
            f"1 validation error detected: Value '{name}' at 'tableName' failed to satisfy constraint: "
            f"{constraint}"
        )


def test_a_table_has_at_most_20_global_and_5_local_indexes(engine: SqliteEngine) -> None:
    def definition(name: str, global_indexes: int, local_indexes: int) -> Json:
        return table(
            name,
            "pk:S",
            "sk:S",
            types={"x": "S"},
            gsi=[index(f"global{place}", "x") for place in range(global_indexes)],
            lsi=[index(f"local{place}", "pk", "x") for place in range(local_indexes)],
        )

    engine.call("CreateTable", definition("Most", 20, 5))
    assert refusal(engine, "CreateTable", definition("More", 21, 5)) == (
        "One or more parameter values were invalid: "
        "GlobalSecondaryIndex count exceeds the per-table limit of 20"
    )
    assert refusal(engine, "CreateTable", definition("More", 20, 6)) == (
        "One or more parameter values were invalid: "
        "Number of LocalSecondaryIndexes exceeds per-table limit of 5"
    )
    update = {
        "TableName": "Most",
        "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index("one-more", "x")}],
    }
    with pytest.raises(ServiceError) as refused:
        engine.call("UpdateTable", update)
    assert refused.value.code == "LimitExceededException"
    assert not refused.value.retryable


def test_a_table_has_at_most_50_tags(engine: SqliteEngine) -> None:
    arn = engine.call("DescribeTable", {"TableName": "Things"})["Table"]["TableArn"]
    tags = [{"Key": f"key{place}", "Value": ""} for place in range(51)]
    expected = "Number of Tags exceed the current limit for the provided ResourceArn"
    assert refusal(engine, "TagResource", {"ResourceArn": arn, "Tags": tags}) == expected
    engine.call("TagResource", {"ResourceArn": arn, "Tags": tags[:50]})
    assert refusal(engine, "TagResource", {"ResourceArn": arn, "Tags": tags[50:]}) == expected
    assert len(engine.call("ListTagsOfResource", {"ResourceArn": arn})["Tags"]) == 50


def test_tags_have_128_and_256_characters(engine: SqliteEngine) -> None:
    arn = engine.call("DescribeTable", {"TableName": "Things"})["Table"]["TableArn"]

    def request(key: int, value: int) -> Json:
        return {"ResourceArn": arn, "Tags": [{"Key": "k" * key, "Value": "v" * value}]}

    engine.call("TagResource", request(128, 256))
    assert "The Tag Key provided is invalid" in refusal(engine, "TagResource", request(129, 0))
    assert "The Tag Key provided is invalid" in refusal(engine, "TagResource", request(0, 0))
    assert "The Tag Value provided is invalid" in refusal(engine, "TagResource", request(1, 257))


def test_lists_of_tables_have_at_most_100(engine: SqliteEngine) -> None:
    for place in range(100):
        engine.call("CreateTable", table(f"T{place:03}", "pk:S"))
    page = engine.call("ListTables", {})
    assert len(page["TableNames"]) == 100
    assert page["LastEvaluatedTableName"] == page["TableNames"][-1]
    rest = engine.call("ListTables", {"ExclusiveStartTableName": page["LastEvaluatedTableName"]})
    assert rest == {"TableNames": ["Things"]}
    for limit, word in ((0, "greater"), (101, "less")):
        assert f"Member must have value {word} than or equal to" in refusal(
            engine, "ListTables", {"Limit": limit}
        )


def test_a_scan_has_at_most_a_million_segments(engine: SqliteEngine) -> None:
    engine.call("Scan", {"TableName": "Things", "Segment": 999_999, "TotalSegments": 1_000_000})
    message = refusal(engine, "Scan", {"TableName": "Things", "Segment": 0, "TotalSegments": 1_000_001})
    assert message == (
        "1 validation error detected: Value '1000001' at 'totalSegments' failed to satisfy constraint: "
        "Member must have value less than or equal to 1000000"
    )


@pytest.mark.parametrize("limit", [2**31, 2**63, 2**64, 1e300, -(2**31) - 1, float("nan"), float("inf")])
def test_a_whole_number_fits_javas_integer(engine: SqliteEngine, limit: float) -> None:
    with pytest.raises(ServiceError) as refused:
        engine.call("Scan", {"TableName": "Things", "Limit": limit})
    assert refused.value.code == "SerializationException"
    engine.call("Scan", {"TableName": "Things", "Limit": 2**31 - 1})
