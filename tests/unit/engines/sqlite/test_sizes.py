"""The size that is stored beside an item is the item's own, however the item came to be."""

from __future__ import annotations

import pytest

from solotable._values import item_size
from tests.conformance.tables import table

from .clocked import opened


@pytest.mark.parametrize(
    "expression",
    [
        "ADD whole :1, fraction :1, made :1",
        "SET whole = :long, fraction = :text, made = :long",
        "SET m.a = :long, m.b = :text, l[7] = :text REMOVE whole, l[0]",
        "SET made = if_not_exists(whole, :1) ADD tags :tags DELETE gone :tags",
        "REMOVE absent, m",
    ],
)
def test_an_updated_item_is_counted_as_if_it_were_put(expression: str) -> None:
    item = {
        "pk": {"S": "k"},
        "whole": {"N": "1794762162877300"},
        "fraction": {"N": "-0.5"},
        "m": {"M": {"a": {"N": "1"}, "b": {"S": "\u00e9"}}},
        "l": {"L": [{"S": "first"}, {"S": "second"}]},
        "tags": {"SS": ["a"]},
        "gone": {"SS": ["a", "b"]},
    }
    values = {
        ":1": {"N": "1"},
        ":long": {"N": "12345678901200"},
        ":text": {"S": "text"},
        ":tags": {"SS": ["a", "b"]},
    }
    used = {name: value for name, value in values.items() if name in expression}
    update = {"TableName": "Things", "Key": {"pk": {"S": "k"}}, "UpdateExpression": expression}
    if used:
        update["ExpressionAttributeValues"] = used
    with opened() as engine:
        engine.call("CreateTable", table("Things", "pk:S"))
        engine.call("PutItem", {"TableName": "Things", "Item": item})
        updated = engine.call("UpdateItem", update | {"ReturnValues": "ALL_NEW"})["Attributes"]
        assert updated != item
        found = engine.database.writer.execute("SELECT size FROM t1_1").fetchall()
    assert found == [(item_size(updated),)]
