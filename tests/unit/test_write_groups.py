"""Writes that coroutines ask for at once go together; each has its own outcome."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable._expressions.ast import Exists, Not
from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Control, GetItem, PutItem, Request
from solotable._store.runner import Threaded
from solotable.engines import sqlite
from solotable.errors import ConditionFailed, EngineError
from solotable.testing.engines.wrapper import EngineWrapper, SettledOutcome
from tests.waiting import HANG_SECONDS, wait_until_async

TABLE = {
    "TableName": "Things",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ABSENT = Not(Exists(("pk",)))


class Noted(EngineWrapper):
    """Notes how many requests came together, and may hold them up."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(handle_together=self.handle_together)

    def __init__(self) -> None:
        super().__init__(sqlite.open(sqlite.MEMORY))
        self.inner.handle(Control(operation="CreateTable", members=TABLE))
        self.sizes: list[int] = []
        self.asked = 0
        self.opened = threading.Event()
        self.opened.set()

    def handle_together(
        self, requests: Sequence[Request[Any]], *, largest: int | None = None
    ) -> list[SettledOutcome]:
        self.asked += 1
        assert self.opened.wait(HANG_SECONDS)
        self.sizes.append(len(requests))
        return super().handle_together(requests, largest=largest)


def put(name: str) -> PutItem:
    return PutItem(table="Things", item={"pk": {"S": name}}, condition=ABSENT)


def run(scenario: Any) -> Noted:
    engine = Noted()
    with ThreadPoolExecutor(2) as pool:
        asyncio.run(scenario(Threaded(engine, pool), engine))
    return engine


def test_what_is_asked_at_once_goes_together_and_what_comes_later_is_next() -> None:
    async def scenario(store: Threaded, engine: Noted) -> None:
        engine.opened.clear()
        first = [asyncio.create_task(store.handle(put(f"a{n}"))) for n in range(5)]
        await wait_until_async(lambda: engine.asked)
        later = [asyncio.create_task(store.handle(put(f"b{n}"))) for n in range(70)]
        # One turn of the loop begins all of them.
        await asyncio.sleep(0)
        engine.opened.set()
        await asyncio.gather(*first, *later)
        await store.handle(put("c"))

    assert run(scenario).sizes == [5, 64, 6, 1]


def test_each_write_has_its_own_outcome() -> None:
    async def scenario(store: Threaded, engine: Noted) -> None:
        await store.handle(put("b"))
        outcomes = await asyncio.gather(*(store.handle(put(name)) for name in "abc"), return_exceptions=True)
        assert [isinstance(each, ConditionFailed) for each in outcomes] == [False, True, False]
        for name in "abc":
            found = await store.handle(GetItem(table="Things", key={"pk": {"S": name}}))
            assert found.item is not None

    run(scenario)


def test_a_cancelled_caller_gets_no_outcome_and_delays_no_other() -> None:
    async def scenario(store: Threaded, engine: Noted) -> None:
        engine.opened.clear()
        tasks = [asyncio.create_task(store.handle(put(name))) for name in "abc"]
        await wait_until_async(lambda: engine.asked)
        tasks[1].cancel()
        engine.opened.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(outcomes[1], asyncio.CancelledError)
        assert not any(isinstance(each, BaseException) for each in (outcomes[0], outcomes[2]))
        # It was on its way already.
        found = await store.handle(GetItem(table="Things", key={"pk": {"S": "b"}}))
        assert found.item is not None

    run(scenario)


def test_an_engine_error_reaches_every_caller() -> None:
    async def scenario(store: Threaded, engine: Noted) -> None:
        def fail(_: Any) -> list[SettledOutcome]:
            raise EngineError("the disk is gone")

        store._together = fail
        outcomes = await asyncio.gather(*(store.handle(put(name)) for name in "ab"), return_exceptions=True)
        assert [str(each) for each in outcomes] == ["the disk is gone"] * 2

    run(scenario)


def test_a_store_that_was_closed_says_so() -> None:
    async def scenario(store: Threaded, engine: Noted) -> None:
        await store.handle(put("a"))
        await store.close()
        with pytest.raises(EngineError, match="closed"):
            await store.handle(put("b"))

    run(scenario)


def test_another_event_loop_has_its_own_groups() -> None:
    engine = Noted()
    with ThreadPoolExecutor(2) as pool:
        store = Threaded(engine, pool)
        asyncio.run(_once(store, "a"))
        asyncio.run(_once(store, "b"))
    assert engine.sizes == [1, 1]


async def _once(store: Threaded, name: str) -> None:
    await store.handle(put(name))
