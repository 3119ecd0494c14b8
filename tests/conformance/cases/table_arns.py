"""A table named by its ARN: every operation takes it, and the reply names the table as the request did.

The API model says so of ConsumedCapacity: "If you had specified the ARN of a table in the input, you'll see
the table ARN in the response"; Responses, UnprocessedKeys and ItemCollectionMetrics have ARNs for keys.
"""

from __future__ import annotations

from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

NAMES = "names the table instead of its ARN"
NO_TRANSACTIONS = "does not accept an ARN in a transaction"
KEY: Json = {"pk": {"S": "1"}}
PAIR: Json = {"pk": {"S": "1"}, "sk": {"S": "1"}}
TOTAL: Json = {"ReturnConsumedCapacity": "TOTAL"}


def arn(name: str) -> str:
    return f"arn:aws:dynamodb:us-east-1:000000000000:table/{name}"


HASH = arn("Hash")
SEED = Step("PutItem", {"TableName": "Hash", "Item": KEY})


def cost(units: float, table: str = HASH, **more: Any) -> Json:
    return {"TableName": table, "CapacityUnits": units, **more}


def by_arn(operation: str, expect: Expectation, **members: Any) -> Case:
    return case(
        f"{operation} by ARN",
        SEED,
        Step(operation, {"TableName": HASH, **TOTAL, **members}, expect),
        tables="Hash",
        local=NAMES,
    )


def collections(reply: Json) -> None:
    assert list(reply["ItemCollectionMetrics"]) == [arn("Indexed")], reply


FOUND: Json = {"Items": [KEY], "Count": 1, "ScannedCount": 1}
CASES: list[Case] = [
    by_arn("GetItem", {"Item": KEY, "ConsumedCapacity": cost(0.5)}, Key=KEY),
    by_arn("PutItem", {"ConsumedCapacity": cost(1.0)}, Item=KEY),
    by_arn("UpdateItem", {"ConsumedCapacity": cost(1.0)}, Key=KEY),
    by_arn("DeleteItem", {"ConsumedCapacity": cost(1.0)}, Key=KEY),
    by_arn(
        "Query",
        FOUND | {"ConsumedCapacity": cost(0.5)},
        KeyConditionExpression="pk = :p",
        ExpressionAttributeValues={":p": {"S": "1"}},
    ),
    by_arn("Scan", FOUND | {"ConsumedCapacity": cost(0.5)}),
    case(
        "BatchGetItem by ARN answers under the ARN",
        SEED,
        Step(
            "BatchGetItem",
            {"RequestItems": {HASH: {"Keys": [KEY]}}, **TOTAL},
            {"Responses": {HASH: [KEY]}, "UnprocessedKeys": {}, "ConsumedCapacity": [cost(0.5)]},
        ),
        tables="Hash",
        local=NAMES,
    ),
    case(
        "BatchGetItem by ARN and by name answers under each as it was given",
        SEED,
        Step(
            "BatchGetItem",
            {"RequestItems": {HASH: {"Keys": [KEY]}, "Pair": {"Keys": [PAIR]}}},
            {"Responses": {HASH: [KEY], "Pair": []}, "UnprocessedKeys": {}},
        ),
        tables="Hash Pair",
        local=NAMES,
    ),
    case(
        "a table is named once in a batch, by its name or by its ARN",
        Step(
            "BatchGetItem",
            {"RequestItems": {HASH: {"Keys": [KEY]}, "Hash": {"Keys": [KEY]}}},
            invalid(None),
        ),
        tables="Hash",
        local="accepts both names",
    ),
    case(
        "BatchWriteItem by ARN",
        Step(
            "BatchWriteItem",
            {"RequestItems": {HASH: [{"PutRequest": {"Item": KEY}}]}, **TOTAL},
            {"UnprocessedItems": {}, "ConsumedCapacity": [cost(1.0)]},
        ),
        Step("GetItem", {"TableName": "Hash", "Key": KEY}, {"Item": KEY}),
        tables="Hash",
        local=NAMES,
    ),
    case(
        "BatchWriteItem by ARN reports item collections under the ARN",
        Step(
            "BatchWriteItem",
            {
                "RequestItems": {arn("Indexed"): [{"PutRequest": {"Item": PAIR}}]},
                "ReturnItemCollectionMetrics": "SIZE",
            },
            collections,
        ),
        tables="Indexed",
        local="returns no item collection metrics",
    ),
    case(
        "TransactWriteItems by ARN",
        Step(
            "TransactWriteItems",
            {"TransactItems": [{"Put": {"TableName": HASH, "Item": KEY}}], **TOTAL},
            {"ConsumedCapacity": [cost(2.0, WriteCapacityUnits=2.0)]},
        ),
        tables="Hash",
        local=NO_TRANSACTIONS,
    ),
    case(
        "TransactWriteItems by ARN reports item collections under the ARN",
        Step(
            "TransactWriteItems",
            {
                "TransactItems": [{"Put": {"TableName": arn("Indexed"), "Item": PAIR}}],
                "ReturnItemCollectionMetrics": "SIZE",
            },
            collections,
        ),
        tables="Indexed",
        local=NO_TRANSACTIONS,
    ),
    case(
        "one item by name and by ARN is one item",
        Step(
            "TransactWriteItems",
            {
                "TransactItems": [
                    {"Put": {"TableName": HASH, "Item": KEY}},
                    {"Delete": {"TableName": "Hash", "Key": KEY}},
                ]
            },
            invalid("Transaction request cannot include multiple operations on one item"),
        ),
        tables="Hash",
        local=NO_TRANSACTIONS,
    ),
    case(
        "TransactGetItems by ARN",
        SEED,
        Step(
            "TransactGetItems",
            {"TransactItems": [{"Get": {"TableName": HASH, "Key": KEY}}], **TOTAL},
            {"Responses": [{"Item": KEY}], "ConsumedCapacity": [cost(2.0, ReadCapacityUnits=2.0)]},
        ),
        tables="Hash",
        local=NO_TRANSACTIONS,
    ),
    case(
        "a table that is not there is not found by its ARN",
        Step("GetItem", {"TableName": arn("Nowhere"), "Key": KEY}, Fails("ResourceNotFoundException")),
    ),
    case(
        "a description names the table, however it was asked for",
        Step("DescribeTable", {"TableName": HASH}, lambda reply: _named(reply["Table"], "Hash")),
        tables="Hash",
    ),
]


def _named(description: Json, name: str) -> None:
    assert description["TableName"] == name
