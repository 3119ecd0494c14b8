"""L10: lanes make a write that is sent twice count once, and an item has seventeen of them at most."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from solotable._store.runner import run
from solotable.errors import ConditionFailed, OutcomeUnknown
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter import Limit, Limiter
from solotable.systems.limiter.buckets.acquire import acquire, give_back
from solotable.systems.limiter.buckets.local_cache import LocalCache

from .ground import ACME, Place

RPM, TPM = Limit.per_minute("rpm", 100_000), Limit.per_minute("tpm", 10_000_000)
CONSUME = {"rpm": 1, "tpm": 500}


#: The digits of writers. Random ones are sometimes equal, and the clock of these tests stands still:
#: two writes with equal digits would have the same number.
_DIGITS = count(1_000)


def process(place: Place) -> Limiter:
    """Return a limiter that knows its settings and no bucket, as in a process that has just started."""
    made = Limiter(place.db, ACME, limits=[RPM, TPM], remember_rejections=0.0)
    made.context.writer.cache.random_below = lambda _: next(_DIGITS)
    made.available("u", "r")
    made.context.writer.cache.clear()
    return made


def lanes(place: Place) -> dict[str, int]:
    (bucket,) = place.raw("Bucket")
    return {name: int(value["N"]) for name, value in bucket.items() if name.startswith("~")}


def call(made: Limiter) -> None:
    with made.acquire("u", "r", CONSUME):
        pass


def consumed(place: Place) -> int:
    (bucket,) = place.raw("Bucket")
    return int(bucket["consumed_rpm"]["N"]) // 1000


def test_l10_an_acquire_costs_one_unit_among_1000_writers(place: Place) -> None:
    """L10: a bucket of two limits that 1,000 processes write within two minutes."""
    many = [process(place) for _ in range(1000 if place.name == "engine" else 60)]
    for made in many:
        call(made)
    assert len(lanes(place)) == 16
    place.spent()
    for made in many:
        call(made)
    assert (place.journal.rcu, place.journal.wcu) == (0.0, float(len(many)))
    # One request each: none failed.
    assert place.sent() == ["UpdateItem"] * len(many)
    for _ in range(2):
        for made in many[:60]:
            call(made)
    assert place.sent() == ["UpdateItem"] * 120
    assert consumed(place) == 2 * len(many) + 120


def test_l10_up_to_15_writers_have_a_lane_each(place: Place) -> None:
    many = [process(place) for _ in range(15)]
    for _ in range(4):
        for made in many:
            place.clock.seconds += 0.01
            call(made)
    writers = [number % 10**6 for number in lanes(place).values()]
    assert len(set(writers)) == len(writers) == 15
    # No lane is shared, so a copy that arrives late is refused, whatever came after it.
    place.journal.clear()
    for made in many:
        call(made)
    for request in place.journal.requests("UpdateItem"):
        with pytest.raises(ConditionFailed):
            place.engine.handle(request)


def test_a_late_copy_of_what_is_given_back_is_refused_also_without_a_lane(place: Place) -> None:
    """Two who give back in turns: each copy of a write finds a higher number than its own."""
    for _ in range(20):
        call(process(place))
    grants = []
    for _ in range(3):
        made = process(place)
        grants.append((made, run(acquire(made.context, "u", {"r": CONSUME}), place.engine)))
    call(process(place))
    copies = []
    for made, grant in grants:
        place.journal.clear()
        run(give_back(made.context.writer, [grant]), place.watched)
        copies += place.journal.requests("UpdateItem")
        call(process(place))
    assert "~r" in lanes(place)
    used = place.raw("Bucket")[0]["used_rpm"]
    for request in copies:
        with pytest.raises(ConditionFailed):
            place.engine.handle(request)
    assert place.raw("Bucket")[0]["used_rpm"] == used


def test_a_writer_takes_over_a_lane_that_is_quiet(place: Place) -> None:
    for _ in range(40):
        call(process(place))
    place.clock.seconds += 600
    last = process(place)
    call(last)
    call(last)
    assert last.context.writer.cache.bucket("u", "r").take_lane(1).shared is False


def crowd(place: Place) -> None:
    for _ in range(40):
        call(process(place))


def overwrite(place: Place) -> None:
    """Write every lane as other writers would."""
    (bucket,) = place.raw("Bucket")
    place.plant({**bucket, **{f"~{digit}": {"N": str(10**21 + 7)} for digit in "0123456789abcdef"}})


@pytest.mark.parametrize("applied", [True, False])
def test_l10_a_charge_whose_lane_was_overwritten_is_sent_again(place: Place, applied: bool) -> None:
    """L10: it may count twice, so that fewer calls are admitted."""
    ours = process(place)
    crowd(place)
    call(ours)
    call(ours)
    before = consumed(place)
    flow = acquire(ours.context, "u", {"r": CONSUME})
    request: Any = next(flow)
    if applied:
        place.engine.handle(request)
    overwrite(place)
    finish(place, flow, request)
    assert consumed(place) == before + (2 if applied else 1)


@pytest.mark.parametrize("applied", [True, False])
def test_l10_what_is_given_back_is_given_back_once_at_most(place: Place, applied: bool) -> None:
    """L10: the lane was overwritten, so that the outcome is unknown; it is not given back again."""
    ours = process(place)
    crowd(place)
    with ours.acquire("u", "r", CONSUME) as lease:
        pass
    before = consumed(place)
    assert lease.grant is not None
    flow = give_back(ours.context.writer, [lease.grant])
    request: Any = next(flow)
    if applied:
        place.engine.handle(request)
    overwrite(place)
    finish(place, flow, request)
    assert consumed(place) == before - (1 if applied else 0)


@pytest.mark.parametrize("applied", [True, False])
def test_l10_what_is_given_back_among_few_writers_is_given_back_once(place: Place, applied: bool) -> None:
    ours = process(place)
    with ours.acquire("u", "r", CONSUME) as lease:
        pass
    call(process(place))
    assert lease.grant is not None
    flow = give_back(ours.context.writer, [lease.grant])
    request: Any = next(flow)
    if applied:
        place.engine.handle(request)
    finish(place, flow, request)
    assert consumed(place) == 1


def finish(place: Place, flow: Any, request: Any) -> None:
    """Lose the response to a request, and run the flow to its end."""
    try:
        request = flow.throw(OutcomeUnknown("No response."))
        while True:
            try:
                reply = place.engine.handle(request) if isinstance(request, UpdateItem) else None
            except ConditionFailed as error:
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration:
        pass


def test_a_bucket_of_a_former_release_loses_the_lanes_of_single_writers(place: Place) -> None:
    ours = process(place)
    call(ours)
    (bucket,) = place.raw("Bucket")
    place.plant({**bucket, "~aB3dE90": {"N": "2051222400000000"}})
    other = process(place)
    call(other)
    call(other)
    assert set(lanes(place)) <= {f"~{digit}" for digit in "0123456789abcdef"}
    assert consumed(place) == 3


def test_l10_threads_beyond_15_share_a_lane_and_disturb_no_other(place: Place) -> None:
    """L10: 64 calls in flight in one process, several times: one write each."""
    ours = process(place)
    call(ours)
    place.journal.clear()
    for _ in range(3):
        flows = [acquire(ours.context, "u", {"r": CONSUME}) for _ in range(64)]
        for flow, request in [(flow, next(flow)) for flow in flows]:
            with pytest.raises(StopIteration):
                flow.send(place.watched.handle(request))
    assert place.sent() == ["UpdateItem"] * 192
    assert consumed(place) == 193


def test_a_bucket_that_is_forgotten_keeps_its_lanes_in_use() -> None:
    cache = LocalCache(max_size=1)
    held = cache.bucket("u", "r")
    taken = [held.take_lane(1).name for _ in range(15)]
    assert len(set(taken)) == 15
    cache.bucket("v", "r")
    assert cache.bucket("u", "r").take_lane(2).shared
