"""Prepared updates: built once, sent with other values; every engine gives the result of an UpdateItem."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import pytest

from solotable import TTL, Database, Entity, Index, Key, Table, flow
from solotable.errors import ConditionFailed, DeclarationError, ServiceError
from solotable.flow import Flow, ItemUpdate, PreparedUpdate, Slot
from solotable.flow.conditions import all_of, any_of, at_least, at_most, equals, less_than, missing
from solotable.flow.requests import GetItem, TransactWriteItems, UpdateItem

from .awaited import Awaited
from .opening import Opening, stale_keys

meters = Table("Meters", indexes=[Index("GSI1")], ttl="expires", stream=True)


class Meter(Entity, table=meters):
    key = Key("METER#{meter_id}", "METER")
    by_place = Key("PLACE#{place}", "{meter_id}", index="GSI1")
    meter_id: str
    place: str | None = None
    used: int = 0
    text: str = ""
    expires: Annotated[datetime | None, TTL()] = None


_TAKE = PreparedUpdate(
    ItemUpdate().add("used", Slot(0)).set("text", Slot(1)).add("writes", 1).set_if_missing("first", Slot(2)),
    all_of(any_of(missing("lane"), less_than("lane", Slot(3))), at_most("used", Slot(4))),
)
#: More than a template takes before it is compiled.
_OFTEN = 8


@pytest.fixture
def store(opening: Opening) -> Database:
    opened = opening(meters)
    opened.put(Meter(meter_id="m"))
    return opened


def _run(store: Database, steps: Flow[Any]) -> Any:
    if isinstance(store, Awaited):
        return store._runner.run(flow.arun(steps, store._inner))
    return flow.run(steps, store)


def _sent(store: Database, request: UpdateItem) -> Any:
    def sending() -> Flow[Any]:
        reply = yield request
        return reply.attributes

    found = _run(store, sending())
    return None if found is None else flow.decode_item(found)


def _take(store: Database, *values: Any, meter_id: str = "m", **more: Any) -> Any:
    key = flow.key_of(flow.scope_of(store), Meter, meter_id=meter_id)
    return _sent(store, _TAKE.request(_name(store), key, values, **more))


def _name(store: Database) -> str:
    return flow.scope_of(store).table(meters)


def test_requests_of_one_prepared_update_differ_in_values(store: Database) -> None:
    for number in range(1, _OFTEN + 1):
        item = _take(store, 5, f"write {number}", number, 1, 100, returns="ALL_NEW")
        assert item["used"] == {"N": str(5 * number)}
        assert item["text"] == {"S": f"write {number}"}
        assert item["writes"] == {"N": str(number)}
        assert item["first"] == {"N": "1"}
    with pytest.raises(ConditionFailed) as failed:
        _take(store, 5, "x", 1, 1, 39, returns_on_failure=True)
    assert failed.value.item is not None
    assert failed.value.item["used"] == {"N": "40"}
    with pytest.raises(ConditionFailed) as failed:
        _take(store, 5, "x", 1, 1, 39)
    assert failed.value.item is None


def test_a_compiled_update_meets_items_that_it_does_not_cover(store: Database) -> None:
    for _ in range(_OFTEN):
        _take(store, 1, "warm", 0, 1, 1000)
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")

    def put(**values: Any) -> None:
        update = ItemUpdate()
        for name, value in values.items():
            update.set(name, value)
        _sent(store, UpdateItem(table=_name(store), key=key, update=update.build()))

    put(used=10**37 - 1)
    assert _take(store, 1, "x", 0, 1, 10**37, returns="UPDATED_NEW")["used"] == {"N": str(10**37)}
    put(used="not a number")
    with pytest.raises(ConditionFailed):
        _take(store, 1, "x", 0, 1, 1000)
    put(used=1, writes="not a number")
    with pytest.raises(ServiceError, match="incorrect data type"):
        _take(store, 1, "x", 0, 1, 1000)
    put(writes=1, text=["a", {"b": 1}])
    assert _take(store, 1, "x", 0, 1, 1000, returns="UPDATED_OLD")["text"] == flow.encode_value(
        ["a", {"b": 1}]
    )
    with pytest.raises(ConditionFailed):
        _take(store, 1, "x", 0, 1, 1000, meter_id="missing")


def test_a_prepared_update_creates_an_item_as_an_update_does(store: Database) -> None:
    create = PreparedUpdate(ItemUpdate().add("used", Slot(0)).set("text", Slot(1)), missing("used"))
    for number in range(_OFTEN):
        key = flow.key_of(flow.scope_of(store), Meter, meter_id=f"new-{number}")
        created = _sent(store, create.request(_name(store), key, (number, "é"), returns="ALL_NEW"))
        assert created == {**key, "used": {"N": str(number)}, "text": {"S": "é"}}
        with pytest.raises(ConditionFailed):
            _sent(store, create.request(_name(store), key, (number, "é")))


def test_indexes_and_the_stream_see_a_prepared_update(store: Database, opening: Opening) -> None:
    move = PreparedUpdate(
        ItemUpdate()
        .set("GSI1PK", Slot(0))
        .set("GSI1SK", Slot(1))
        .set("place", Slot(2))
        .set("expires", Slot(3))
    )
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")
    for number in range(_OFTEN):
        place = f"room-{number}"
        values = (f"PLACE#{place}", "m", place, 2_100_000_000 + number)
        _sent(store, move.request(_name(store), key, values))
        assert [meter.place for meter in store.all(Meter.by_place.query(place=place))] == [place]
    assert stale_keys(opening, meters) == []
    with pytest.raises(ServiceError, match=r"[Tt]ype"):
        _sent(store, move.request(_name(store), key, (7, "m", "x", 1)))


def test_a_prepared_update_cannot_change_the_key(store: Database) -> None:
    wrong = PreparedUpdate(ItemUpdate().set(meters.partition.name, Slot(0)))
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")
    for _ in range(_OFTEN):
        with pytest.raises(ServiceError, match="part of the key"):
            _sent(store, wrong.request(_name(store), key, ("other",)))


def test_a_transaction_takes_prepared_updates(store: Database) -> None:
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")

    def committed() -> Flow[None]:
        action = _TAKE.request(_name(store), key, (5, "in a transaction", 1, 1, 100))
        yield TransactWriteItems(actions=(action,))

    for _ in range(_OFTEN):
        _run(store, committed())
    assert store.require(Meter, meter_id="m").used == 5 * _OFTEN


def test_a_prepared_update_has_a_value_for_each_slot(store: Database) -> None:
    with pytest.raises(DeclarationError, match="has 5 slots, got 1 values"):
        _take(store, 1)
    with pytest.raises(DeclarationError, match=r"Slot\(0\) is not used"):
        PreparedUpdate(ItemUpdate().set("a", Slot(1)))
    assert _TAKE.slots == 5
    assert "Slot(4)" in repr(_TAKE)


def test_a_slot_is_not_sent(store: Database) -> None:
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")
    request = UpdateItem(table=_name(store), key=key, update=ItemUpdate().set("a", Slot(0)).build())
    with pytest.raises(DeclarationError, match="has no value"):
        _sent(store, request)


def test_an_observer_sees_an_update_item(opening: Opening) -> None:
    records: list[Any] = []
    store = opening(meters, observer=records.append)
    store.put(Meter(meter_id="m"))
    for _ in range(_OFTEN):
        _take(store, 1, "x", 0, 1, 1000)
    seen = [record for record in records if record.operation == "UpdateItem"]
    assert len(seen) == _OFTEN
    assert {record.consumed.wcu for record in seen} == {1.0}


def test_a_condition_of_other_types_is_the_general_one(store: Database) -> None:
    update = ItemUpdate().add("used", 1)
    by_text = PreparedUpdate(update, all_of(at_least("text", Slot(0)), equals("tags", Slot(1))))
    key = flow.key_of(flow.scope_of(store), Meter, meter_id="m")
    _sent(
        store,
        UpdateItem(
            table=_name(store), key=key, update=ItemUpdate().set("text", "b").set("tags", {"x", "y"}).build()
        ),
    )
    for _ in range(_OFTEN):
        _sent(store, by_text.request(_name(store), key, ("a", {"y", "x"})))
        with pytest.raises(ConditionFailed):
            _sent(store, by_text.request(_name(store), key, ("c", {"y", "x"})))
        with pytest.raises(ConditionFailed):
            _sent(store, by_text.request(_name(store), key, (1, {"y", "x"})))
    reply = _run(store, _got(GetItem(table=_name(store), key=key)))
    assert reply["used"] == {"N": str(_OFTEN)}


def _got(request: GetItem) -> Flow[Any]:
    reply = yield request
    return flow.decode_item(reply.item)


@pytest.mark.parametrize("returns", ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
def test_a_compiled_update_returns_what_an_update_does(store: Database, returns: Any) -> None:
    store.put(Meter(meter_id="n"))
    keys = [flow.key_of(flow.scope_of(store), Meter, meter_id=name) for name in "mn"]
    for number in range(_OFTEN):
        values = (5, f"write {number}", number, 1, 100)
        prepared = _TAKE.request(_name(store), keys[0], values, returns=returns)
        general = UpdateItem(
            table=_name(store),
            key=keys[1],
            update=prepared.update,
            condition=prepared.condition,
            returns=returns,
        )
        replies = [_sent(store, request) or {} for request in (prepared, general)]
        for reply, key in zip(replies, keys, strict=True):
            for name in (*key, "meter_id"):
                reply.pop(name, None)
        assert replies[0] == replies[1]
        assert bool(replies[0]) is (returns != "NONE")


def test_a_compiled_update_that_makes_the_item_too_large_is_rejected(store: Database) -> None:
    for _ in range(_OFTEN):
        _take(store, 1, "short", 0, 1, 1000)
    with pytest.raises(ServiceError, match=r"[Ii]tem size"):
        _take(store, 1, "x" * 409_600, 0, 1, 1000)
    meter = store.require(Meter, meter_id="m")
    assert (meter.used, meter.text) == (_OFTEN, "short")
    assert _take(store, 1, "x" * 409_000, 0, 1, 1000, returns="ALL_NEW")["text"] == {"S": "x" * 409_000}
