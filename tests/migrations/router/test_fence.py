"""Guarded writes: what they return, and that no value is returned twice."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable import Table, flow
from solotable._connect import over
from solotable._expressions.ast import Attr, Compare, Const
from solotable._protocol import requests
from solotable._protocol.requests import DeleteItem, GetItem, PutItem, Request, UpdateItem
from solotable._values import Item, dump_item, load_item
from solotable.engines import sqlite
from solotable.errors import ServiceError, SolotableError
from solotable.flow import ItemUpdate
from solotable.flow.conditions import at_least, exists, missing
from solotable.flow.requests import BatchPut, BatchWriteItem, ConditionCheck
from solotable.migrations.router.dispatch.dispatcher import Route, Step
from solotable.migrations.router.dispatch.fence import FenceMet, is_write, send_fenced
from solotable.migrations.router.dispatch.routing import Routing

from .shop import create_old_tables

_FENCE = {"id": {"S": "the fence"}}


def guard(_: Any) -> list[Any]:
    is_open = Compare("=", Attr(("open",)), Const({"BOOL": True}))
    return [ConditionCheck(table="Users", key=_FENCE, condition=is_open)]


@pytest.fixture(scope="module")
def engine() -> Any:
    opened = sqlite.open(sqlite.MEMORY)
    create_old_tables(over(opened, (Table("Unused"),)))
    return opened


def set_open(engine: Any, is_open: bool) -> None:
    engine.handle(PutItem(table="Users", item={**_FENCE, "open": {"BOOL": is_open}}))


def outcome(send: Any) -> Any:
    try:
        return send()
    except SolotableError as error:
        return type(error), getattr(error, "code", None), getattr(error, "item", None)


counts = st.integers(-3, 3)
conditions = st.sampled_from([None, exists("id"), missing("id"), at_least("n", 1)])
returns = st.sampled_from(["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"])
updates = st.builds(
    lambda count, tags, condition, what, shown: UpdateItem(
        table="Users",
        key=dump_item({"id": "1"}),
        update=ItemUpdate().add("n", count).set("tags", tags).build(),
        condition=condition,
        returns=what,
        returns_on_failure=shown,
    ),
    counts,
    st.lists(st.text(max_size=3), max_size=2),
    conditions,
    returns,
    st.booleans(),
)
deletes = st.builds(
    lambda condition, what, shown: DeleteItem(
        table="Users",
        key=dump_item({"id": "1"}),
        condition=condition,
        returns=what,
        returns_on_failure=shown,
    ),
    conditions,
    st.sampled_from(["NONE", "ALL_OLD"]),
    st.booleans(),
)
puts = st.builds(
    lambda count, condition, shown: PutItem(
        table="Users",
        item=dump_item({"id": "1", "n": count}),
        condition=condition,
        returns_on_failure=shown,
    ),
    counts,
    conditions,
    st.booleans(),
)
stored = st.one_of(
    st.none(), st.fixed_dictionaries({"n": counts}, optional={"tags": st.just(["a"]), "more": st.just("b")})
)


def prepare(engine: Any, before: dict[str, Any] | None) -> None:
    engine.handle(DeleteItem(table="Users", key=dump_item({"id": "1"})))
    if before is not None:
        engine.handle(PutItem(table="Users", item=dump_item({"id": "1", **before})))


def item_of(engine: Any) -> Item | None:
    found = engine.handle(GetItem(table="Users", key=dump_item({"id": "1"}), consistent=True)).item
    return None if found is None else flow.decode_item(found)


@given(stored, st.one_of(updates, deletes, puts))
def test_a_guarded_write_replies_and_fails_as_the_plain_one(engine: Any, before: Any, request: Any) -> None:
    set_open(engine, True)
    prepare(engine, before)
    plain = outcome(lambda: _attributes(engine.handle(request)))
    after = item_of(engine)
    prepare(engine, before)
    guarded = outcome(lambda: _attributes(flow.run(send_fenced(request, guard), engine)))
    assert guarded == plain
    assert item_of(engine) == after


def _attributes(reply: Any) -> Any:
    return None if not reply.attributes else load_item(flow.decode_item(reply.attributes))


@given(stored, st.one_of(updates, deletes, puts))
def test_a_closed_side_takes_no_write(engine: Any, before: Any, request: Any) -> None:
    set_open(engine, False)
    prepare(engine, before)
    was = item_of(engine)
    with pytest.raises(FenceMet):
        flow.run(send_fenced(request, guard), engine)
    assert item_of(engine) == was


def test_no_value_of_a_counter_is_returned_twice(engine: Any) -> None:
    set_open(engine, True)
    prepare(engine, {"n": 0})
    request = UpdateItem(
        table="Users", key=dump_item({"id": "1"}), update=ItemUpdate().add("n", 1).build(), returns="ALL_NEW"
    )

    def take(_: int) -> int:
        while True:
            try:
                reply = flow.run(send_fenced(request, guard), engine)
            except ServiceError as error:
                if error.retryable:
                    continue
                raise
            return int(load_item(flow.decode_item(reply.attributes))["n"])

    with ThreadPoolExecutor(4) as threads:
        taken = list(threads.map(take, range(100)))
    assert sorted(taken) == list(range(1, 101))


def test_a_batch_is_written_only_while_the_side_is_open(engine: Any) -> None:
    items = tuple(BatchPut(item=dump_item({"user": "b", "no": str(number)})) for number in range(25))
    request = BatchWriteItem(tables=(("Orders", items),))
    set_open(engine, False)
    with pytest.raises(FenceMet):
        flow.run(send_fenced(request, guard), engine)
    set_open(engine, True)
    assert flow.run(send_fenced(request, guard), engine).unprocessed == {}
    key = dump_item({"user": "b", "no": "24"})
    assert engine.handle(GetItem(table="Orders", key=key)).item is not None


def test_every_request_that_can_write_counts_as_a_write() -> None:
    reads = {"GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems", "Control", "Request"}
    kinds = [each for each in vars(requests).values() if isinstance(each, type) and issubclass(each, Request)]
    assert len(kinds) > 10
    for kind in kinds:
        assert is_write(object.__new__(kind)) == (kind.__name__ not in reads), kind


def test_a_router_of_a_forked_child_goes_on(engine: Any) -> None:
    # The lease is an instant of the monotonic clock, which a child shares.
    class Source:
        request = GetItem(table="Users", key=_FENCE)

        def decode(self, item: Any) -> Routing:
            return Routing(epoch=3)

    route = Route(Source(), clock=time.monotonic, lease_seconds=60)  # type: ignore[arg-type] # two members
    steps = route.current()
    assert isinstance(next(steps), Step)
    with pytest.raises(StopIteration):
        steps.send(type("Reply", (), {"item": None}))
    child = os.fork()
    if child == 0:
        os._exit(0 if route.is_valid and route.known == Routing(epoch=3) else 1)
    assert os.waitpid(child, 0)[1] == 0
