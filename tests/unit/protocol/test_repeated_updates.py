"""UpdateItem texts that repeat: the cached template gives every client the replies of the general path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.prepared import text_cache
from solotable._expressions.prepared.text_cache import TextCache, key_of
from solotable._protocol.decode import items
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.requests import NO_UPDATE, PreparedUpdateItem
from solotable._protocol.wire import answer
from solotable.engines.sqlite.engine import SqliteEngine
from tests.unit.engines.sqlite.clocked import Clock

_TABLE = {
    "TableName": "Things",
    "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "r", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "r", "AttributeType": "S"},
        {"AttributeName": "g", "AttributeType": "N"},
        {"AttributeName": "l", "AttributeType": "N"},
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by_l",
            "KeySchema": [
                {"AttributeName": "p", "KeyType": "HASH"},
                {"AttributeName": "l", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
}
_TTL = {"AttributeName": "t", "Enabled": True}
_UPDATES = [
    "SET #a = :x",
    "SET #a = :x, #b = :y REMOVE #c",
    "SET #a = #a + :x",
    "SET #a = if_not_exists(#a, :x) - :y",
    "SET #a = if_not_exists(#a, :x)",
    "SET #a = list_append(#a, :x)",
    "ADD #a :x SET #b = :y",
    "DELETE #a :x",
    "REMOVE #a, #b",
    "SET #a.#b = :x",
    None,
]
_CONDITIONS = [
    "attribute_not_exists(p)",
    "attribute_exists(#a) AND #a < :z",
    "#b BETWEEN :y AND :z",
    "#b >= :y OR NOT #a = :x",
    "#c IN (:x, :y)",
    "attribute_type(#a, :z)",
    "size(#a) > :z",
    "begins_with(#a, :x)",
]
_NAMES = st.sampled_from(["n", "n", "s", "s", "new", "other", "m", "g", "g", "l", "t", "p"])
#: Mostly numbers, with which most of the texts are valid.
_WHOLE = st.sampled_from([{"N": "5"}, {"N": "-7"}, {"N": "100"}])
_ANY = st.sampled_from(
    [
        *({"N": "1.50"}, {"N": "9" * 38}, {"N": "1e3"}, {"N": "x"}, {"S": ""}, {"S": "N"}, {"S": "é"}),
        *({"BOOL": True}, {"NULL": True}, {"B": "YQ=="}, {"L": [{"N": "1"}]}, {"M": {"k": {"S": "v"}}}),
        *({"SS": ["b", "a"]}, {"NS": ["1"]}, {}),
    ]
)
_VALUES = st.one_of(_WHOLE, _WHOLE, _WHOLE, _ANY)
_LONG = {"S": "x" * (400 * 1024 - 64)}
_ITEMS: list[dict[str, Any]] = [
    {
        "l": {"N": "2"},
        "t": {"N": "1900000000"},
        "n": {"N": "41"},
        "s": {"S": "text"},
        "g": {"N": "3"},
        "m": {"M": {"s": {"N": "1"}}},
    },
    {"n": {"S": "no number"}, "s": {"SS": ["a", "c"]}},
    {"n": {"N": "1.5"}, "s": {"L": []}, "m": {"N": "7"}},
    # A few bytes below the largest item.
    {"n": {"N": "1"}, "long": _LONG, "l": {"N": "9"}},
]


class _NoCache(TextCache):
    def find(self, key: object) -> None:
        """Return no template."""


@pytest.fixture(scope="module")
def engines() -> Iterator[list[SqliteEngine]]:
    clock = Clock()
    engines = [SqliteEngine(":memory:", clock=clock), SqliteEngine(":memory:", clock=clock)]
    for engine in engines:
        engine.call("CreateTable", _TABLE)
        engine.call("UpdateTimeToLive", {"TableName": "Things", "TimeToLiveSpecification": _TTL})
    yield engines
    for engine in engines:
        engine.close()


@st.composite
def _requests(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return UpdateItems with the same texts, on existing and missing items."""
    update = draw(st.sampled_from(_UPDATES))
    condition = draw(st.one_of(st.none(), st.sampled_from(_CONDITIONS)))
    texts = f"{update} {condition}"
    names = {token: draw(_NAMES) for token in ("#a", "#b", "#c") if token in texts}
    kinds = {token: draw(_VALUES) for token in (":x", ":y", ":z") if token in texts}
    common: dict[str, Any] = {"TableName": "Things"}
    if update is not None:
        common["UpdateExpression"] = update
    if condition is not None:
        common["ConditionExpression"] = condition
    if names:
        common["ExpressionAttributeNames"] = names
    common["ReturnValues"] = draw(
        st.sampled_from(["ALL_NEW", "ALL_OLD", "UPDATED_NEW", "UPDATED_OLD", "NONE"])
    )
    common["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    common["ReturnConsumedCapacity"] = draw(st.sampled_from(["INDEXES", "NONE", "NONE"]))
    common["ReturnItemCollectionMetrics"] = draw(st.sampled_from(["SIZE", "NONE", "NONE"]))
    requests = []
    for number in range(10):
        # Mostly the same types, so that the texts share a template.
        varies = draw(st.integers(0, 3)) == 0
        values = {token: draw(_VALUES) if varies else kind for token, kind in kinds.items()}
        request = {**common, "Key": _key(number % 5)}
        requests.append(request | ({"ExpressionAttributeValues": values} if values else {}))
    return requests


def _key(number: int) -> dict[str, Any]:
    return {"p": {"S": f"item-{number // 2}"}, "r": {"S": str(number % 2)}}


def _played(engine: SqliteEngine, requests: list[dict[str, Any]]) -> list[Any]:
    for number, item in enumerate(_ITEMS):
        engine.call("PutItem", {"TableName": "Things", "Item": {**_key(number), **item}})
    engine.call("DeleteItem", {"TableName": "Things", "Key": _key(4)})
    replies: list[Any] = [
        answer(engine, "DynamoDB_20120810.UpdateItem", json.dumps(request).encode()) for request in requests
    ]
    # The rows of items with their sizes, of indexes and of the TTL, the stream's images and the counts too.
    connection = engine.database.writer
    tables = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB '[txe][0-9]*' ORDER BY name")
    for (name,) in tables.fetchall():
        replies.append((name, sorted(connection.execute(f"SELECT * FROM {name}").fetchall())))
    replies.append(connection.execute("SELECT key, old, new FROM changes ORDER BY sequence").fetchall())
    connection.execute("DELETE FROM changes")
    described = engine.call("DescribeTable", {"TableName": "Things"})["Table"]
    replies.append((described["ItemCount"], described["TableSizeBytes"]))
    return replies


@given(requests=_requests())
def test_repeated_texts_get_the_replies_of_the_general_path(
    engines: list[SqliteEngine], requests: list[dict[str, Any]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_templates", _NoCache())
        general = _played(engines[0], requests)
        patch.setattr(text_cache, "_FIRST_SIGHTS", 1)
        patch.setattr(items, "_templates", TextCache())
        assert _played(engines[1], requests) == general


def _add(value: dict[str, Any]) -> dict[str, Any]:
    return {
        "TableName": "Things",
        "Key": {"p": {"S": "a"}},
        "UpdateExpression": "ADD hits :v",
        "ExpressionAttributeValues": {":v": value},
    }


def test_a_text_gets_a_template_when_it_repeats() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_templates", TextCache())
        kinds = [type(decode_request("UpdateItem", _add({"N": str(number)}))) for number in range(6)]
        assert [kind is PreparedUpdateItem for kind in kinds] == [False] * 4 + [True] * 2
        request = decode_request("UpdateItem", _add({"N": "007"}))
        assert isinstance(request, PreparedUpdateItem)
        assert request.values == ({"N": "7"},)
        # Another type is another text: ADD rejects a string.
        assert type(decode_request("UpdateItem", _add({"SS": ["a"]}))) is not PreparedUpdateItem


def test_one_object_as_two_values_gets_no_template() -> None:
    shared = {"N": "1"}
    payload = {**_add(shared), "UpdateExpression": "SET a = :v, b = :w"}
    payload["ExpressionAttributeValues"] = {":v": shared, ":w": shared}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_templates", TextCache())
        for _ in range(6):
            assert type(decode_request("UpdateItem", payload)) is not PreparedUpdateItem


def test_the_cache_is_bounded() -> None:
    cache = TextCache()
    for number in range(6000):
        key = key_of(f"SET a{number} = :v", None, None, {":v": {"N": "1"}})
        cache.note(key, NO_UPDATE, None, {})
    assert len(cache._sights) <= 4096
    assert key_of("SET a = :v" + " " * 2000, None, None, None) is None
    assert key_of("", None, {f"#{number}": "a" for number in range(40)}, None) is None


def test_a_prepared_request_equals_the_same_update_item() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "_templates", TextCache())
        general = decode_request("UpdateItem", _add({"N": "1"}))
        prepared = [decode_request("UpdateItem", _add({"N": "1"})) for _ in range(4)][-1]
        assert type(prepared) is not type(general)
        assert prepared == general
        assert general == prepared
        assert prepared != decode_request("UpdateItem", _add({"N": "2"}))
        assert type(prepared).__name__ == "UpdateItem"
