"""The queues of the writers of a space in one process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from solotable._store import space_queues
from solotable._store.space_queues import await_turns, wait_for_turns
from tests.waiting import HANG_SECONDS, wait_until

#: Longer than pytest's limit for a test, so that a late turn is not what lets a test pass.
FOREVER = 100 * HANG_SECONDS


@pytest.fixture(autouse=True)
def _no_queue_is_left() -> Iterator[None]:
    yield
    assert space_queues._queues == {}


@contextmanager
def _threads(count: int, work: object) -> Iterator[list[threading.Thread]]:
    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    yield threads
    for thread in threads:
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()


def _waiting(queue: str, count: int) -> None:
    """Wait until so many writers are in a queue."""
    wait_until(lambda: len(space_queues._queues.get(queue, ())) >= count)


def test_threads_have_the_turn_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)
    inside: list[int] = []
    seen: list[int] = []

    def write(number: int) -> None:
        for _ in range(50):
            turns = wait_for_turns(["a"])
            inside.append(number)
            seen.append(len(inside))
            inside.remove(number)
            turns.end()

    with _threads(8, write):
        pass
    assert seen == [1] * 400


def test_writers_take_the_turns_of_several_spaces_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise two writers could wait for each other."""
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)
    held = wait_for_turns(["a"])

    async def write() -> None:
        (await await_turns(["b", "a"])).end()

    with _threads(2, lambda number: asyncio.run(write()) if number else wait_for_turns(["b", "a"]).end()):
        wait_until(lambda: sum(map(len, list(space_queues._queues.values()))) >= 3)
        has_b = "b" in space_queues._queues
        held.end()
    assert not has_b


def test_tasks_and_threads_share_a_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)
    order: list[str] = []
    held = wait_for_turns(["a"])

    async def write(name: str) -> None:
        turns = await await_turns(["a"])
        order.append(name)
        turns.end()

    async def both() -> None:
        first = asyncio.create_task(write("first"))
        await asyncio.sleep(0)
        second = asyncio.create_task(write("second"))
        await asyncio.gather(first, second)

    with _threads(1, lambda _: asyncio.run(both())):
        _waiting("a", 3)
        assert order == []
        held.end()
    assert order == ["first", "second"]


def test_a_cancelled_writer_leaves_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)

    async def write() -> None:
        held = await await_turns(["a"])
        cancelled = asyncio.create_task(await_turns(["a"]))
        following = asyncio.create_task(await_turns(["a"]))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        held.end()
        (await following).end()

    asyncio.run(write())


def test_a_turn_that_does_not_end_stops_no_other_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", 0.01)
    held = wait_for_turns(["a"])
    with _threads(3, lambda _: wait_for_turns(["a"]).end()):
        pass
    held.end()


def test_a_writer_that_would_wait_for_its_own_thread_or_task_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)
    held = wait_for_turns(["a"])
    wait_for_turns(["a"]).end()
    held.end()

    async def nested() -> None:
        outer = await await_turns(["a"])
        (await await_turns(["a"])).end()
        wait_for_turns(["a"]).end()
        outer.end()

    asyncio.run(nested())


def test_a_writer_on_a_closed_loop_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", 0.01)
    held = wait_for_turns(["a"])
    loop = asyncio.new_event_loop()
    loop.close()
    gone = space_queues._Turn("a", space_queues._waker(loop, asyncio.Event()), task=object())
    assert not space_queues._join(gone)
    with _threads(1, lambda _: wait_for_turns(["a"]).end()):
        _waiting("a", 3)
        held.end()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_wait_for_writers_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space_queues, "LONGEST_TURN_SECONDS", FOREVER)
    ready, end = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        turns = wait_for_turns(["a"])
        ready.set()
        end.wait(HANG_SECONDS)
        turns.end()

    with _threads(1, hold):
        ready.wait(HANG_SECONDS)
        child = os.fork()
        if child == 0:
            os._exit(len(space_queues._queues))
        assert os.waitpid(child, 0)[1] == 0
        end.set()
