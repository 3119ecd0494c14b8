"""Items at a bucket's key that are not buckets: one clear error, covered by on_unavailable, no write.

Another program (zae-limiter), an older layout or damage may have written them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from solotable._values import AttributeValue, Item
from solotable.systems.limiter import AsyncLimiter, Limit, Limiter, LimiterUnavailable, UnreadableBucket
from solotable.systems.limiter.buckets.bucket import Bucket, decode_state
from solotable.systems.limiter.http.bucket_feed import encode_event
from solotable.systems.limiter.http.http_leases import HttpLeases
from solotable.systems.limiter.lease import AcquireRequest
from solotable.systems.limiter.usage import aggregate

from .either import either
from .ground import ACME, Place

RPM, TPM = Limit.per_minute("rpm", 10), Limit.per_minute("tpm", 100)
KEY: Item = {"PK": {"S": f"{ACME}#BUCKET#u#r#00"}, "SK": {"S": "BUCKET"}}
NESTED: Item = {"data": {"M": {"tokens": {"N": "7"}, "level": {"N": "0"}, "rules": {"S": "rpm=10/60"}}}}
ZAE: Item = {
    "entity_id": {"S": "u"},
    "resource": {"S": "r"},
    "b_rpm_tk": {"N": "7000"},
    "b_rpm_cp": {"N": "10000"},
    "rf": {"N": "1700000000000"},
}


def number(value: object) -> AttributeValue:
    return {"N": str(value)}


#: What is wrong with an otherwise good bucket: attributes to replace, None removes one.
DAMAGES: dict[str, dict[str, AttributeValue | None]] = {
    "no level": {"level": None},
    "a level in text": {"level": {"S": "0"}},
    "a broken level": {"level": number("0.5")},
    "a negative level": {"level": number(-1)},
    "a huge level": {"level": number(10**9)},
    "no rules": {"rules": None},
    "rules that are a map": {"rules": {"M": {}}},
    "rules that do not parse": {"rules": {"S": "rpm"}},
    "empty rules": {"rules": {"S": ""}},
    "no revision": {"revision": None},
    "no time": {"at": None},
    "a boolean time": {"at": {"BOOL": True}},
    "no count of writes": {"writes": None},
    "writes in text": {"writes": {"S": "3"}},
    "a limit without what it used": {"used_rpm": None},
    "a use in text": {"used_rpm": {"S": "1"}},
    "a use that is null": {"used_rpm": {"NULL": True}},
    "a use of an unknown limit": {"used_gone": number(1)},
    "a past that does not parse": {"past": {"S": "gone"}, "used_gone": number(1)},
    "a past that is a list": {"past": {"L": []}},
    "a lane in text": {"~abcdef0": {"S": "x"}},
    "a count of consumption in text": {"consumed_rpm": {"S": "x"}},
}


#: With these the rest of a bucket can be used: a write that is on its way may meet them.
SLIGHT = {
    "no revision",
    "no count of writes",
    "a use of an unknown limit",
    "a past that does not parse",
    "a past that is a list",
    "a lane in text",
}
#: This one is not read to say what is left, or to bring a bucket under other limits.
UNREAD = "a count of consumption in text"


def good(place: Place) -> Item:
    """Return a bucket as the limiter writes it."""
    with Limiter(place.db, ACME, limits=[RPM]).acquire("u", "r", {"rpm": 1}):
        pass
    (item,) = place.raw("Bucket")
    return item


def damaged(place: Place, damage: str) -> Item:
    if damage == "nested":
        item = {**KEY, **NESTED}
    elif damage == "zae-limiter":
        item = {**KEY, **ZAE}
    else:
        item = {
            **good(place),
            **{name: value for name, value in DAMAGES[damage].items() if value is not None},
        }
        item = {name: value for name, value in item.items() if DAMAGES[damage].get(name, value) is not None}
    place.plant(item)
    return item


@pytest.fixture
def damage(request: pytest.FixtureRequest) -> str:
    """What is wrong with the item."""
    return str(request.param)


ALL = pytest.mark.parametrize("damage", ["nested", "zae-limiter", *DAMAGES], indirect=True)
READ = pytest.mark.parametrize(
    "damage", ["nested", "zae-limiter", *sorted(DAMAGES.keys() - {UNREAD})], indirect=True
)
GRAVE = pytest.mark.parametrize(
    "damage", ["nested", "zae-limiter", *sorted(DAMAGES.keys() - SLIGHT)], indirect=True
)


@pytest.fixture
def foreign(damage: str, place: Place) -> Item:
    """An item at the bucket's key that the limiter must leave alone."""
    return damaged(place, damage)


def stored(place: Place) -> Item:
    return next(item for item in place.raw() if item["PK"] == KEY["PK"])


def judge(error: pytest.ExceptionInfo[UnreadableBucket]) -> None:
    said = str(error.value)
    assert "acme#BUCKET#u#r#00" in said, said
    assert "delete the item" in said, said
    assert isinstance(error.value, LimiterUnavailable)


@ALL
def test_s1_2_acquire_blocks_or_admits_as_configured_and_changes_nothing(
    place: Place, mode: str, foreign: Item, caplog: pytest.LogCaptureFixture
) -> None:
    ours = either(place, mode, limits=[RPM])
    with pytest.raises(UnreadableBucket) as refused, ours.acquire("u", "r", {"rpm": 1}):
        pass
    judge(refused)
    with (
        caplog.at_level(logging.WARNING, "solotable.limiter"),
        ours.acquire("u", "r", {"rpm": 1}, on_unavailable="allow") as lease,
    ):
        lease.adjust(rpm=1)
        lease.consume(rpm=1)
    assert not lease.limited
    assert "acme#BUCKET#u#r#00" in caplog.text
    assert stored(place) == foreign


@READ
def test_s1_2_looking_raises_the_same_error(place: Place, mode: str, foreign: Item) -> None:
    ours = either(place, mode, limits=[RPM])
    looks: list[Callable[[], Any]] = [
        lambda: ours.available("u", "r"),
        lambda: ours.time_until("u", "r", {"rpm": 1}),
        lambda: ours.statuses("u", "r"),
    ]
    for look in looks:
        with pytest.raises(UnreadableBucket) as refused:
            look()
        judge(refused)
    assert ours.ping()
    assert stored(place) == foreign


@GRAVE
def test_s1_2_a_bucket_that_is_replaced_during_a_lease_is_not_settled(
    place: Place, mode: str, foreign: Item
) -> None:
    place.engine.handle(_delete(place))
    ours = either(place, mode, limits=[RPM])
    lease = ours.acquire("u", "r", {"rpm": 2}).__enter__()
    lease.adjust(rpm=1)
    place.plant(foreign)
    with pytest.raises(UnreadableBucket):
        lease.__exit__(None, None, None)
    assert stored(place) == foreign
    place.engine.handle(_delete(place))
    lease = ours.acquire("u", "r", {"rpm": 2}).__enter__()
    place.plant(foreign)
    own = RuntimeError("the block's own")
    lease.__exit__(RuntimeError, own, None)
    assert any("acme#BUCKET#u#r#00" in note for note in own.__notes__)
    assert stored(place) == foreign


@READ
def test_s1_2_limits_are_set_although_the_bucket_cannot_be_brought_under_them(
    place: Place, mode: str, foreign: Item, caplog: pytest.LogCaptureFixture
) -> None:
    ours = either(place, mode, limits=[RPM])
    with caplog.at_level(logging.WARNING, "solotable.limiter"):
        ours.set_limits([TPM], entity="u", resource="r")
        ours.delete_limits(entity="u", resource="r")
    assert stored(place) == foreign


def test_s1_2_a_foreign_item_at_the_key_of_another_shard_changes_nothing(place: Place, mode: str) -> None:
    half: Item = {"PK": {"S": f"{ACME}#BUCKET#u#r#01"}, "SK": {"S": "BUCKET"}, **NESTED}
    place.plant(half)
    ours = either(place, mode, limits=[Limit.per_second("rpm", 1_000_000)], shard_above=1)
    for _ in range(8):
        place.clock.seconds += 0.4
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
    assert half in place.raw()


def test_s1_2_a_parents_foreign_bucket_gives_the_child_its_tokens_back(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    ours.create_entity("p")
    ours.create_entity("c", parent="p", cascade=True)
    place.plant({"PK": {"S": f"{ACME}#BUCKET#p#r#00"}, "SK": {"S": "BUCKET"}, **NESTED})
    with pytest.raises(UnreadableBucket, match="acme#BUCKET#p#r#00"), ours.acquire("c", "r", {"rpm": 4}):
        pass
    child = next(item for item in place.raw() if item["PK"]["S"] == f"{ACME}#BUCKET#c#r#00")
    assert child["consumed_rpm"] == {"N": "0"}


@ALL
def test_s1_2_leases_that_are_kept_meet_the_same_error(place: Place, foreign: Item) -> None:
    place.engine.handle(_delete(place))
    limiter = AsyncLimiter(place.adb, ACME, limits=[RPM])
    leases = HttpLeases(place.adb, limiter)
    held = place.wait(leases.acquire(AcquireRequest(entity="u", resource="r", consume={"rpm": 2})))
    assert held.lease is not None
    limiter.context.writer.cache.clear()
    place.plant(foreign)
    with pytest.raises(UnreadableBucket):
        place.wait(leases.acquire(AcquireRequest(entity="u", resource="r", consume={"rpm": 2})))
    assert stored(place) == foreign


def test_s1_2_usage_is_counted_past_items_that_are_not_buckets(place: Place) -> None:
    place.plant({**KEY, **NESTED})
    with Limiter(place.db, ACME, limits=[RPM]).acquire("other", "r", {"rpm": 1}):
        pass
    assert aggregate(place.db).records == 1


def test_s1_2_a_dashboard_gets_the_same_error(place: Place) -> None:
    bucket = place.store.get(Bucket, **_named(good(place)))
    assert bucket is not None
    assert json.loads(encode_event(bucket, "1").split("data: ")[1])["limits"][0]["available"] == 9
    place.plant({**good(place), "used_rpm": {"S": "x"}})
    bucket = place.store.get(Bucket, entity="u", resource="r", shard=0)
    assert bucket is not None
    with pytest.raises(UnreadableBucket):
        encode_event(bucket, "1")


def test_s1_2_a_nested_bucket_is_not_read() -> None:
    with pytest.raises(UnreadableBucket, match="'level' is missing"):
        decode_state({**KEY, **NESTED}, 0)


def _named(item: Item) -> dict[str, Any]:
    return {"entity": item["entity"]["S"], "resource": item["resource"]["S"], "shard": 0}


def _delete(place: Place) -> Any:
    from solotable._protocol.requests import DeleteItem

    return DeleteItem(table=place.table, key=KEY)
