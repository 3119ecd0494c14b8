"""Mirrored reads: compared beside the served read, counted, and never in its way."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

import pytest

from solotable._protocol.requests import GetItem, Request
from solotable.errors import TransportError
from solotable.migrations.router.mirror import MOST_PENDING, Mirror, Workers, is_same
from tests.waiting import HANG_SECONDS, wait_until

from .conftest import Shop
from .shop import Order, User, change


def settled(shop: Shop, router: Any) -> Any:
    """Return the report once nothing is pending; an awaited router needs its loop to run."""

    def is_done() -> bool:
        if shop.runner is not None:
            shop.runner.run(asyncio.sleep(0))
        return bool(router._parts.mirror.pending == 0)

    wait_until(is_done)
    return router.status().mirror


def test_equal_results_are_counted_with_the_difference_of_their_latencies(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    router.put(User(user_id="1", name="Zoe"))
    one.new.put(User(user_id="1", name="Zoe"))

    def slower(request: Request[Any]) -> None:
        if isinstance(request, GetItem) and "PK" in request.key and request.key["PK"]["S"] == "USER#1":
            one.clock.seconds += 0.125

    one.new_spy.before = slower
    assert router.require(User, user_id="1").name == "Zoe"
    report = settled(one, router)
    assert (report.compared, report.different, report.lagging, report.failed) == (1, 0, 0, {})
    assert report.delta() == 0.125


def test_a_difference_that_stays_is_counted_and_named(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    router.put(Order(user_id="1", number="7", total=3))
    one.new.put(Order(user_id="1", number="7", total=4))
    assert router.require(Order, user_id="1", number="7").total == 3
    report = settled(one, router)
    assert (report.compared, report.different) == (1, 1)
    assert report.samples == ["Order {'user_id': '1', 'number': '7'}"]


def test_a_difference_that_goes_away_is_a_lag(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    router.put(Order(user_id="1", number="7", total=3))

    def arrive(seconds: float) -> None:
        one.new.put(Order(user_id="1", number="7", total=3))

    one.new_spy.sleep = arrive
    router.require(Order, user_id="1", number="7")
    report = settled(one, router)
    assert (report.compared, report.different, report.lagging) == (1, 0, 1)


def test_an_error_of_the_mirrored_read_does_not_reach_the_caller(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    router.put(Order(user_id="1", number="7", total=3))

    def unreachable(request: Request[Any]) -> None:
        if isinstance(request, GetItem) and request.table == "Shop":
            raise TransportError("no route")

    one.new_spy.before = unreachable
    one.new_spy.sleep = lambda _: None
    assert router.require(Order, user_id="1", number="7").total == 3
    assert settled(one, router).failed == {"TransportError": 1}


def test_pages_are_compared_row_by_row_without_their_cursors(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    for number in range(4):
        router.put(Order(user_id="1", number=str(number)))
        one.new.put(Order(user_id="1", number=str(number)))
    assert len(router.page(Order.key.query(user_id="1"), limit=2)) == 2
    report = settled(one, router)
    assert (report.compared, report.different) == (1, 0)


def test_no_share_mirrors_nothing(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1"))
    router.get(User, user_id="1")
    assert settled(one, router).compared == 0


def test_reads_beyond_the_bound_are_dropped_and_counted() -> None:
    mirror = Mirror()
    assert all(mirror.admit() for _ in range(MOST_PENDING))
    assert not mirror.admit()
    mirror.done()
    assert mirror.admit()
    assert mirror.report.dropped == 1


@pytest.mark.parametrize("mode", ["sync"])
def test_a_served_read_does_not_wait_for_a_mirrored_one(one: Shop) -> None:
    router = one.router()
    change(one.migration, mirror_percent=100)
    router.put(User(user_id="1", name="Zoe"))
    gate = threading.Event()

    def held(request: Request[Any]) -> None:
        if isinstance(request, GetItem) and request.table == "Shop":
            gate.wait(HANG_SECONDS)

    one.new_spy.before = held
    assert router.require(User, user_id="1").name == "Zoe"
    assert router._parts.mirror.pending == 1
    gate.set()
    settled(one, router)


def test_a_forked_child_starts_its_own_threads() -> None:
    workers = Workers()
    done = threading.Event()
    workers.submit(done.set)
    assert done.wait(HANG_SECONDS)
    child = os.fork()
    if child == 0:
        again = threading.Event()
        workers.submit(again.set)
        os._exit(0 if again.wait(HANG_SECONDS) else 1)
    assert os.waitpid(child, 0)[1] == 0
    workers.close()


def test_entities_of_two_classes_are_not_the_same() -> None:
    assert is_same(User(user_id="1"), User(user_id="1"))
    assert not is_same(User(user_id="1"), User(user_id="1", visits=1))
    assert not is_same(User(user_id="1"), None)
    assert is_same([User(user_id="1")], (User(user_id="1"),))
