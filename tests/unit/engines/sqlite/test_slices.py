"""A request that is answered in slices has the answer that it has at once, and lets others in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from solotable._protocol.decode.requests import decode_request
from solotable._protocol.encode.replies import encode_reply
from solotable._protocol.engine import TooLong
from solotable.engines import sqlite
from solotable.engines.sqlite.engine import SqliteEngine
from solotable.errors import ConditionFailed, ServiceError

ITEMS = 300
LARGE = 6
#: In the list of a large item.
NUMBERS = 30_000


@pytest.fixture(scope="module", params=["memory", "file"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SqliteEngine]:
    place = ":memory:" if request.param == "memory" else str(tmp_path_factory.mktemp("slices") / "x.db")
    with sqlite.open(place, durability="relaxed") as made:
        made.call(
            "CreateTable",
            {
                "TableName": "Things",
                "AttributeDefinitions": [
                    {"AttributeName": n, "AttributeType": "S"} for n in ("pk", "sk", "by")
                ],
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": index,
                        "KeySchema": [{"AttributeName": "by", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": projection},
                    }
                    for index, projection in (("keys", "KEYS_ONLY"), ("all", "ALL"))
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        for number in range(ITEMS):
            made.call("PutItem", {"TableName": "Things", "Item": _item("many", number)})
        for number in range(LARGE):
            made.call("PutItem", {"TableName": "Things", "Item": _item("large", number) | _list()})
        yield made


def _item(partition: str, number: int) -> dict[str, Any]:
    return {
        "pk": {"S": partition},
        "sk": {"S": f"{number:04}"},
        "by": {"S": f"by {number % 3}"},
        "n": {"N": str(number)},
        "text": {"S": "x" * 5000},
    }


def _list() -> dict[str, Any]:
    return {"l": {"L": [{"N": str(number)} for number in range(NUMBERS)]}}


def _many(**members: Any) -> dict[str, Any]:
    values = {":p": {"S": "many"}, **members.pop("values", {})}
    return {
        "TableName": "Things",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": values,
        **members,
    }


READS: list[tuple[str, dict[str, Any]]] = [
    ("Query", _many()),
    ("Query", _many(Limit=100)),
    ("Query", _many(Limit=70, ScanIndexForward=False)),
    ("Query", _many(FilterExpression="n > :n", values={":n": {"N": "150"}})),
    ("Query", _many(ProjectionExpression="sk, n", Select="SPECIFIC_ATTRIBUTES")),
    ("Query", _many(FilterExpression="n > :n", values={":n": {"N": "150"}}, Select="COUNT")),
    ("Query", _many(values={":p": {"S": "large"}}, FilterExpression="contains(l, :n)") | {}),
    ("Scan", {"TableName": "Things"}),
    ("Scan", {"TableName": "Things", "IndexName": "keys"}),
    ("Scan", {"TableName": "Things", "IndexName": "all", "ReturnConsumedCapacity": "INDEXES"}),
    ("Scan", {"TableName": "Things", "ProjectionExpression": "l[5], n", "Limit": 200}),
    ("GetItem", {"TableName": "Things", "Key": {"pk": {"S": "large"}, "sk": {"S": "0000"}}}),
    (
        "GetItem",
        {
            "TableName": "Things",
            "Key": {"pk": {"S": "large"}, "sk": {"S": "0000"}},
            "ProjectionExpression": "l[1], n",
        },
    ),
    (
        "BatchGetItem",
        {
            "RequestItems": {
                "Things": {"Keys": [{"pk": {"S": "many"}, "sk": {"S": f"{n:04}"}} for n in range(50)]}
            }
        },
    ),
    ("ExecuteStatement", {"Statement": "SELECT n FROM Things WHERE pk = 'many' AND n > 100"}),
]
READS[6][1]["ExpressionAttributeValues"] = {":p": {"S": "large"}, ":n": {"N": str(NUMBERS - 1)}}


@pytest.mark.parametrize(("operation", "payload"), READS, ids=[str(place) for place in range(len(READS))])
def test_a_read_in_slices_has_the_same_answer(
    engine: SqliteEngine, operation: str, payload: dict[str, Any]
) -> None:
    request = decode_request(operation, payload)
    pauses: list[int] = []
    assert encode_reply(engine.handle_in_slices(request, pauses.append)) == encode_reply(
        engine.handle(request)
    )
    assert pauses or operation == "GetItem"


@pytest.mark.parametrize(("operation", "payload"), READS, ids=[str(place) for place in range(len(READS))])
def test_others_write_between_the_steps_of_a_read(
    engine: SqliteEngine, operation: str, payload: dict[str, Any]
) -> None:
    wrote: list[bool] = []

    def write() -> None:
        engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": "other"}, "sk": {"S": "1"}}})
        wrote.append(True)

    def pause(_size: int) -> None:
        if not wrote:
            # A thread that holds a lock here would wait for this thread for ever.
            other = threading.Thread(target=write)
            other.start()
            other.join()

    engine.handle_in_slices(decode_request(operation, payload), pause)
    assert wrote or operation == "GetItem"


def test_a_read_that_is_ended_can_be_made_again(engine: SqliteEngine) -> None:
    def end(_size: int) -> None:
        raise TooLong

    request = decode_request("Query", _many())
    for _ in range(20):
        with pytest.raises(TooLong):
            engine.handle_in_slices(request, end)
    assert engine.handle(request).count == len(encode_reply(engine.handle(request))["Items"])
    assert not engine.sliced


def _update(place: str, **members: Any) -> Any:
    return decode_request(
        "UpdateItem",
        {
            "TableName": "Things",
            "Key": {"pk": {"S": "large"}, "sk": {"S": place}},
            "UpdateExpression": "SET n = n + :one",
            "ConditionExpression": "contains(l, :last)",
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":last": {"N": str(NUMBERS - 1)}},
            **members,
        },
    )


def _added(engine: SqliteEngine, place: str) -> int:
    """How often 1 was added to the number of a large item."""
    key = {"pk": {"S": "large"}, "sk": {"S": place}}
    item = engine.call("GetItem", {"TableName": "Things", "Key": key})["Item"]
    return int(item["n"]["N"]) - int(place)


def test_a_write_to_a_large_item_is_checked_while_others_write(engine: SqliteEngine) -> None:
    wrote: list[bool] = []

    def write() -> None:
        engine.call("PutItem", {"TableName": "Things", "Item": {"pk": {"S": "other"}, "sk": {"S": "1"}}})
        wrote.append(True)

    def pause(_size: int) -> None:
        if not wrote:
            other = threading.Thread(target=write)
            other.start()
            other.join()

    engine.handle_in_slices(_update("0001"), pause)
    assert wrote
    assert _added(engine, "0001") == 1


def test_a_write_that_was_checked_ahead_is_checked_again_when_the_item_has_changed(
    engine: SqliteEngine,
) -> None:
    changed: list[bool] = []

    def change() -> None:
        engine.handle(_update("0002"))
        changed.append(True)

    def pause(_size: int) -> None:
        if not changed:
            other = threading.Thread(target=change)
            other.start()
            other.join()

    engine.handle_in_slices(_update("0002"), pause)
    # Both were counted.
    assert _added(engine, "0002") == 2


def test_a_condition_that_fails_ahead_fails(engine: SqliteEngine) -> None:
    request = _update("0003", ExpressionAttributeValues={":one": {"N": "1"}, ":last": {"N": "-1"}})
    with pytest.raises(ConditionFailed):
        engine.handle_in_slices(request, lambda _size: None)
    assert _added(engine, "0003") == 0


def test_a_write_that_looks_into_a_large_item_is_left_to_the_caller(engine: SqliteEngine) -> None:
    with pytest.raises(TooLong):
        engine.handle_small(_update("0004"), 100_000)
    small = decode_request("PutItem", {"TableName": "Things", "Item": _item("many", 1)})
    outcomes = engine.handle_together([_update("0004"), small, _update("0004")], largest=100_000)
    for outcome in (outcomes[0], outcomes[2]):
        with pytest.raises(TooLong):
            outcome.get()
    outcomes[1].get()
    assert _added(engine, "0004") == 0
    # Without a limit it is made at once.
    engine.handle(_update("0004"))
    assert _added(engine, "0004") == 1


def test_an_update_stops_at_the_size_of_the_largest_item(engine: SqliteEngine) -> None:
    text = "SET " + ", ".join(f"a{number} = list_append(l, l)" for number in range(150))
    request = {
        "TableName": "Things",
        "Key": {"pk": {"S": "large"}, "sk": {"S": "0001"}},
        "UpdateExpression": text,
    }
    with pytest.raises(ServiceError, match="Item size to update has exceeded the maximum allowed size"):
        engine.call("UpdateItem", request)
