"""The walk over shards, driven by hand: what is asked at once, how much, and what is asked again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from solotable import Entity, Index, Key, Table
from solotable._connect import connect
from solotable._flows.reads import query
from solotable._flows.retry import ConcurrentReads, Flow, Retries, Sleep, send_all
from solotable._flows.scope import Scope
from solotable._protocol.engine import Capabilities
from solotable._protocol.replies import Page as Reply
from solotable._protocol.requests import GetItem, Query, Request
from solotable._store.runner import arun, run
from solotable.errors import ServiceError, Throttled
from tests.waiting import HANG_SECONDS

SLOW = Throttled("ThrottlingException", "slow down")
tasks = Table("Tasks", indexes=[Index("GSI1")])


class Task(Entity, table=tasks):
    key = Key("TASK#{id}", "TASK")
    by_status = Key("STATUS#{status}", "{n:04d}", index="GSI1", shards=4)
    id: str
    status: str = "open"
    n: int


def scope() -> Scope:
    with connect("sqlite://", tasks) as db:
        return db.scope


def item(n: int, shard: int) -> dict[str, Any]:
    made = Task(id=f"t{n}", n=n)
    return {**Task.plan().encode(made.__dict__), "GSI1PK": {"S": f"STATUS#open#{shard:02d}"}}


def reply(*items: dict[str, Any], more: bool = False) -> Reply:
    names = ("PK", "SK", "GSI1PK", "GSI1SK")
    last = {name: items[-1][name] for name in names} if more else None
    return Reply(items=list(items), last_key=last, count=len(items), scanned=len(items))


def partition(request: Query) -> str:
    return str(request.key[0].values[0]["S"])


def finish(flow: Flow[Any], answer: Any) -> Any:
    with pytest.raises(StopIteration) as done:
        flow.send(answer)
    return done.value.value


def test_a_page_asks_every_shard_at_once_and_for_little_more_than_its_share() -> None:
    flow = query.page(scope(), Task.by_status.query(status="open"), limit=8, cursor=None)
    asked = next(flow)
    assert isinstance(asked, ConcurrentReads)
    reads: list[Any] = list(asked.reads)
    assert [partition(each) for each in reads] == [f"STATUS#open#{shard:02d}" for shard in range(4)]
    assert {each.limit for each in reads} == {4}
    # The first shard is at its limit and may have more, so only it is asked again.
    first = reply(item(1, 0), item(2, 0), item(3, 0), item(4, 0), more=True)
    again = flow.send([first, reply(item(5, 1)), reply(item(0, 2)), reply()])
    assert isinstance(again, Query)
    assert (partition(again), again.start) == ("STATUS#open#00", first.last_key)
    page = finish(flow, reply())
    assert [each.n for each in page.rows] == [0, 1, 2, 3, 4, 5]
    assert page.cursor is None


def test_a_cursor_holds_one_row_and_every_shard_goes_on_from_it() -> None:
    asked = Task.by_status.query(status="open")
    where = scope()
    flow = query.page(where, asked, limit=1, cursor=None)
    next(flow)
    page = finish(flow, [reply(item(3, 0)), reply(item(1, 1)), reply(item(2, 2)), reply(item(1, 3))])
    assert [each.n for each in page.rows] == [1]
    assert len(page.cursor) < 400
    again = next(query.page(where, asked, limit=1, cursor=page.cursor))
    assert isinstance(again, ConcurrentReads)
    reads: list[Any] = list(again.reads)
    ranges = {partition(each)[-2:]: each.key[1:] for each in reads}
    assert {
        shard: [(term.operator, term.values[0]["S"]) for term in terms] for shard, terms in ranges.items()
    } == {
        "00": [(">=", "0001\x00")],  # an earlier shard: what is equal has been
        "01": [],  # the shard of the row: after its key
        "02": [(">=", "0001")],
        "03": [(">=", "0001")],
    }
    assert [each.start is not None for each in reads] == [False, True, False, False]


def test_only_what_was_refused_is_asked_again() -> None:
    gets = [GetItem(table="Tasks", key={"PK": {"S": str(number)}}) for number in range(3)]
    flow = send_all(gets, Retries(random=lambda: 1.0))
    assert next(flow) == ConcurrentReads(tuple(gets))
    assert isinstance(flow.send(["zero", SLOW, "two"]), Sleep)
    assert next(flow) == ConcurrentReads((gets[1],))
    assert finish(flow, ["one"]) == ["zero", "one", "two"]


def test_what_will_not_pass_is_raised() -> None:
    gets = [GetItem(table="Tasks", key={}) for _ in range(2)]
    flow = send_all(gets, Retries(random=lambda: 1.0))
    next(flow)
    refused = ServiceError("ValidationException", "no")
    with pytest.raises(ServiceError) as raised:
        flow.send(["zero", refused])
    assert raised.value is refused


def test_refusals_end_after_as_many_attempts_as_of_one_request() -> None:
    gets = [GetItem(table="Tasks", key={}) for _ in range(2)]
    flow = send_all(gets, Retries(random=lambda: 0.0, attempts=3))
    next(flow)
    for _ in range(2):
        assert isinstance(flow.send([SLOW] * 2), Sleep)
        next(flow)
    with pytest.raises(Throttled):
        flow.send([SLOW] * 2)


class _Meeting:
    """An engine that answers nobody before all have asked."""

    def __init__(self, parties: int) -> None:
        self._barrier = asyncio.Barrier(parties)

    async def handle(self, request: Request[Any], /) -> Any:
        await asyncio.wait_for(self._barrier.wait(), HANG_SECONDS)
        return reply()

    async def sleep(self, seconds: float, /) -> None:
        """Wait for nothing."""

    async def close(self) -> None:
        """Nothing is held."""


async def _concurrently() -> query.FilledPage:
    return await arun(
        query.page(scope(), Task.by_status.query(status="open"), limit=8, cursor=None), _Meeting(4)
    )


def test_an_async_store_asks_all_shards_concurrently() -> None:
    assert asyncio.run(_concurrently()).rows == []


class _Broken:
    capabilities = Capabilities()

    def handle(self, request: Request[Any], /) -> Any:
        raise ServiceError("ValidationException", "no")

    def close(self) -> None:
        """Nothing is held."""


def test_a_blocking_store_raises_the_first_error() -> None:
    with pytest.raises(ServiceError, match="no"):
        run(query.count(scope(), Task.by_status.query(status="open")), _Broken())
