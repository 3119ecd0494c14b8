"""Records: content ids, versions, soft delete, lists by type, and record keys that sort by time."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.errors import AlreadyExists, NotFound
from solotable.systems.community.formats.content_ids import content_id
from solotable.systems.community.formats.record_keys import (
    ALPHABET,
    RecordKeys,
    encode,
    microseconds_of,
    new_record_key,
)
from solotable.systems.community.services import records as service
from solotable.systems.errors import InvalidInput
from tests.killing import Start

from .town import ANN, BEN, Town

ANN_DID = ANN.require_user()


def test_c2_12_20000_consecutive_keys_sort_by_their_time() -> None:
    keys = [new_record_key() for _ in range(20_000)]
    assert sorted(keys) == keys
    assert len(set(keys)) == len(keys)
    assert {len(key) for key in keys} == {13}
    assert set("".join(keys)) <= set(ALPHABET)


def test_c2_12_keys_ascend_when_the_clock_goes_back() -> None:
    times = iter([2.0, 1.0, 1.0, 5.0, 0.5])
    keys = RecordKeys(clock=lambda: next(times), draw=lambda size: b"\0" * size)
    drawn = [keys() for _ in range(5)]
    assert sorted(set(drawn)) == drawn
    assert [microseconds_of(key) for key in drawn] == [2_000_000, 2_000_001, 2_000_002, 5_000_000, 5_000_001]


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_c2_12_texts_sort_as_their_numbers(one: int, two: int) -> None:
    assert (encode(one) < encode(two)) == (one < two)
    assert microseconds_of(encode(one)) == one >> 10


def test_c2_12_a_forked_child_draws_other_bits() -> None:
    draws = iter(range(100))
    keys = RecordKeys(clock=lambda: 1.0, draw=lambda size: next(draws).to_bytes(size, "big"))
    first = keys()
    keys._process = -1  # as a child sees the number of its parent
    assert first[-2:] != keys()[-2:]


def test_c2_12_processes_draw_keys_that_differ(start: Start) -> None:
    code = (
        "from solotable.systems.community.formats.record_keys import new_record_key as key\n"
        "print(*(key() for _ in range(2000)))"
    )
    running = [start("-c", code) for _ in range(3)]
    drawn = [process.end()[0].split() for process in running]
    assert all(sorted(keys) == keys for keys in drawn)
    # The same 10 random bits and the same microsecond are possible, and then create() raises AlreadyExists.
    assert len({key for keys in drawn for key in keys}) >= 5990


@pytest.mark.parametrize("tid", ["", "2" * 12, "2" * 14, "1222222222222", "z222222222222", "A222222222222"])
def test_another_text_is_not_a_record_key_with_a_time(tid: str) -> None:
    with pytest.raises(ValueError, match="TID"):
        microseconds_of(tid)


def test_a_record_key_that_is_drawn_twice_is_drawn_again(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["2222222222222", "2222222222222", "2222222222223"])
    monkeypatch.setattr(service, "new_record_key", lambda: next(drawn))
    assert [town.record().rkey, town.record().rkey] == ["2222222222222", "2222222222223"]
    with pytest.raises(AlreadyExists):
        town.record(rkey="2222222222222")


def test_a_record_has_its_key_and_content_id(town: Town) -> None:
    record = town.record(rkey="self", value={"b": 1, "a": "ö"})
    (item,) = town.items("RECORD")
    assert (item["PK"], item["SK"]) == ({"S": f"USER#{ANN_DID}"}, {"S": "RECORD#city.nbhd.note#self"})
    assert record.cid == content_id({"a": "ö", "b": 1})
    assert record.uri == f"at://{ANN_DID}/city.nbhd.note/self"
    town.journal.clear()
    _, used = town.measured(town.records.get(ANN_DID, "city.nbhd.note", "self"))
    assert (town.sent(), used.rcu) == (["GetItem"], 0.5)


def test_versions_of_a_record_are_a_chain_of_content_ids(town: Town) -> None:
    record = town.record(value={"n": 0})
    for number in range(1, 4):
        town.run(town.records.update(ANN, record.type, record.rkey, {"n": number}))
    same = town.run(town.records.update(ANN, record.type, record.rkey, {"n": 3}))
    assert same.version == 4
    versions = list(town.run(town.records.versions(ANN_DID, record.type, record.rkey)))
    chain = [same, *versions]
    assert [each.value["n"] for each in chain] == [3, 2, 1, 0]
    assert [each.linked_record for each in chain] == [each.cid for each in chain[1:]] + [None]


def test_a_deleted_record_is_hidden_and_restored(town: Town) -> None:
    record = town.record()
    town.run(town.records.delete(ANN, record.type, record.rkey))
    with pytest.raises(NotFound):
        town.run(town.records.get(ANN_DID, record.type, record.rkey))
    assert list(town.run(town.records.list(ANN_DID))) == []
    with pytest.raises(NotFound):
        town.run(town.records.delete(ANN, record.type, record.rkey))
    assert town.run(town.records.restore(ANN, record.type, record.rkey)) == record
    town.run(town.records.delete(ANN, record.type, record.rkey))
    town.pass_time(days=30)
    assert town.purge().removed == {"Record": 1}


def test_records_are_listed_by_type_newest_first_without_their_values(town: Town) -> None:
    for number in range(3):
        town.pass_time(minutes=1)
        town.record(value={"n": number, "text": "x" * 50_000})
        town.record(type="app.bsky.feed.post", value={"n": number})
    town.record(BEN)
    town.journal.clear()
    page, used = town.measured(town.records.list(ANN_DID, record_type="city.nbhd.note"))
    assert town.sent() == ["Query"]
    assert [each.type for each in page] == ["city.nbhd.note"] * 3
    times = [each.created_at for each in page if each.created_at is not None]
    assert times == sorted(times, reverse=True)
    assert used.rcu == 0.5
    assert len(town.run(town.records.list(ANN_DID))) == 6


@pytest.mark.parametrize(
    "value",
    [{"n": 0.5}, {"n": [1, {"m": 1e300}]}, {"n": 2**53}, {"n": -(2**60)}],
)
def test_a_value_that_json_programs_read_differently_is_rejected(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        content_id(value)


def test_a_content_id_is_a_cid_of_canonical_json() -> None:
    cid = content_id({"b": [True, None], "a": "ö"})
    raw = base64.b32decode(cid[1:].upper() + "=" * (-len(cid[1:]) % 8))
    assert raw[:5] == bytes([1, 0x80, 0x04, 0x12, 32])
    assert raw[5:] == hashlib.sha256('{"a":"ö","b":[true,null]}'.encode()).digest()


def test_a_record_of_another_user_is_public_and_not_changed(town: Town) -> None:
    record = town.record(ANN)
    assert town.run(town.records.get(ANN_DID, record.type, record.rkey)) == record
    with pytest.raises(NotFound):
        town.run(town.records.update(BEN, record.type, record.rkey, {"text": "mine"}))
    with pytest.raises(NotFound):
        town.run(town.records.delete(BEN, record.type, record.rkey))
