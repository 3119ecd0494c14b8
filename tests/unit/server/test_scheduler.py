"""Who answers what: short reads at once, writes in groups, long work aside, and every caller its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from solotable._protocol import wire
from solotable._protocol.engine import Capabilities, Pause, TooLong
from solotable._protocol.requests import (
    BatchGetItem,
    BatchWriteItem,
    Control,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TableKeys,
    TransactGetItems,
)
from solotable.engines.sqlite.file.group_commit import Outcome
from solotable.server.scheduling.scheduler import Scheduler
from tests.waiting import HANG_SECONDS, holds, wait_until

GET = GetItem(table="Things", key={"pk": {"S": "x"}})
LONG = Control(operation="ListTables", members={})
QUERY: Query = wire.decode_body(  # type: ignore[assignment]  # by its target
    "DynamoDB_20120810.Query",
    b'{"TableName":"Things","KeyConditionExpression":"pk=:p","ExpressionAttributeValues":{":p":{"S":"x"}}}',
)


def batch(*tables: str) -> Request[Any]:
    return BatchGetItem(tables=tuple(TableKeys(table=name, keys=({"pk": {"S": "x"}},)) for name in tables))


def put(number: int) -> Request[Any]:
    return PutItem(table="Things", item={"pk": {"S": str(number)}})


class Recording:
    """An engine that notes who asked for what, and waits to be let go."""

    def __init__(self, *, instant: bool = False) -> None:
        self.capabilities = Capabilities(instant=instant)
        self.groups: list[int] = []
        self.threads: list[str] = []
        self.gate = threading.Event()
        self.fault: Exception | None = None
        #: How many bytes each read goes through.
        self.size = 0

    def handle(self, request: Request[Any]) -> Any:
        self.threads.append(threading.current_thread().name)
        return request

    def handle_in_slices(self, request: Request[Any], pause: Pause) -> Any:
        pause(self.size)
        return self.handle(request)

    def handle_small(self, request: Request[Any], largest: int) -> Any:
        if self.size > largest:
            raise TooLong
        return self.handle(request)

    def handle_together(self, requests: Sequence[Request[Any]], *, largest: int | None) -> Sequence[Outcome]:
        self.groups.append(len(requests))
        self.threads.append(threading.current_thread().name)
        assert self.gate.wait(HANG_SECONDS)
        if self.fault is not None:
            raise self.fault
        outcomes = []
        for number, request in enumerate(requests):
            outcome = Outcome()
            if number % 2:
                outcome.fail(ValueError(str(number)))
            else:
                outcome.settle(request)
            outcomes.append(outcome)
        return outcomes


Found = Callable[[], Any]


def same(found: Found) -> Found:
    """Ask for the answer, and leave it as it is."""
    try:
        answer = found()
    except Exception as error:  # noqa: BLE001 - the result that a test asks for
        return partial(_raise, error)
    return lambda: answer


def _raise(error: Exception) -> Any:
    raise error


class Caller:
    """Takes what came of one request."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.thread = ""
        self.result: Any = None

    def done(self, reply: Callable[[], Any]) -> None:
        self.thread = threading.current_thread().name
        try:
            self.result = reply()
        except Exception as error:  # noqa: BLE001 - the result that a test asks for
            self.result = error
        self.came.set()


async def settle(callers: Sequence[Caller]) -> list[Any]:
    await asyncio.wait_for(asyncio.gather(*(caller.came.wait() for caller in callers)), HANG_SECONDS)
    return [caller.result for caller in callers]


def test_short_reads_are_answered_before_take_returns() -> None:
    async def play() -> None:
        engine, caller = Recording(), Caller()
        scheduler = Scheduler(engine, asyncio.get_running_loop())
        scheduler.schedule(GET, same, caller.done)
        assert caller.result == GET
        assert engine.threads == [threading.current_thread().name]
        scheduler.close()

    asyncio.run(play())


@pytest.mark.parametrize("request_", [GET, LONG, put(1)])
def test_an_instant_engine_answers_everything_at_once(request_: Request[Any]) -> None:
    async def play() -> None:
        engine, caller = Recording(instant=True), Caller()
        scheduler = Scheduler(engine, asyncio.get_running_loop())
        scheduler.schedule(request_, same, caller.done)
        assert caller.result == request_
        scheduler.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("request_", "threads"),
    [(LONG, "control"), (Scan(table="Things"), "long"), (TransactGetItems(gets=()), "long")],
)
def test_long_work_has_its_own_threads_and_replies_on_the_loop(request_: Request[Any], threads: str) -> None:
    async def play() -> None:
        engine, caller = Recording(), Caller()
        scheduler = Scheduler(engine, asyncio.get_running_loop())
        scheduler.schedule(request_, same, caller.done)
        assert await settle([caller]) == [request_]
        assert engine.threads[0].startswith(f"solotable-{threads}")
        assert caller.thread == threading.current_thread().name
        scheduler.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("read", "others"),
    [
        (QUERY, [replace(QUERY, index="by_name"), replace(QUERY, table="Others"), batch("Things")]),
        (batch("Things"), [batch("Others"), batch("Things", "Others"), QUERY]),
    ],
    ids=["Query", "BatchGetItem"],
)
def test_reads_go_aside_after_a_long_one_and_come_back_after_many_short_ones(
    read: Request[Any], others: list[Request[Any]]
) -> None:
    async def play() -> None:
        engine = Recording()
        scheduler = Scheduler(engine, asyncio.get_running_loop())

        async def ask(request: Request[Any]) -> str:
            caller = Caller()
            scheduler.schedule(request, same, caller.done)
            await settle([caller])
            return "aside" if engine.threads[-1].startswith("solotable-long") else "at once"

        assert await ask(read) == "at once"
        engine.size = 1 << 20
        # It is begun on the loop, found to be long, and begun again in a thread.
        assert await ask(read) == "aside"
        engine.size = 0
        # Now that is known, of this source alone.
        assert {await ask(other) for other in others} == {"at once"}
        assert {await ask(read) for _ in range(64)} == {"aside"}
        assert await ask(read) == "at once"
        scheduler.close()

    asyncio.run(play())


def test_large_bodies_are_read_one_at_a_time_by_a_thread() -> None:
    async def play() -> None:
        scheduler = Scheduler(Recording(), asyncio.get_running_loop())
        callers = [Caller(), Caller()]
        for caller in callers:
            scheduler.run_in_reader(lambda: threading.current_thread().name, caller.done)
        assert await settle(callers) == ["solotable-reader_0"] * 2
        assert callers[0].thread == threading.current_thread().name
        scheduler.close()

    asyncio.run(play())


def test_writes_that_wait_for_a_commit_share_the_next() -> None:
    async def play() -> None:
        engine, callers = Recording(), [Caller() for _ in range(10)]
        scheduler = Scheduler(engine, asyncio.get_running_loop())
        for number, caller in enumerate(callers):
            scheduler.schedule(put(number), same, caller.done)
        # A read overtakes the writes.
        reader = Caller()
        scheduler.schedule(GET, same, reader.done)
        assert reader.result == GET
        engine.gate.set()
        results = await settle(callers)
        assert engine.groups == [1, 9]
        assert {name[:16] for name in engine.threads if name != threading.current_thread().name} == {
            "solotable-writer"
        }
        # Each has its own: every second one of a group was refused.
        assert results[0] == put(0)
        assert results[1::2] == [put(number) for number in range(1, 10, 2)]
        assert all(isinstance(result, ValueError) for result in results[2::2])
        scheduler.close()

    asyncio.run(play())


def test_a_fault_of_the_group_reaches_every_caller_and_the_next_group_is_written() -> None:
    async def play() -> None:
        engine, callers = Recording(), [Caller() for _ in range(3)]
        engine.fault = RuntimeError("is_closed")
        scheduler = Scheduler(engine, asyncio.get_running_loop())
        for number, caller in enumerate(callers):
            scheduler.schedule(put(number), same, caller.done)
        engine.gate.set()
        assert {str(result) for result in await settle(callers)} == {"is_closed"}
        engine.fault = None
        after = Caller()
        scheduler.schedule(put(9), same, after.done)
        assert await settle([after]) == [put(9)]
        scheduler.close()

    asyncio.run(play())


def test_closing_waits_for_the_group_under_way_and_begins_no_other() -> None:
    async def play() -> None:
        engine, callers = Recording(), [Caller() for _ in range(3)]
        loop = asyncio.get_running_loop()
        scheduler = Scheduler(engine, loop)
        for number, caller in enumerate(callers):
            scheduler.schedule(put(number), same, caller.done)
        closing = loop.run_in_executor(None, scheduler.close)
        assert await asyncio.to_thread(holds, lambda: not closing.done())
        engine.gate.set()
        await closing
        await settle(callers[:1])
        assert await asyncio.to_thread(holds, lambda: engine.groups == [1])

    asyncio.run(play())


class Held(Recording):
    """An engine whose reads wait to be let go."""

    def handle(self, request: Request[Any]) -> Any:
        super().handle(request)
        assert self.gate.wait(HANG_SECONDS)
        return request


@pytest.mark.parametrize("request_", [Scan(table="Things"), LONG])
def test_closing_waits_for_the_requests_under_way_and_begins_none_that_wait(request_: Request[Any]) -> None:
    async def play() -> None:
        engine, callers = Held(), [Caller() for _ in range(40)]
        loop = asyncio.get_running_loop()
        faults: list[Any] = []
        loop.set_exception_handler(lambda _, context: faults.append(context))
        scheduler = Scheduler(engine, loop)
        for caller in callers:
            scheduler.schedule(request_, same, caller.done)
        # A thread begins one request and waits in it.
        await asyncio.to_thread(wait_until, lambda: bool(engine.threads))
        closing = loop.run_in_executor(None, scheduler.close)
        assert await asyncio.to_thread(holds, lambda: not closing.done())
        engine.gate.set()
        await closing
        scheduler.schedule(request_, same, callers[0].done)
        assert len(engine.threads) < len(callers)
        assert not faults

    asyncio.run(play())


@pytest.mark.parametrize(
    ("group", "computes"),
    [
        ([put(1)], False),
        ([put(number) for number in range(16)], False),
        ([put(number) for number in range(17)], True),
        ([BatchWriteItem(tables=(("Things", ()),))], True),
    ],
)
def test_a_thread_that_writes_for_long_shortens_the_switch_interval(
    group: list[Request[Any]], computes: bool
) -> None:
    entered: list[bool] = []

    class Reusable(contextlib.nullcontext[None]):
        def __enter__(self) -> None:
            entered.append(True)

    async def main() -> None:
        engine = Recording()
        engine.gate.set()
        scheduler = Scheduler(engine, asyncio.get_running_loop(), Reusable())
        scheduler._write_together(group)
        scheduler.close()

    asyncio.run(main())
    assert entered == [True] * computes
