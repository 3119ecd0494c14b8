"""A stored item tells the value of one attribute from its JSON as from the decoded item."""

from __future__ import annotations

import random
from typing import Any

import pytest

from solotable._protocol.json_codec import dumps
from solotable.engines import sqlite
from solotable.engines.sqlite.items.storage import StoredItem
from tests.conformance.tables import TABLES
from tests.differential.values import Values

X = {"S": "x"}
INNER = {"M": {"a": X, "g": X, "z": X}}


def stored(item: Any) -> StoredItem:
    return StoredItem(1, 0, dumps(item))


@pytest.mark.parametrize(
    "item",
    [
        {"p": X, "g": X},
        {"p": X, "g": X, "z": X},
        {"g": X, "p": X, "z": X},
        {"p": X, "m": INNER},
        {"p": X, "m": INNER, "z": X},
        {"p": X, "g": X, "m": INNER},
        {"p": X, "m": INNER, "g": X},
        {"p": X, "l": {"L": [INNER, INNER]}, "z": X},
        {"p": {"S": ',"g":{"S":"x"}'}},
        {"p": {"S": ',"g":{"S":"x"}}'}, "z": X},
        {'p,"g': X, "z": X},
        {"p": X},
    ],
    ids=repr,
)
def test_an_attribute_of_an_inner_map_is_not_one_of_the_item(item: Any) -> None:
    for value in (X, {"S": "y"}, None):
        assert stored(item).has("g", value) is (item.get("g") == value)


def test_random_items_have_their_attributes_and_no_others() -> None:
    values = Values(random.Random(2))
    for _ in range(300):
        item = {name: values.value(3) for name in values.random.sample("abcdefg", 4)}
        for name in "abcg":
            for value in (item.get(name), values.value(3), None):
                assert stored(item).has(name, value) is (item.get(name) == value)


def test_a_short_rest_decides_without_the_item() -> None:
    item = {"p": {"S": "x" * 100}, "m": INNER, "g": X, "z": X}
    found = stored(item)
    assert found.has("g", X)
    assert found.has("missing", None)
    assert found._item is None


def test_a_put_moves_an_index_key_out_of_an_inner_map() -> None:
    key = {"pk": {"S": "1"}, "sk": {"S": "1"}}
    inner = {"M": {"a": X, "gp": {"S": "g"}, "gs": {"N": "1"}}}
    with sqlite.open(":memory:") as engine:
        engine.call("CreateTable", TABLES["Indexed"])
        engine.call("PutItem", {"TableName": "Indexed", "Item": {**key, "m": inner, "z": X}})
        moved = {**key, "m": X, "gp": {"S": "g"}, "gs": {"N": "1"}}
        engine.call("PutItem", {"TableName": "Indexed", "Item": moved})
        query = {
            "TableName": "Indexed",
            "IndexName": TABLES["Indexed"]["GlobalSecondaryIndexes"][0]["IndexName"],
            "KeyConditionExpression": "gp = :g",
            "ExpressionAttributeValues": {":g": {"S": "g"}},
        }
        assert engine.call("Query", query)["Count"] == 1
