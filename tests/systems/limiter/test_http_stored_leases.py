"""Leases that are kept in the table, as HTTP has them: what they cost, shards, buckets that are gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from solotable import AsyncDatabase
from solotable._connect import to_async
from solotable._protocol.requests import DeleteItem, PutItem
from solotable.errors import Corrupt, NotFound, OutcomeUnknown, Throttled, VersionConflict
from solotable.systems.limiter import AsyncLimiter, LeaseExpired, Limit
from solotable.systems.limiter.buckets.shards import merge, read_shards, split
from solotable.systems.limiter.http.http_leases import HttpLeases, StoredLease
from solotable.systems.limiter.lease import AcquireRequest

from .ground import ACME, Place

LIMITS = [Limit.per_day("rpm", 100), Limit.per_day("tpm", 10_000)]


class Process:
    """A process with a memory of its own."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.limiter = AsyncLimiter(place.adb, ACME, limits=LIMITS)
        self.leases = HttpLeases(place.adb, self.limiter)

    def acquire(self, *, key: str | None = None, **consume: float) -> StoredLease:
        wish = AcquireRequest(entity="u", resource="r", consume=consume)
        held = self.place.wait(self.leases.acquire(wish, key=key))
        assert held.lease is not None
        return held.lease

    def adjust(self, lease: StoredLease, **consumed: float) -> StoredLease:
        return self.place.wait(self.leases.adjust(lease.lease_id, consumed))

    def end(self, lease: StoredLease, *, keep: bool = False) -> StoredLease:
        return self.place.wait(self.leases.end(lease.lease_id, keep=keep))

    def left(self) -> Mapping[str, int]:
        return self.place.wait(self.limiter.available("u", "r"))

    def known(self) -> Any:
        return self.limiter.context.writer.cache.bucket("u", "r")


def test_what_a_lease_costs(place: Place) -> None:
    process = Process(place)
    process.acquire(rpm=1)
    place.sent()
    lease = process.acquire(rpm=1, tpm=500)
    assert place.spent() == (0, 2)
    process.adjust(lease, tpm=120)
    assert place.spent() == (1, 2)
    process.adjust(lease, tpm=120)
    assert place.spent() == (1, 0)
    process.end(lease, keep=True)
    assert place.spent() == (1, 1)
    keyed = process.acquire(rpm=1, key="k")
    assert place.sent() == ["GetItem", "UpdateItem", "PutItem"]
    process.end(keyed)
    assert place.sent() == ["GetItem", "PutItem", "UpdateItem"]
    (item,) = [each for each in place.raw("StoredLease") if each["lease_id"]["S"] == lease.lease_id]
    assert {kind for value in item.values() for kind in value} <= {"S", "N"}


def test_a_shard_that_another_process_took_from_is_settled(place: Place) -> None:
    taker, other = Process(place), Process(place)
    taker.acquire(rpm=1, tpm=1_000)
    place.run(split(taker.limiter.context.writer, taker.known(), 0, taker.known().shards[0]))
    before = other.left()
    lease = taker.acquire(rpm=1, tpm=1_000)
    assert lease.places[0].shards == (0,)
    moved = lease.model_copy(update={"places": [lease.places[0].model_copy(update={"shards": (1,)})]})
    place.wait(place.adb.tenant(ACME).put(moved))
    other.adjust(lease, tpm=500)
    assert other.left() == {"rpm": before["rpm"] - 1, "tpm": before["tpm"] - 500}
    assert (other.known().shards[1].used["tpm"]) < (other.known().shards[0].used["tpm"])
    # Joined meanwhile, the shard that has all but its highest bit is settled.
    third = Process(place)
    place.run(read_shards(third.limiter.context.writer, third.known()))
    place.run(merge(third.limiter.context.writer, third.known(), 1, third.known().shards[1]))
    Process(place).end(lease)
    left = Process(place).left()
    assert left["rpm"] in (before["rpm"] - 1, before["rpm"])
    assert left["tpm"] in (before["tpm"] - 1, before["tpm"])
    assert len(place.raw("Bucket")) == 1


def test_all_shards_of_a_wide_lease_are_settled(place: Place) -> None:
    taker = Process(place)
    taker.acquire(rpm=1)
    place.run(split(taker.limiter.context.writer, taker.known(), 0, taker.known().shards[0]))
    before = Process(place).left()
    lease = taker.acquire(tpm=6_000)
    assert lease.places[0].shards == (0, 1)
    assert Process(place).left()["tpm"] == before["tpm"] - 6_000
    Process(place).end(lease)
    assert Process(place).left() == before


def test_c1_6_nothing_is_given_back_to_a_bucket_that_is_gone(place: Place) -> None:
    process = Process(place)
    lease, other = process.acquire(rpm=1, tpm=500), process.acquire(rpm=1, tpm=500)
    (bucket,) = place.raw("Bucket")
    gone = DeleteItem(table=place.table, key={name: bucket[name] for name in ("PK", "SK")})
    place.engine.handle(gone)
    Process(place).end(lease)
    assert place.raw("Bucket") == []
    # What is taken beyond it is taken from a new one.
    Process(place).adjust(other, tpm=700)
    assert Process(place).left() == {"rpm": 100, "tpm": 9_800}


def test_a_lease_that_was_replaced_is_read_again(place: Place) -> None:
    one, two = Process(place), Process(place)
    lease = one.acquire(rpm=1, tpm=500)
    with pytest.raises(VersionConflict):
        place.wait(one.leases.adjust(lease.lease_id, {"tpm": 1}, version=7))
    assert two.adjust(lease, tpm=300).version == 2
    assert one.adjust(lease, tpm=200).version == 3
    assert one.left()["tpm"] == 9_800
    assert two.end(lease).ended is not None
    with pytest.raises(LeaseExpired):
        one.adjust(lease, tpm=1)
    assert one.left() == {"rpm": 100, "tpm": 10_000}


def test_a_lease_is_forgotten_after_an_hour(place: Place) -> None:
    process = Process(place)
    lease = process.acquire(rpm=1)
    place.clock.seconds += 3_599
    assert process.place.wait(process.leases.get(lease.lease_id)) == lease
    place.clock.seconds += 2
    with pytest.raises(NotFound):
        process.adjust(lease, rpm=2)


def test_of_two_requests_with_one_key_at_once_one_is_charged(place: Place) -> None:
    process = Process(place)
    process.acquire(rpm=1)

    def meanwhile() -> None:
        """The same request in another process, while this one has its tokens and no lease yet."""
        db = AsyncDatabase(to_async(place.engine), place.adb.scope)
        leases = HttpLeases(db, AsyncLimiter(db, ACME, limits=LIMITS))
        asyncio.run(leases.acquire(AcquireRequest(entity="u", resource="r", consume={"tpm": 500}), key="k"))

    def elsewhere() -> None:
        thread = threading.Thread(target=meanwhile)
        thread.start()
        thread.join()

    place.watched.slip_in(PutItem, elsewhere)
    wish = AcquireRequest(entity="u", resource="r", consume={"tpm": 500})
    held = place.wait(process.leases.acquire(wish, key="k"))
    assert held.repeated
    assert len(place.raw("StoredLease")) == 2
    assert process.left() == {"rpm": 99, "tpm": 9_500}


def test_a_lease_that_may_have_been_kept_is_charged_once(place: Place) -> None:
    """The answer to its write is lost: whoever repeats the request by its key has the lease, and has paid."""
    process = Process(place)
    process.acquire(rpm=1)
    real = place.adb.engine.handle

    async def lost(request: Any) -> Any:
        reply = await real(request)
        if isinstance(request, PutItem):
            raise OutcomeUnknown("no answer came")
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place.adb.engine, "handle", lost)
        with pytest.raises(OutcomeUnknown):
            process.acquire(key="k", tpm=500)
    again = process.acquire(key="k", tpm=500)
    assert process.left()["tpm"] == 9_500
    process.end(again)
    assert process.left()["tpm"] == 10_000


def test_tokens_are_given_back_when_the_lease_cannot_be_kept(place: Place) -> None:
    process = Process(place)
    process.acquire(rpm=1)

    def refused() -> None:
        raise Throttled("ThrottlingException", "too many")

    place.watched.slip_in(PutItem, refused)
    held = process.acquire(rpm=1, tpm=500)  # it is sent again
    process.end(held)

    def broken() -> None:
        raise Corrupt("the file is damaged")

    place.watched.slip_in(PutItem, broken)
    with pytest.raises(Corrupt):
        process.acquire(rpm=1, tpm=500)
    assert process.left() == {"rpm": 99, "tpm": 10_000}
