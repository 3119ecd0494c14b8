"""The table that is tortured, and short words for what is asked of it."""

from __future__ import annotations

from typing import Any

from solotable.engines.sqlite import SqliteEngine
from tests.conformance.tables import index, table

Json = dict[str, Any]

SHOP = table(
    "Shop",
    "pk:S",
    types={"shelf": "S"},
    gsi=[index("by_shelf", "shelf")],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
)
SHELVES = 7


def content(number: int) -> Json:
    """Return the item that a number stands for; nothing of it is left to chance."""
    return {
        "pk": {"S": f"item-{number}"},
        "shelf": {"S": f"shelf-{number % SHELVES}"},
        "n": {"N": str(number)},
        "text": {"S": f"{number:x}-" * (20 + number % 90)},
    }


def put(engine: SqliteEngine, item: Json) -> None:
    engine.call("PutItem", {"TableName": "Shop", "Item": item})


def get(engine: SqliteEngine, key: str) -> Json | None:
    request = {"TableName": "Shop", "Key": {"pk": {"S": key}}, "ConsistentRead": True}
    return engine.call("GetItem", request).get("Item")


def number(engine: SqliteEngine, key: str) -> int:
    item = get(engine, key)
    return 0 if item is None else int(item["n"]["N"])


def set_from(engine: SqliteEngine, key: str, old: int, new: int) -> None:
    """Set a number on the condition that it is what it was; ConditionFailed when it is not."""
    engine.call("UpdateItem", {"TableName": "Shop", **change(key, old, new)})


def set_both(engine: SqliteEngine, keys: tuple[str, str], old: int, new: int) -> None:
    """Set two numbers in one transaction."""
    actions = [{"Update": {"TableName": "Shop", **change(key, old, new)}} for key in keys]
    engine.call("TransactWriteItems", {"TransactItems": actions})


def change(key: str, old: int, new: int) -> Json:
    return {
        "Key": {"pk": {"S": key}},
        "UpdateExpression": "SET n = :new",
        "ConditionExpression": "n = :old" if old else "attribute_not_exists(n)",
        "ExpressionAttributeValues": {":new": {"N": str(new)}, **({":old": {"N": str(old)}} if old else {})},
    }


def both(engine: SqliteEngine, keys: tuple[str, str]) -> tuple[int, int]:
    """Read two numbers at one moment."""
    gets = [{"Get": {"TableName": "Shop", "Key": {"pk": {"S": key}}}} for key in keys]
    replies = engine.call("TransactGetItems", {"TransactItems": gets})["Responses"]
    first, second = (int(reply["Item"]["n"]["N"]) if reply.get("Item") else 0 for reply in replies)
    return first, second


def pages(engine: SqliteEngine, operation: str, **members: Any) -> list[Json]:
    """Return the items of all pages."""
    found: list[Json] = []
    start: Json = {}
    while True:
        page = engine.call(operation, {"TableName": "Shop", **members, **start})
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def shelf(engine: SqliteEngine, place: int) -> list[Json]:
    """Return the items of a shelf through the index."""
    return pages(
        engine,
        "Query",
        IndexName="by_shelf",
        KeyConditionExpression="shelf = :shelf",
        ExpressionAttributeValues={":shelf": {"S": f"shelf-{place}"}},
    )
