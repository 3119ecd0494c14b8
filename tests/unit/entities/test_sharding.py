"""Shards and buckets as they are declared, derived and refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Self
from uuid import UUID

import pytest

from solotable import Entity, Index, Key, Query, Table, pattern
from solotable._entities.keys.bounds import above, below
from solotable._entities.keys.parts.time_buckets import bucket_codec
from solotable._entities.keys.sharding import shard_of
from solotable._entities.lint import lint
from solotable._entities.patterns.access_patterns import access_patterns
from solotable._entities.patterns.query_partitions import QueryPartitions, partitions_of
from solotable.errors import DataError, DeclarationError

NOW = datetime(2026, 11, 15, 13, 30, tzinfo=UTC)
IDS: dict[str, Callable[[int], str]] = {
    "numbers": str,
    "padded": lambda n: f"ORDER#{n:08d}",
    "even hex": lambda n: f"{n * 256:08x}",
    "uuids": lambda n: str(UUID(int=n * 7919)),
    "times": lambda n: (NOW + timedelta(seconds=n)).isoformat(),
}


def entity(*, local: bool = False, **keys: Any) -> type[Entity]:
    indexes = [Index("GSI1", local=local, **({"sort": "LSK"} if local else {}))]
    table = Table("Things", indexes=indexes)
    annotations = {"id": str, "at": datetime, "day": date, "status": str, "n": int, "ulid": str}
    return type("Thing", (Entity,), {"__annotations__": annotations, **keys}, table=table)


def lanes(key: Key, bound: str = "", *values: Any, **given: Any) -> QueryPartitions:
    thing = entity(key=key)
    query = thing.key.query(**given)  # type: ignore[attr-defined]  # made at run time
    if bound:
        query = getattr(query, bound)(at=values if len(values) > 1 else values[0])
    return partitions_of(query.path, query.arguments, query.sort_range, NOW)


@pytest.mark.parametrize("shards", [2, 3, 8, 16])
@pytest.mark.parametrize("shape", IDS)
def test_ten_thousand_ids_are_spread_evenly(shape: str, shards: int) -> None:
    found = Counter(shard_of(IDS[shape](number), shards) for number in range(10_000))
    even = 10_000 / shards
    assert found.keys() == set(range(shards))
    assert all(0.8 * even <= count <= 1.2 * even for count in found.values())


def test_the_shard_follows_from_the_item_and_is_the_same_for_ever() -> None:
    thing = entity(
        key=Key("THING", "{id}", shards=8), by_status=Key("S#{status}", "{at}", index="GSI1", shards=3)
    )
    made = {"id": "o1", "at": NOW, "day": NOW.date(), "status": "new", "n": 1, "ulid": ""}
    item = thing.plan().encode(made)
    assert (item["PK"], item["GSI1PK"]) == ({"S": "THING#05"}, {"S": "S#new#02"})
    assert thing.plan().encode({**made, "status": "old"})["GSI1PK"] == {"S": "S#old#02"}
    assert thing.plan().key_from({"id": "o1"}) == {"PK": {"S": "THING#05"}, "SK": {"S": "o1"}}


@pytest.mark.parametrize(
    ("size", "value", "text"),
    [
        ("hour", datetime(2026, 11, 15, 23, 59, tzinfo=UTC), "2026-11-15T23"),
        ("day", datetime(2026, 11, 15, 23, 59, tzinfo=timezone(timedelta(hours=-5))), "2026-11-16"),
        ("month", datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "2026-12"),
        ("month", datetime(1, 1, 1, tzinfo=UTC), "0001-01"),
    ],
)
def test_a_bucket_is_the_time_in_utc_and_reads_back(size: str, value: datetime, text: str) -> None:
    codec = bucket_codec(datetime, size, where="Thing.key", field="at")
    assert codec.encode(value) == text == codec.decode(text)
    for wrong in (text[:-1], text + "0", text.replace("-", ""), text[:-1] + "x", "9" * len(text)):
        with pytest.raises(ValueError, match="is not an encoded"):
            codec.decode(wrong)


def test_a_bucket_of_a_ulid_is_that_of_its_time() -> None:
    codec = bucket_codec(str, "day", where="Thing.key", field="ulid")
    assert codec.encode("01ARZ3NDEKTSV4RRFFQ69G5FAV") == "2016-07-30"
    with pytest.raises(DataError, match="needs ULID of 26 upper-case characters"):
        codec.encode("01arz3ndektsv4rrffq69g5fav")


@pytest.mark.parametrize(
    ("bound", "values", "buckets"),
    [
        ("between", (datetime(2026, 10, 30, 23, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)), 3),
        ("between", (datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)), 0),
        ("since", (datetime(2026, 11, 14, 23, 59, tzinfo=UTC),), 2),
        ("after", (NOW,), 1),
        ("since", (datetime(2026, 12, 1, tzinfo=UTC),), 1),
    ],
)
def test_a_range_walks_its_buckets_and_ends_now(bound: str, values: tuple[Any, ...], buckets: int) -> None:
    found = lanes(Key("LOG#{at:day}", "{at}#{id}", shards=4), bound, *values)
    assert (len(found.buckets), found.queries) == (buckets, buckets * 4)


def test_a_day_is_its_own_buckets() -> None:
    day = date(2026, 11, 14)
    assert [each[0] for each in lanes(Key("LOG#{at:day}", "{at}#{id}"), at=day).buckets] == ["LOG#2026-11-14"]
    hours = lanes(Key("LOG#{at:hour}", "{at}#{id}"), at=day).buckets
    assert [each[0] for each in hours] == [f"LOG#2026-11-14T{hour:02d}" for hour in range(24)]


def test_given_fields_that_say_the_shard_leave_one() -> None:
    key = Key("LOG#{status}", "{id}#{at}", shards=8, shard_by=("id",))
    assert lanes(key, status="s", id="o1").buckets == (("LOG#s#05",),)
    assert lanes(key, status="s").queries == 8


@pytest.mark.parametrize(("shards", "was", "queries"), [(8, 4, 8), (4, 8, 8), (8, 1, 9)])
def test_while_shards_are_changed_the_old_ones_are_read_too(shards: int, was: int, queries: int) -> None:
    by_status = Key("S#{status}", "{at}", index="GSI1", shards=shards, was=was)
    thing = entity(key=Key("THING#{id}", "THING"), by_status=by_status)
    path = thing.plan().keys["by_status"]
    found = partitions_of(path, {"status": "new"}, None, NOW)
    assert found.queries == queries
    assert ("S#new" in found.buckets[0]) == (was == 1)


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        ((), "needs two ends: between"),
        (("until", NOW), "needs two ends: between"),
        (("before", NOW), "needs two ends: between"),
        (("between", NOW - timedelta(days=400), NOW), "would read 401 buckets.*raise most_buckets="),
    ],
)
def test_a_walk_without_an_end_is_refused(bound: tuple[Any, ...], said: str) -> None:
    with pytest.raises(DataError, match=said):
        lanes(Key("LOG#{at:day}", "{at}#{id}"), *bound)
    assert (
        lanes(Key("LOG#{at:day}", "{at}#{id}", most_buckets=401), "since", NOW - timedelta(days=400)).queries
        == 401
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"key": Key("T", "{id}", shards=1)}, "2 to 100 shards. Remove shards="),
        ({"key": Key("T", "{id}", shards=101)}, "2 to 100 shards"),
        ({"key": Key("T", "{id}", was=4)}, "need shards=; add it"),
        ({"key": Key("T", "{id}", shard_by=("id",))}, "need shards=; add it"),
        ({"key": Key("T", "{id}", shards=4, was=2)}, "part of the primary key"),
        ({"key": Key("T#{id}", "{n:06d}", shards=4, shard_by=("id",))}, "equal for all items"),
        ({"key": Key("T", "T", shards=4)}, "equal for all items"),
        ({"key": Key("T", "{id}", shards=4, shard_by=("status",))}, "shard_by names 'status'"),
        ({"key": Key("T#{at:day}", "{id}")}, r"add \{at\} to the sort key"),
        ({"key": Key("T", "{at:day}#{id}")}, "loses the exact time"),
        ({"key": Key("T#{at:day}#{day:month}", "{at}#{day}")}, "two time buckets"),
        ({"key": Key("T#{n:day}", "{n:06d}")}, "has no time"),
        ({"key": Key("T#{day:hour}", "{day}")}, "a date has no hours"),
        ({"key": Key("T#{at:day}", "{at}", most_buckets=-1)}, "must be at least 1"),
        (
            {"key": Key("T#{id}", "T"), "by": Key("S", "{n:06d}", index="GSI1", shards=4, was=4)},
            "differ from shards=4",
        ),
    ],
)
def test_what_cannot_be_spread_is_refused_where_it_is_declared(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        entity(**keys)


def test_a_local_index_lies_in_the_shards_of_the_key() -> None:
    key = Key("T", "{id}", shards=4)
    with pytest.raises(DeclarationError, match="write only shards=4"):
        entity(local=True, key=key, by=Key("T", "{n:06d}", index="GSI1"))
    thing = entity(local=True, key=key, by=Key("T", "{n:06d}", index="GSI1", shards=4))
    item = thing.plan().encode(
        {"id": "o1", "at": NOW, "day": NOW.date(), "status": "new", "n": 1, "ulid": ""}
    )
    assert item["PK"] == {"S": f"T#{shard_of('o1', 4):02d}"}


@pytest.mark.parametrize("text", ["a", "ab", "abc", "ab\x7f", "\U0010fffe", "\ud7ff", "a߿", "\U0010ffff"])
def test_nothing_lies_between_a_text_and_the_one_above_it(text: str) -> None:
    after = above(text, 4)
    assert after is None or (after > text and len(after.encode()) <= 4)
    assert after is None or below(after, 4) == text


def test_nothing_is_above_the_greatest_text() -> None:
    assert above("\U0010ffff", 4) is None


logs = Table("Logs", indexes=[Index("GSI1")])


class Log(Entity, table=logs):
    key = Key("LOG#{at:day}", "{at:s}#{log_id}", shards=3)
    by_level = Key("LEVEL#{level}", "{at:s}", index="GSI1", shards=4)
    log_id: str
    at: datetime
    level: str

    @pattern
    @classmethod
    def since(cls, moment: datetime) -> Query[Self]:
        """What was logged since."""
        return cls.key.query().since(at=moment)

    @pattern
    @classmethod
    def of_level(cls, level: str) -> Query[Self]:
        """What was logged of a level."""
        return cls.by_level.query(level=level)


def test_the_list_of_patterns_says_how_many_queries_they_are() -> None:
    since, of_level = access_patterns([logs])
    assert since.key_condition == 'PK = LOG#{at:day}#{shard} AND SK >= "{moment}"'
    assert since.cost == "0.5 RCU per 4 KB read, 3 queries for each bucket"
    assert (of_level.key_condition, of_level.cost) == (
        "GSI1PK = LEVEL#{level}#{shard}",
        "0.5 RCU per 4 KB read, 4 queries",
    )
    assert [each for each in lint(logs) if each.code != "ST401"] == []


@pytest.mark.parametrize(
    ("spec", "partition", "meets"),
    [
        ("day", "LOG#{text}#{n:02d}", True),
        ("hour", "LOG#{text}#{n:02d}", True),
        ("month", "LOG#{day}#{n:02d}", False),
        ("day", "LOG#{day}#{n:02d}", True),
        ("day", "LOG#{day}", False),
        ("day", "LOG#{text}", False),
        ("day", "LOG#{text}#{n:03d}", False),
    ],
)
def test_the_linter_knows_the_texts_of_buckets_and_shards(spec: str, partition: str, meets: bool) -> None:
    table = Table("Meeting")
    fields = {"at": datetime, "day": date, "text": str, "n": int}
    for name, key in (
        ("One", Key(f"LOG#{{at:{spec}}}", "{at:s}#X", shards=3)),
        ("Other", Key(partition, "{at:s}#X")),
    ):
        type(name, (Entity,), {"__annotations__": fields, "key": key}, table=table)
    assert ("ST101" in [each.code for each in lint(table)]) == meets
