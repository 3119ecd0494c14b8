"""L11: every shard of a bucket expires, and never before one that was split from it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Retries
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Scan
from solotable._store.runner import run
from solotable._values import Item
from solotable.engines import sqlite
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.buckets.charge import Charged, ShardGone
from solotable.systems.limiter.buckets.shards import charge_one, merge, read_shards, split
from solotable.systems.limiter.buckets.writes.charge_request import Charge
from solotable.systems.limiter.meters.rules import rules_of
from solotable.systems.limiter.table import limiter
from tests.store.opening import Clock

LIMIT = Limit.per_minute("rpm", 3000)
HOUR = 3600


class Table:
    """A table in memory whose expired items a test sweeps."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.engine = sqlite.open(sqlite.MEMORY, clock=self.clock)
        self.scope = over(self.engine, [limiter], clock=self.clock).scope

    def limiter(self, **options: Any) -> Limiter:
        """Return the limiter of another process."""
        given: dict[str, Any] = {"limits": [LIMIT], "shard_above": None, "remember_rejections": 0.0}
        scope = replace(self.scope, retries=Retries(random=random.Random(3).random))
        return Limiter(Database(self.engine, scope), "acme", **(given | options))

    def items(self) -> dict[int, Item]:
        """Return the items of the bucket."""
        page = self.engine.handle(Scan(table="Limiter", consistent=True))
        found = decode_items(page.items or ())
        return {
            int(item["shard"]["N"]): item for item in found if item[limiter.internal_tag]["S"] == "Bucket"
        }

    def expires(self) -> dict[int, int]:
        """Return when each shard expires, from now, in seconds."""
        return {shard: int(item["expires"]["N"]) - int(self.clock()) for shard, item in self.items().items()}

    def split(self, ours: Limiter, *shards: int) -> None:
        """Split shards."""
        writer, known = ours.context.writer, ours.context.writer.cache.bucket("u", "r")
        for shard in shards:
            run(read_shards(writer, known, consistent=True), self.engine)
            run(split(writer, known, shard, known.shards[shard]), self.engine)

    def charge(self, ours: Limiter, shard: int, tokens: int = 1) -> object:
        """Charge one shard."""
        writer, known = ours.context.writer, ours.context.writer.cache.bucket("u", "r")
        charge = Charge(rules_of((LIMIT,), 0), {"rpm": tokens * 1000})
        return run(charge_one(writer, known, shard, charge), self.engine)


@pytest.fixture
def table() -> Iterator[Table]:
    """A table in memory."""
    made = Table()
    yield made
    made.engine.close()


def spend(ours: Limiter, amount: float = 1) -> None:
    with ours.acquire("u", "r", {"rpm": amount}):
        pass


def test_l11_no_shard_is_left_after_400_idle_days(table: Table) -> None:
    ours = table.limiter(shard_above=10, most_shards=16)
    for _ in range(900):
        table.clock.seconds += 0.01
        spend(ours)
    spend(ours, 2000)
    assert len(table.items()) >= 8
    assert all("expires" in item for item in table.items().values())
    table.clock.seconds += 400 * 86_400
    table.engine.sweep()
    assert table.items() == {}
    assert table.limiter().available("u", "r") == {"rpm": 3000}


def test_l11_a_shard_outlives_those_split_from_it(table: Table) -> None:
    ours = table.limiter()
    spend(ours)
    table.split(ours, 0, 1, 3, 0)
    writer = table.limiter()
    spend(writer)
    for _ in range(30):
        table.clock.seconds += HOUR / 2
        assert isinstance(table.charge(writer, 7), Charged)
        expires = table.expires()
        assert expires[0] > expires[1] > expires[3] > expires[7] > 0
    # Shards that were not written have expired, and their parents have not.
    table.engine.sweep()
    assert set(table.items()) == {0, 1, 3, 7}


def test_l11_ancestors_are_extended_about_once_an_hour(table: Table) -> None:
    ours = table.limiter()
    spend(ours)
    table.split(ours, 0)
    writer = table.limiter()
    spend(writer)
    before = int(table.items()[0]["writes"]["N"])
    seen = set()
    for _ in range(120):
        table.clock.seconds += 60
        table.charge(writer, 1)
        seen.add(table.items()[0]["expires"]["N"])
    assert int(table.items()[0]["writes"]["N"]) == before
    assert 2 <= len(seen) <= 4


@pytest.mark.parametrize("amount", [1, 2000])
def test_l11_an_expired_shard_is_full(table: Table, amount: int) -> None:
    """It is made again as soon as a call needs it."""
    ours = table.limiter()
    spend(ours)
    table.split(ours, 0, 0, 1)
    spend(ours, 2000)
    # Shard 0 is written, the others are not.
    for _ in range(40):
        table.clock.seconds += HOUR / 2
        table.charge(ours, 0)
    table.engine.sweep()
    assert set(table.items()) == {0}
    for other in (ours, table.limiter()):
        table.clock.seconds += 120
        assert other.available("u", "r") == {"rpm": 3000}
        for _ in range(24):
            spend(other, amount)
            if amount > 1:
                break
        assert other.available("u", "r") == {"rpm": 3000 - (24 if amount == 1 else amount)}
    table.clock.seconds += 120
    spend(table.limiter(), 2000)
    with pytest.raises(RateLimitExceeded):
        spend(table.limiter(), 2000)


def test_l11_a_half_is_merged_with_one_that_has_expired(table: Table) -> None:
    ours = table.limiter()
    spend(ours)
    table.split(ours, 0)
    for _ in range(40):
        table.clock.seconds += HOUR / 2
        table.charge(ours, 0)
    table.engine.sweep()
    table.charge(ours, 0, 1000)
    writer, known = ours.context.writer, ours.context.writer.cache.bucket("u", "r")
    run(merge(writer, known, 0, known.shards[0]), table.engine)
    assert set(table.items()) == {0}
    assert table.items()[0]["level"]["N"] == "0"
    assert ours.available("u", "r") == {"rpm": 1999}


def test_l11_a_shard_without_its_parent_is_not_charged(table: Table) -> None:
    """The bucket was made anew as a whole: what is left of the old one would add to it."""
    stale = table.limiter()
    spend(stale)
    table.split(stale, 0)
    table.charge(stale, 1)
    root = table.items()[0]
    key = {name: root[name] for name in ("PK", "SK")}
    table.engine.handle(DeleteItem(table="Limiter", key=key))
    table.clock.seconds += 24 * HOUR
    assert isinstance(table.charge(stale, 1), ShardGone)
    fresh = table.limiter()
    spend(fresh, 3000)
    assert isinstance(table.charge(stale, 1), ShardGone)
    with pytest.raises(RateLimitExceeded):
        spend(stale)
    # A new split replaces it.
    table.clock.seconds += 60
    table.split(fresh, 0)
    assert fresh.available("u", "r") == {"rpm": 3000}
    assert set(table.items()) == {0, 1}


def test_l11_a_debt_keeps_its_shard_and_those_it_was_split_from(table: Table) -> None:
    ours = table.limiter()
    spend(ours)
    table.split(ours, 0)
    writer, known = ours.context.writer, ours.context.writer.cache.bucket("u", "r")
    debt = Charge(rules_of((LIMIT,), 0), {"rpm": 3000 * 60 * 24 * 30 * 1000}, admit=False)
    assert isinstance(run(charge_one(writer, known, 1, debt), table.engine), Charged)
    until = table.expires()
    assert until[0] > until[1] > 60 * 86_400
    table.clock.seconds += 50 * 86_400
    table.engine.sweep()
    assert set(table.items()) == {0, 1}
    assert table.limiter().available("u", "r")["rpm"] < 0
