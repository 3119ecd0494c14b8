"""Backfilling: old items and missing index keys, beside writers of both releases, after kill -9 (S2.28)."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from solotable import AdminStore, Database, Entity, Index, Key, Table, Version, connect, upgrade
from solotable._connect import ensure
from solotable._flows.jobs.scan_checkpoints import (
    TAG,
    SegmentCheckpoint,
    goal_of,
    load_checkpoints,
    save_checkpoint,
)
from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Control, Request, TransactWriteItems, UpdateItem
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import DataError, ServiceError
from solotable.jobs.backfill import Progress, backfill, report
from tests.killing import Start
from tests.waiting import jitter, wait_until

from . import backfilling
from .backfilling import BEFORE, BETWEEN, OldProfile, Profile
from .opening import Opening

plain = Table("Shop")
indexed = Table("Shop", indexes=[Index("GSI1")])


class Order(Entity, table=plain, tag="Order"):
    key = Key("ORDER#{order_id}", "ORDER")
    order_id: str
    city: str | None
    total: str
    version: Annotated[int, Version()] = 0


class NewOrder(Entity, table=indexed, tag="Order", schema_version=2):
    key = Key("ORDER#{order_id}", "ORDER")
    by_city = Key("CITY#{city}", "ORDER#{order_id}", index="GSI1")
    order_id: str
    city: str | None
    cents: int
    version: Annotated[int, Version()] = 0

    @upgrade(to=2, replaces=("total",))
    @staticmethod
    def cents_of(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "cents": int(record["total"].replace(".", ""))}


class Other(Entity, table=plain):
    key = Key("OTHER#{other_id}", "OTHER")
    other_id: str


class SameOther(Entity, table=indexed, tag="Other"):
    key = Key("OTHER#{other_id}", "OTHER")
    other_id: str


def fill(opening: Opening, count: int) -> AdminStore:
    """Store old orders, and return the new release's store with its index added to the live table."""
    old = opening.beside(plain)
    for number in range(count):
        city = None if number % 5 == 0 else f"c{number % 3}"
        old.put(Order(order_id=f"{number:03d}", city=city, total=f"{number}.50"))
    old.put(Other(other_id="x"))
    new = opening.beside(indexed)
    ensure(opening.engine, indexed, opening.prefix + indexed.name)
    _await_index(opening)
    return new.admin()


def _await_index(opening: Opening) -> None:
    """Wait for the index; DynamoDB Local takes no writes while it is being made, which Amazon does."""
    asked = Control(operation="DescribeTable", members={"TableName": opening.prefix + indexed.name})

    def statuses() -> set[str]:
        try:
            indexes = opening.engine.handle(asked)["Table"]["GlobalSecondaryIndexes"]
        except ServiceError as refused:
            # DynamoDB Local fails now and then while it makes an index.
            assert refused.code == "InternalFailure"
            return set()
        return {index["IndexStatus"] for index in indexes}

    wait_until(lambda: statuses() == {"ACTIVE"}, seen=statuses)


def orders(opening: Opening) -> dict[str, Item]:
    found = [item for item in opening.raw(indexed) if item["_type"] == {"S": "Order"}]
    return {item["order_id"]["S"]: item for item in found}


def test_every_item_gets_the_new_schema_version_and_the_keys_of_a_new_index(opening: Opening) -> None:
    admin = fill(opening, 30)
    db = opening(indexed)
    before = report(admin, NewOrder, budget=100)
    assert (before.items, before.old, before.by_schema_version, before.stale_keys) == (30, 30, {1: 30}, 24)
    read = {each: db.require(NewOrder, order_id=each) for each in orders(opening)}
    assert list(db.all(NewOrder.by_city.query(city="c1"))) == []

    done = backfill(admin, NewOrder, budget=100)

    assert (done.tally.items, done.tally.upgraded, done.tally.reindexed) == (30, 30, 0)
    assert (done.done, done.tally.seen >= 31, done.problems) == (True, True, ())
    after = report(admin, NewOrder, budget=100)
    assert (after.old, after.by_schema_version, after.stale_keys) == (0, {2: 30}, 0)
    assert {each: db.require(NewOrder, order_id=each) for each in read} == read
    assert {each.order_id for each in db.all(NewOrder.by_city.query(city="c1"))} == {
        key for key, value in read.items() if value.city == "c1"
    }
    assert all("total" not in item for item in orders(opening).values())
    assert {item["_type"]["S"] for item in opening.raw(indexed)} == {"Order", "Other"}, "no mark is left"
    again = backfill(admin, NewOrder, budget=100)
    assert (again.tally.upgraded, again.tally.reindexed) == (0, 0)


def test_wrong_and_superfluous_index_keys_are_repaired(opening: Opening) -> None:
    admin = fill(opening, 3)
    backfill(admin, NewOrder, budget=100)
    one, two = orders(opening)["001"], orders(opening)["002"]
    opening.plant(indexed, {**one, "GSI1PK": {"S": "CITY#elsewhere"}})
    opening.plant(indexed, {name: value for name, value in two.items() if name != "city"})
    assert report(admin, NewOrder, budget=100).stale_keys == 2
    done = backfill(admin, NewOrder, budget=100)
    assert (done.tally.upgraded, done.tally.reindexed) == (0, 2)
    assert orders(opening)["001"] == one
    assert orders(opening)["002"].keys().isdisjoint({"GSI1PK", "GSI1SK"})


def test_a_dry_run_writes_nothing(opening: Opening) -> None:
    admin = fill(opening, 8)
    before = opening.raw(indexed)
    told: list[Progress] = []
    done = backfill(admin, NewOrder, budget=100, dry_run=True, progress=told.append)
    assert (done.tally.upgraded, done.dry_run, opening.raw(indexed)) == (8, True, before)
    assert told[-1] == done


@pytest.mark.parametrize("together", [1, 100])
def test_a_concurrent_write_survives_and_the_rewrite_is_repeated(opening: Opening, together: int) -> None:
    fill(opening, 6)
    admin = AdminStore(opening.spy, opening.beside(indexed).admin().scope)
    old = opening.beside(plain)

    def intrude() -> None:
        old.update(old.require(Order, order_id="001"), set={"total": "77.77"})
        old.delete(old.require(Order, order_id="002"))
        opening.beside(indexed).update(NewOrder, order_id="004", set={"cents": 9}, version=1)

    opening.spy.once(UpdateItem if together == 1 else TransactWriteItems, intrude)
    done = backfill(admin, NewOrder, budget=100, together=together)
    assert (done.tally.failed, done.tally.conflicts) == (0, 3)
    stored = orders(opening)
    assert (stored["001"]["cents"], stored["001"]["version"]) == ({"N": "7777"}, {"N": "2"})
    assert "002" not in stored
    assert stored["004"]["cents"] == {"N": "9"}
    assert {item["_shape"]["N"] for item in stored.values()} == {"2"}


class Killed(Exception):
    """Stands for the end of the process."""


def test_a_run_that_died_goes_on_where_it_stood(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solotable._flows.jobs.backfill._AT_ONCE", 5)
    fill(opening, 23)
    admin = AdminStore(opening.spy, opening.beside(indexed).admin().scope)
    pages: list[Progress] = []

    def die(progress: Progress) -> None:
        pages.append(progress)
        if len(pages) == 3:
            raise Killed

    with pytest.raises(Killed):
        backfill(admin, NewOrder, budget=1000, progress=die)
    assert [item for item in opening.raw(indexed) if item["_type"] == {"S": TAG}] != []
    assert list(opening.beside(indexed).admin().scan(SameOther, budget=100)) == [SameOther(other_id="x")]
    half = pages[-1].tally
    with pytest.raises(DataError, match="has segments=1"):
        backfill(admin, NewOrder, budget=1000, segments=2)
    done = backfill(admin, NewOrder, budget=1000)
    assert done.resumed
    assert (done.tally.upgraded, done.tally.items) == (23, 23)
    assert done.tally.seen - half.seen < 23, "what was done is not read again"
    assert [item for item in opening.raw(indexed) if item["_type"] == {"S": TAG}] == []


def test_a_budget_that_is_used_up_is_an_error_that_can_be_gone_on_from(opening: Opening) -> None:
    admin = fill(opening, 12)
    with pytest.raises(DataError, match="reached its budget"):
        backfill(admin, NewOrder, budget=5)
    assert report(admin, NewOrder, budget=100).old in range(1, 13)
    assert backfill(admin, NewOrder, budget=100).tally.upgraded == 12
    with pytest.raises(DataError, match="reached its budget"):
        report(admin, NewOrder, budget=3)


def test_segments_are_worked_on_together(opening: Opening) -> None:
    admin = fill(opening, 40)
    done = backfill(admin, NewOrder, budget=1000, segments=4)
    assert (done.tally.upgraded, report(admin, NewOrder, budget=100).old) == (40, 0)
    assert {item["_type"]["S"] for item in opening.raw(indexed)} == {"Order", "Other"}


def test_items_that_cannot_be_upgraded_are_reported_and_do_not_stop_the_job(opening: Opening) -> None:
    admin = fill(opening, 4)
    opening.plant(indexed, {**orders(opening)["002"], "total": {"S": "dear"}})
    opening.plant(indexed, {**orders(opening)["003"], "_shape": {"N": "7"}})
    done = backfill(admin, NewOrder, budget=100)
    assert (done.tally.upgraded, done.tally.failed, done.tally.newer) == (2, 1, 1)
    assert "cents_of (upgrade to schema version 2) failed" in done.problems[0]
    assert "ORDER#002" in done.problems[0]
    found = report(admin, NewOrder, budget=100)
    assert (found.by_schema_version, found.unreadable) == ({1: 1, 2: 2, 7: 1}, 1)


class Paced:
    """An engine whose waiting moves the clock."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self.slept = 0.0
        self.sent: list[Request[Any]] = []
        self.capabilities = Capabilities(sleep=self.sleep)

    def handle(self, request: Request[Any], /) -> Any:
        self.sent.append(request)
        return self._opening.engine.handle(request)

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._opening.clock.seconds += seconds

    def close(self) -> None: ...


@pytest.mark.parametrize("together", [1, 100])
def test_the_rate_is_kept(opening: Opening, together: int) -> None:
    if opening.place == "local" and together > 1:
        pytest.skip("DynamoDB Local reports fewer units for a transaction than its items take")
    fill(opening, 40)
    engine = Paced(opening)
    admin = AdminStore(engine, opening.beside(indexed).admin().scope)
    done = backfill(admin, NewOrder, budget=1000, rate=20, together=together)
    assert done.tally.upgraded == 40
    assert done.tally.units >= 40 + 32, "one unit for each item, and one for each new index entry"
    # A second's worth may be spent at once; the rest takes its time.
    assert engine.slept == pytest.approx((done.tally.units - 20) / 20, abs=1.5)
    with pytest.raises(DataError, match="above 0 units"):
        backfill(admin, NewOrder, budget=1000, rate=0)


def test_progress_says_how_long_it_will_take(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("solotable._flows.jobs.backfill._AT_ONCE", 10)
    told: list[Progress] = []
    backfill(fill(opening, 30), NewOrder, budget=1000, progress=told.append)
    assert len(told) >= 4
    assert [each.tally.seen for each in told] == sorted(each.tally.seen for each in told)
    assert (told[-1].done, told[-1].eta_seconds) == (True, 0.0)
    if told[0].total is not None:
        assert (told[0].eta_seconds or 0) > 0


def test_racing_writers_of_both_releases_lose_nothing(opening: Opening) -> None:
    old, new = opening.beside(BEFORE), opening.beside(BETWEEN)
    count, rounds = 20, 30
    for number in range(count):
        old.put(OldProfile(user_id=str(number), name="n", avatar_url="0"))

    def write(release: int) -> None:
        for turn in range(rounds):
            user = str((turn * 7 + release) % count)
            if release % 2:
                old.update(OldProfile, user_id=user, add={"likes": 1})
            else:
                new.update(Profile, user_id=user, add={"likes": 1})

    def repeat() -> None:
        for _ in range(3):
            backfill(new.admin(), Profile, budget=10_000, together=5)

    with ThreadPoolExecutor(3) as threads:
        for each in [threads.submit(write, 0), threads.submit(write, 1), threads.submit(repeat)]:
            each.result()
    backfill(new.admin(), Profile, budget=10_000)
    found = list(new.admin().scan(Profile, budget=10_000))
    assert sum(each.likes for each in found) == 2 * rounds
    assert report(new.admin(), Profile, budget=10_000).by_schema_version == {2: count}


@pytest.mark.in_process
def test_kill_9_during_a_backfill_with_writers_loses_nothing(
    opening: Opening, tmp_path: Path, start: Start
) -> None:
    if opening.runner is not None:
        pytest.skip("the job is a blocking one")
    url = f"sqlite:///{tmp_path / 'profiles.db'}"
    count = 2_500
    backfilling.fill(url, count)
    dice = random.Random(20_260)
    module = ("-m", "tests.store.backfilling")
    writers = [start(*module, "write", url, release, str(count)) for release in ("old", "new")]
    marks = [0]
    with connect(url, BETWEEN) as watching:
        for _ in range(5):
            victim = start(*module, "backfill", url)
            # It stops after every page, so it is killed in the page after the last one that it was let do.
            for lines in range(1, dice.randrange(3, 6)):
                victim.wait_for_lines(lines)
                victim.release()
            jitter(dice, 0.05)
            started, page, *_ = victim.kill()
            assert started == "started"
            assert int(page) > marks[-1], "it did not go on from the checkpoint"
            marks.append(_seen(watching))
        for writer in writers:
            assert writer.end() == ["done"]
        last = backfill(watching.admin(), Profile, budget=100_000)
        backfill(watching.admin(), Profile, budget=100_000, restart=True)
        assert 0 < marks[-1] < count, marks
        assert last.tally.failed == 0
        assert report(watching.admin(), Profile, budget=100_000).by_schema_version == {2: count}
        wrong = backfilling.differences(watching, count)
    assert wrong == []


def _seen(db: Database) -> int:
    marks = run(load_checkpoints(db.admin().scope, Profile.plan()), db.engine)
    return sum(mark.tally.seen for mark in marks)


def test_a_mark_of_another_goal_is_not_gone_on_from(opening: Opening) -> None:
    admin = fill(opening, 5)
    plan = NewOrder.plan()
    mark = SegmentCheckpoint(run="r", goal=goal_of(plan), segment=0, segments=1, done=True)
    run(save_checkpoint(admin.scope, plan, replace(mark, goal="another")), admin.engine)
    assert run(load_checkpoints(admin.scope, plan), admin.engine) == []
    assert backfill(admin, NewOrder, budget=100).tally.upgraded == 5
    run(save_checkpoint(admin.scope, plan, mark), admin.engine)
    assert run(load_checkpoints(admin.scope, plan), admin.engine) == [mark]


spread = Table("Spread", indexes=[Index("GSI1")])
wider = Table("Spread", indexes=[Index("GSI1")])


class Spread(Entity, table=spread, tag="Event"):
    key = Key("EVENT#{event_id}", "EVENT")
    by_kind = Key("KIND#{kind}", "EVENT#{event_id}", index="GSI1", shards=2)
    event_id: str
    kind: str = "k"


class Wider(Entity, table=wider, tag="Event"):
    key = Key("EVENT#{event_id}", "EVENT")
    by_kind = Key("KIND#{kind}", "EVENT#{event_id}", index="GSI1", shards=5)
    event_id: str
    kind: str = "k"


def test_another_number_of_shards_is_another_goal_and_moves_index_keys(opening: Opening) -> None:
    assert goal_of(Spread.plan()) != goal_of(Wider.plan())
    old, new = opening.beside(spread), opening(wider)
    for number in range(20):
        old.put(Spread(event_id=f"{number:02d}"))
    admin = opening.beside(wider).admin()
    moved = report(admin, Wider, budget=100).stale_keys
    assert 0 < moved <= 20
    assert backfill(admin, Wider, budget=100).tally.reindexed == moved
    found = [each.event_id for each in new.all(Wider.by_kind.query(kind="k"))]
    assert found == [f"{number:02d}" for number in range(20)]
