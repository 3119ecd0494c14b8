"""What every contender is measured with: the items, and the requests over the wire.

Items are about 0.9 KB, fifty to a partition. Bodies are made once and played in a cycle. Those
that write come in two versions, one pass after the other, so that no write finds the item as it
would leave it. Neighbours in a list have no key in common: requests in flight never meet.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

PER_PARTITION = 50
#: Items of a batch, and of a page of a Scan.
BATCH = 25
SCAN_PAGE = 500
#: The operation that shows what a read between writes costs, beside PutItem and GetItem alone.
PUT_THEN_GET = "PutItem, then GetItem"
READS = frozenset({"GetItem", "Query", "BatchGetItem", "Scan"})
TABLE_NAME = "bench"
INDEX_NAME = "by_reviewer"
_WORDS = ["river", "stone", "maple", "orbit", "quartz", "lantern", "meadow", "harbour", "ember", "willow"]


def table(index: str, attribute: str) -> dict[str, Any]:
    """Return the CreateTable request of a table with one index, on an attribute, that projects everything."""
    return {
        "TableName": TABLE_NAME,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", attribute)
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": attribute, "KeyType": "HASH"},
                    {"AttributeName": "pk", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    }


#: The table of the wire.
TABLE = table(INDEX_NAME, "reviewer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One kind of request: what it is called in the report, and on the wire.

    Bodies take the targets in turn; most operations have one.
    """

    title: str
    targets: tuple[str, ...]
    bodies: tuple[dict[str, Any], ...]

    @property
    def requests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each body with its target."""
        return zip(cycle(self.targets), self.bodies, strict=False)

    @property
    def writes(self) -> bool:
        """Whether it changes items."""
        return not READS.issuperset(self.targets)


def key(number: int) -> dict[str, Any]:
    """Return the key of the item with this number."""
    return {
        "pk": {"S": f"TENANT#acme#SURVEY#{number // PER_PARTITION:07d}"},
        "sk": {"S": f"SECTION#{number % PER_PARTITION:04d}"},
    }


def item(number: int) -> dict[str, Any]:
    """Return the item with this number: ten attributes, about 0.9 KB."""
    dice = random.Random(number)
    return {
        **key(number),
        "title": {"S": " ".join(dice.choices(_WORDS, k=8))},
        "status": {"S": dice.choice(("draft", "in_progress", "completed"))},
        "order": {"N": str(number % PER_PARTITION)},
        "price": {"N": f"{dice.randint(1, 99999)}.{dice.randint(10, 99)}"},
        "active": {"BOOL": True},
        "tags": {"SS": sorted(dice.sample(_WORDS, 3))},
        "address": {"M": {"street": {"S": "12 Main Street"}, "zip": {"S": "10115"}, "floor": {"N": "3"}}},
        "notes": {"S": " ".join(dice.choices(_WORDS, k=66))},
        "updated_at": {"S": "2026-01-31T12:00:00.000Z"},
    }


def indexed_item(number: int, items: int) -> dict[str, Any]:
    """Return the item with this number as the wire's table holds it, `items` in all.

    A reviewer has fifty items, each in another partition, so the index's order is the partition's.
    """
    return {**item(number), "reviewer": reviewer(number % reviewers(items))}


def reviewer(number: int) -> dict[str, str]:
    """Return the index key with this number."""
    return {"S": f"REVIEWER#{number:05d}"}


def reviewers(items: int) -> int:
    """Return how many reviewers share this many items."""
    # At least as many as a partition has items, so that no reviewer meets a partition twice.
    return max(PER_PARTITION, items // PER_PARTITION)


@cache
def operations(items: int) -> tuple[Operation, ...]:
    """Return the operations of the wire, in the order of the report."""
    numbers = random.Random(7).sample(range(items), min(512, items))
    return (
        Operation(
            title="PutItem", targets=("PutItem",), bodies=tuple(_puts(numbers, items, versions=("1", "2")))
        ),
        Operation(title="GetItem", targets=("GetItem",), bodies=tuple(get_body(n) for n in numbers)),
        Operation(
            title="Query of 50",
            targets=("Query",),
            bodies=tuple(query_body(n) for n in range(items // PER_PARTITION)),
        ),
        Operation(
            title="GSI query of 50",
            targets=("Query",),
            bodies=tuple(index_query_body(n) for n in range(reviewers(items))),
        ),
        Operation(title="conditional UpdateItem", targets=("UpdateItem",), bodies=tuple(_updates(numbers))),
        Operation(
            title="TransactWriteItems of 2",
            targets=("TransactWriteItems",),
            bodies=tuple(_transactions(numbers, items)),
        ),
        Operation(
            title=f"BatchGetItem of {BATCH}",
            targets=("BatchGetItem",),
            bodies=tuple(batch_get_body(batch) for batch in _batches(numbers)),
        ),
        Operation(
            title=f"BatchWriteItem of {BATCH}",
            targets=("BatchWriteItem",),
            bodies=tuple(_batch_writes(numbers, items)),
        ),
        Operation(title=f"Scan of {SCAN_PAGE}", targets=("Scan",), bodies=(scan_body(),)),
        Operation(
            title=PUT_THEN_GET,
            targets=("PutItem", "GetItem"),
            bodies=tuple(_puts_and_gets(numbers, items)),
        ),
    )


def get_body(number: int) -> dict[str, Any]:
    return {"TableName": TABLE_NAME, "Key": key(number)}


def query_body(partition: int) -> dict[str, Any]:
    return {
        "TableName": TABLE_NAME,
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": key(partition * PER_PARTITION)["pk"]},
        "Limit": PER_PARTITION,
    }


def index_query_body(number: int) -> dict[str, Any]:
    return {
        "TableName": TABLE_NAME,
        "IndexName": INDEX_NAME,
        "KeyConditionExpression": "reviewer = :r",
        "ExpressionAttributeValues": {":r": reviewer(number)},
        "Limit": PER_PARTITION,
    }


def batch_get_body(numbers: list[int]) -> dict[str, Any]:
    return {"RequestItems": {TABLE_NAME: {"Keys": [key(number) for number in numbers]}}}


def scan_body() -> dict[str, Any]:
    return {"TableName": TABLE_NAME, "Limit": SCAN_PAGE}


def _puts(numbers: list[int], items: int, *, versions: tuple[str, str]) -> Iterator[dict[str, Any]]:
    for version in versions:
        for number in numbers:
            put = {**indexed_item(number, items), "version": {"N": version}}
            yield {"TableName": TABLE_NAME, "Item": put}


def _updates(numbers: list[int]) -> Iterator[dict[str, Any]]:
    for version in range(2):
        for number in numbers:
            yield {
                "TableName": TABLE_NAME,
                "Key": key(number),
                "UpdateExpression": "SET price = :price",
                "ConditionExpression": "attribute_exists(pk)",
                "ExpressionAttributeValues": {":price": {"N": str(number * 2 + version)}},
            }


def _transactions(numbers: list[int], items: int) -> Iterator[dict[str, Any]]:
    half = len(numbers) // 2
    for version in ("3", "4"):
        for pair in zip(numbers[:half], numbers[half : 2 * half], strict=True):
            puts = [{**indexed_item(number, items), "version": {"N": version}} for number in pair]
            yield {"TransactItems": [{"Put": {"TableName": TABLE_NAME, "Item": put}} for put in puts]}


def _batches(numbers: list[int]) -> Iterator[list[int]]:
    for first in range(0, len(numbers) - BATCH + 1, BATCH):
        yield numbers[first : first + BATCH]


def _batch_writes(numbers: list[int], items: int) -> Iterator[dict[str, Any]]:
    for version in ("5", "6"):
        for batch in _batches(numbers):
            puts = [{**indexed_item(number, items), "version": {"N": version}} for number in batch]
            yield {"RequestItems": {TABLE_NAME: [{"PutRequest": {"Item": put}} for put in puts]}}


def _puts_and_gets(numbers: list[int], items: int) -> Iterator[dict[str, Any]]:
    """Yield a put and a get of the same item. Requests of other connections may come between."""
    for put in _puts(numbers, items, versions=("7", "8")):
        yield put
        yield {"TableName": TABLE_NAME, "Key": {name: put["Item"][name] for name in ("pk", "sk")}}
