"""Replies as dicts and as bytes say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solotable._protocol.encode.json_replies import encode_json
from solotable._protocol.encode.replies import encode_reply
from solotable._protocol.replies import (
    BatchGot,
    BatchWrote,
    GotItem,
    Page,
    Reply,
    SomeItem,
    StatementRan,
    TransactGot,
    TransactWrote,
    WroteItem,
    decode_items,
    iterate_items,
)

RAW = b'{"p":{"S":"\xc3\xa9"}}'
ITEM: dict[str, Any] = {"p": {"S": "é"}}
UNITS = {"TableName": "abc", "CapacityUnits": 0.5}


@pytest.mark.parametrize(
    ("reply", "wire"),
    [
        (GotItem(), {}),
        (GotItem(item=RAW, capacity=UNITS), {"Item": ITEM, "ConsumedCapacity": UNITS}),
        (GotItem(item={}), {"Item": {}}),
        (WroteItem(), {}),
        (WroteItem(attributes=ITEM, collection={}), {"Attributes": ITEM, "ItemCollectionMetrics": {}}),
        (Page(items=None, count=2, scanned=3), {"Count": 2, "ScannedCount": 3}),
        (Page(items=[], count=0, scanned=0), {"Items": [], "Count": 0, "ScannedCount": 0}),
        (
            Page(items=[RAW, {"q": {"N": "1"}}, RAW], count=3, scanned=3, last_key=ITEM, capacity=UNITS),
            {
                "Items": [ITEM, {"q": {"N": "1"}}, ITEM],
                "Count": 3,
                "ScannedCount": 3,
                "LastEvaluatedKey": ITEM,
                "ConsumedCapacity": UNITS,
            },
        ),
        (
            BatchGot(responses={"abc": [RAW], "b-d": []}, capacity=[UNITS]),
            {"Responses": {"abc": [ITEM], "b-d": []}, "UnprocessedKeys": {}, "ConsumedCapacity": [UNITS]},
        ),
        (BatchWrote(), {"UnprocessedItems": {}}),
        (
            TransactGot(items=[None, RAW, ITEM, {}]),
            {"Responses": [{}, {"Item": ITEM}, {"Item": ITEM}, {"Item": {}}]},
        ),
        (TransactWrote(), {}),
        (TransactWrote(capacity=[UNITS]), {"ConsumedCapacity": [UNITS]}),
        (StatementRan(items=[RAW], next_token="t"), {"Items": [ITEM], "NextToken": "t"}),
        ({"TableNames": ["abc"]}, {"TableNames": ["abc"]}),
    ],
)
def test_a_reply_has_one_wire_form(reply: Reply, wire: dict[str, Any]) -> None:
    assert encode_reply(reply) == wire
    assert json.loads(encode_json(reply)) == wire
    assert list(json.loads(encode_json(reply))) == list(encode_reply(reply))


#: Not as our encoder writes it: a reply that holds it was not decoded and encoded.
ODD = b'{"p" : {"S":"x"}}'


@pytest.mark.parametrize(
    "reply",
    [
        GotItem(item=ODD),
        WroteItem(attributes=ODD),
        Page(items=[ODD], count=1, scanned=1),
        BatchGot(responses={"abc": [ODD]}),
        TransactGot(items=[ODD]),
        StatementRan(items=[ODD]),
    ],
)
def test_stored_bytes_are_spliced_in_unread(reply: Reply) -> None:
    assert ODD in encode_json(reply)


def test_items_are_iterated_a_few_at_a_time() -> None:
    """Of a damaged page, the items before the damage are read, so no more than a few are decoded ahead."""
    several = b",".join([RAW] * 3)
    page: list[SomeItem] = [RAW, several, ITEM] * 20
    assert list(iterate_items(page)) == decode_items(page) == [ITEM] * 100
    found = iterate_items([*page, b"{"])
    assert [next(found) for _ in range(60)] == [ITEM] * 60
    with pytest.raises(ValueError):
        list(found)
