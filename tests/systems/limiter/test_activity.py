"""What `limiter top` knows of buckets: shards together, other limits, removed buckets, and old changes."""

from __future__ import annotations

from solotable import Changed
from solotable.systems.limiter import Bucket, Limit
from solotable.systems.limiter.usage.activity import Activity, BucketActivity

from .either import either
from .ground import ACME, Place

DAY = 86_400
MICRO = 1_000_000


def activity(place: Place, seconds: float = 60) -> Activity:
    found = Activity(seconds)
    changes: list[Changed[Bucket]] = list(place.db.changes(Bucket, since="earliest"))
    for change in changes:
        assert change.tenant == ACME
        found.add(change)
    return found


def now(place: Place, later: float = 0) -> int:
    return int((place.clock.seconds + later) * MICRO)


def test_consumption_is_net_and_leaves_the_window(place: Place) -> None:
    limiter = either(place, "sync", limits=[Limit("tpm", 100, 100, DAY)])
    with limiter.acquire("ann", "r", {"tpm": 60}) as lease:
        lease.release(tpm=30)
    (row,) = activity(place).rows(now(place))
    assert row == BucketActivity(
        entity="ann", resource="r", limit="tpm", capacity=100, available=70, rate=0.5
    )
    assert row.left == 0.7
    assert activity(place).rows(now(place, 61)) == []


def test_changed_limits_replace_the_old_ones(place: Place) -> None:
    limiter = either(place, "sync")
    limiter.set_limits([Limit("tpm", 100, 100, DAY)], entity="ann", resource="r")
    with limiter.acquire("ann", "r", {"tpm": 60}):
        pass
    limiter.set_limits([Limit("rpm", 10, 10, DAY)], entity="ann", resource="r")
    with limiter.acquire("ann", "r", {"rpm": 1}):
        pass
    (row,) = activity(place).rows(now(place))
    assert (row.limit, row.available) == ("rpm", 9)


def test_shards_are_added_up(place: Place) -> None:
    limiter = either(place, "sync", limits=[Limit("tpm", 6400, 6400, DAY)], shard_above=1)
    for _ in range(40):
        with limiter.acquire("ann", "r", {"tpm": 10}):
            pass
        place.clock.seconds += 0.1
    assert len(place.raw("Bucket")) > 1
    (row,) = activity(place).rows(now(place))
    assert abs(row.available - limiter.available("ann", "r")["tpm"]) <= 2
    assert round(row.rate * 60) == 400
