"""Running flows: what a flow may yield, what it runs on, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from solotable import Entity, Key, Table, flow
from solotable.errors import DeclarationError
from solotable.flow.requests import GetItem
from solotable.jobs.backfill import backfill

shop = Table("Shop")


class Stock(Entity, table=shop):
    key = Key("STOCK#{sku}", "STOCK")

    sku: str


Make = Callable[[flow.Scope], Any]


def _run(make: Make) -> Any:
    db = shop.open("sqlite://")
    return flow.run(make(flow.scope_of(db)), db)


def _arun(make: Make) -> Any:
    async def main() -> Any:
        async with shop.open_async("sqlite://") as db:
            return await flow.arun(make(flow.scope_of(db)), db)

    return asyncio.run(main())


both = pytest.mark.parametrize("run", [_run, _arun], ids=["sync", "async"])


@both
def test_yield_of_a_flow_names_yield_from(run: Callable[[Make], Any]) -> None:
    def wrong(scope: flow.Scope) -> flow.Flow[None]:
        yield cast(Any, flow.get(scope, Stock, sku="a"))

    with pytest.raises(TypeError, match="A flow yields requests, got generator; write `yield from`"):
        run(wrong)


@both
def test_wrong_yield_is_raised_in_the_flow(run: Callable[[Make], Any]) -> None:
    def wrong(_scope: flow.Scope) -> flow.Flow[str]:
        try:
            yield cast(Any, 7)
        except TypeError as error:
            return str(error)
        return "not raised"

    assert run(wrong) == "A flow yields requests, got int."


@both
def test_ended_flow_is_not_run_again(run: Callable[[Make], Any]) -> None:
    made: list[Any] = []

    def once(scope: flow.Scope) -> Any:
        if not made:
            made.append(flow.get(scope, Stock, sku="a"))
        return made[0]

    assert run(once) is None
    with pytest.raises(DeclarationError, match="This flow has ended; call its function again"):
        run(once)


def test_run_rejects_an_async_store_and_arun_a_blocking_one() -> None:
    blocking = shop.open("sqlite://")

    async def main() -> None:
        async with shop.open_async("sqlite://") as db:
            with pytest.raises(DeclarationError, match=r"run\(\) takes a blocking store; await arun\(\)"):
                flow.run(flow.get(flow.scope_of(db), Stock, sku="a"), cast(Any, db))
        with pytest.raises(DeclarationError, match=r"arun\(\) takes an async store; call run\(\)"):
            await flow.arun(flow.get(flow.scope_of(blocking), Stock, sku="a"), cast(Any, blocking))

    asyncio.run(main())


def test_a_job_rejects_an_async_store() -> None:
    async def main() -> None:
        async with shop.open_async("sqlite://") as db:
            with pytest.raises(DeclarationError, match=r"takes a blocking store or engine, got an async one"):
                backfill(cast(Any, db.admin()), Stock, budget=1)

    asyncio.run(main())


def test_store_in_the_place_of_a_scope_is_rejected() -> None:
    db = shop.open("sqlite://")
    with pytest.raises(DeclarationError, match=r"take a Scope, got Database; pass scope_of\(store\)"):
        flow.run(flow.get(cast(Any, db), Stock, sku="a"), db)


def test_attribute_error_of_a_flow_is_raised_unchanged() -> None:
    def wrong(_scope: flow.Scope) -> flow.Flow[None]:
        yield cast(Any, object()).request

    with pytest.raises(AttributeError, match="request"):
        _run(wrong)


class Stuck:
    """An async engine that never replies."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def handle(self, _request: Any, /) -> Any:
        self.asked.set()
        await asyncio.Event().wait()


def test_cancelled_flow_stays_open_for_its_caller() -> None:
    ended: list[str] = []

    def waiting() -> flow.Flow[None]:
        try:
            yield GetItem(table="Shop", key={"PK": {"S": "a"}})
        finally:
            ended.append("finally")

    async def main() -> None:
        engine = Stuck()
        held = waiting()
        task = asyncio.create_task(flow.arun(held, cast(Any, engine)))
        await engine.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # A caller may run it on, as the limiter does to give tokens back, or close it.
        assert ended == []
        held.close()
        assert ended == ["finally"]

    asyncio.run(main())
