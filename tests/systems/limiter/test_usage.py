"""Usage from the change feed to its rows and back, on every engine, blocking and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from solotable import Database
from solotable._entities.declare.table import STREAM
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control, DeleteItem, PutItem, Request, TransactWriteItems
from solotable.errors import CursorRejected, DataError, FeedTrimmed, OutcomeUnknown
from solotable.systems.limiter import Limit, RateLimitExceeded
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import (
    AggregateResult,
    UsagePage,
    UsageSummary,
    aggregate,
    aggregate_async,
    usage,
    usage_summary,
)
from solotable.testing.engines.wrapper import EngineWrapper
from tests.waiting import wait_until_async

from .conftest import Drive, Mode
from .consuming import bucket_key, consuming
from .either import either
from .ground import ACME, ZETA, Place

DAY = datetime(2035, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
EDGE = timedelta(microseconds=1)


class Counting:
    """Consumes and counts in one test's table."""

    def __init__(self, place: Place, mode: Mode, drive: Drive) -> None:
        self.place = place
        self._mode = mode
        self._drive = drive

    def consume(
        self,
        at: datetime,
        /,
        entity: str = "ann",
        resource: str = "gpt",
        *,
        shard: int = 0,
        namespace: str = ACME,
        more: Mapping[str, int] | None = None,
        **by_name: int,
    ) -> None:
        """Consume tokens, in thousandths; `more` is of limits whose names are no words of Python."""
        amounts = {**by_name, **(more or {})}
        request = consuming(self.place.table, entity, resource, at, amounts, shard=shard, namespace=namespace)
        self.place.engine.handle(request)

    def remove(self, entity: str = "ann", resource: str = "gpt") -> None:
        """Remove a bucket, as its time to live does."""
        self.place.engine.handle(DeleteItem(table=self.place.table, key=bucket_key(entity, resource)))

    def count(self, **settings: Any) -> AggregateResult:
        """Run the job."""
        if self._mode == "sync":
            return aggregate(self.place.db, **settings)
        return self.place.wait(aggregate_async(self.place.adb, **settings))

    def read(self, **asked: Any) -> UsagePage:
        return self._drive(usage(self.place.scope, **asked))

    def sum(self, **asked: Any) -> UsageSummary:
        return self._drive(usage_summary(self.place.scope, **asked))

    def rows(self, window: str, **asked: Any) -> dict[datetime, dict[str, int]]:
        """Return the rows of an entity and a resource by their starts."""
        found = self.read(**{"entity": "ann", "resource": "gpt", "limit": 1000, **asked, "window": window})
        assert found.cursor is None
        return {row.start: {"events": row.events, **row.millitokens} for row in found}


@pytest.fixture
def counting(place: Place, mode: Mode, drive: Drive) -> Counting:
    """Consumes and counts, blocking in one run of the test and awaited in the other."""
    return Counting(place, mode, drive)


def test_c1_9_hours_and_days_that_begin_together_are_counted_apart(counting: Counting) -> None:
    counting.consume(DAY + HOUR / 2, rpm=10_000)
    counting.consume(DAY + 5.5 * HOUR, rpm=7_000)
    assert counting.count() == AggregateResult(records=2, rows=4, transactions=1)
    assert counting.rows("hour") == {
        DAY: {"events": 1, "rpm": 10_000},
        DAY + 5 * HOUR: {"events": 1, "rpm": 7_000},
    }
    assert counting.rows("day") == counting.rows("month") == {DAY: {"events": 2, "rpm": 17_000}}


def test_c1_10_usage_belongs_to_the_window_of_its_write(counting: Counting) -> None:
    # The table's clock, and the stream's, are years from some of these.
    counting.consume(DAY - EDGE, rpm=1_000)
    counting.consume(DAY, rpm=20_000)
    counting.consume(DAY + HOUR - EDGE, rpm=300_000)
    counting.consume(DAY + HOUR, rpm=4_000_000)
    counting.count()
    hours = {start: row["rpm"] for start, row in counting.rows("hour").items()}
    assert hours == {DAY - HOUR: 1_000, DAY: 320_000, DAY + HOUR: 4_000_000}
    days = {start: row["rpm"] for start, row in counting.rows("day").items()}
    assert days == {DAY - 24 * HOUR: 1_000, DAY: 4_320_000}
    months = {start: row["rpm"] for start, row in counting.rows("month").items()}
    assert months == {datetime(2034, 12, 1, tzinfo=UTC): 1_000, DAY: 4_320_000}


def test_c1_11_first_acquires_count_also_after_a_bucket_has_expired(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    counting.remove()
    counting.consume(DAY, rpm=2_000)
    counting.consume(DAY, rpm=4_000)
    counting.count()
    counting.remove()
    counting.count()
    assert counting.rows("day") == {DAY: {"events": 3, "rpm": 7_000}}


def test_c1_5_records_that_are_delivered_again_count_once(counting: Counting) -> None:
    for minute in range(5):
        counting.consume(DAY + minute * timedelta(minutes=1), rpm=1_000)
    assert counting.count().records == 5
    # From the earliest change on, under the same name and under others.
    again = counting.count(recover=True)
    assert (again.records, again.skipped, again.transactions) == (0, 5, 0)
    assert counting.count(consumer="usage-2").skipped == 5
    counting.consume(DAY, rpm=1_000)
    third = counting.count(consumer="usage-3")
    assert (third.records, third.skipped) == (1, 5)
    assert counting.rows("hour") == {DAY: {"events": 6, "rpm": 6_000}}


def test_c1_5_a_worker_that_dies_before_its_commit_counts_nothing_twice(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)

    def die() -> None:
        raise KeyboardInterrupt

    # The rows are written; the feed's checkpoint is a PutItem, and never comes.
    counting.place.watched.slip_in(PutItem, die)
    with pytest.raises(KeyboardInterrupt):
        aggregate(counting.place.db)
    counting.consume(DAY, rpm=2_000)
    done = counting.count()
    assert (done.records, done.skipped) == (1, 1)
    assert counting.rows("hour") == {DAY: {"events": 2, "rpm": 3_000}}


def test_c1_5_two_workers_at_once_count_once(counting: Counting) -> None:
    for n in range(3):
        counting.consume(DAY, rpm=1_000 + n)
    other: list[AggregateResult] = []

    def meanwhile() -> None:
        counting.consume(DAY, rpm=500)
        other.append(aggregate(counting.place.beside()))

    counting.place.watched.slip_in(TransactWriteItems, meanwhile)
    done = counting.count()
    assert (other[0].records, done.records, done.skipped) == (4, 0, 3)
    assert counting.count().records == 0
    assert counting.rows("hour") == {DAY: {"events": 4, "rpm": 3_503}}


class Dying(EngineWrapper):
    """Ends its process before the second transaction."""

    transactions = 0

    def handle(self, request: Request[Any], /) -> Any:
        self.transactions += isinstance(request, TransactWriteItems)
        if self.transactions == 2:
            raise KeyboardInterrupt
        return self.inner.handle(request)


def test_c1_5_a_worker_that_met_another_goes_on_behind_it(counting: Counting) -> None:
    for n in range(60):
        counting.consume(DAY, f"user-{n}", rpm=1_000)
    place = counting.place

    def meanwhile() -> None:
        with pytest.raises(KeyboardInterrupt):
            aggregate(Database(Dying(place.engine), place.db.scope))

    place.watched.slip_in(TransactWriteItems, meanwhile)
    done = counting.count()
    # 99 rows are those of 33 entities.
    assert (done.records, done.skipped) == (27, 33)
    found = counting.read(resource="gpt", window="day", limit=100)
    assert [row.millitokens["rpm"] for row in found] == [1_000] * 60


class Lossy(EngineWrapper):
    """Does the first transaction, and loses the answer."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.sent: list[TransactWriteItems] = []

    def handle(self, request: Request[Any], /) -> Any:
        reply = self.inner.handle(request)
        if isinstance(request, TransactWriteItems):
            self.sent.append(request)
            if len(self.sent) == 1:
                raise OutcomeUnknown("no answer came", retryable=True)
        return reply


def test_c1_5_a_transaction_whose_answer_was_lost_counts_once(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    lossy = Lossy(counting.place.engine)
    assert aggregate(Database(lossy, counting.place.db.scope)).records == 1
    assert len(lossy.sent) == 2
    assert lossy.sent[0].token == lossy.sent[1].token is not None
    assert counting.rows("hour") == {DAY: {"events": 1, "rpm": 1_000}}


def test_s1_10_the_counter_counts_and_not_the_state(counting: Counting) -> None:
    # `used_tpm` moves by millions between the two writes, as time is what it is made of.
    counting.consume(DAY, tpm=1_000_000)
    counting.consume(DAY + timedelta(milliseconds=100), tpm=1_000_000)
    counting.count()
    assert counting.sum(entity="ann").limits["tpm"].total == 2_000


def test_what_is_given_back_counts_where_it_is(counting: Counting) -> None:
    counting.consume(DAY, rpm=5_000, tpm=700)
    counting.count()
    counting.consume(DAY + HOUR, rpm=-5_000)
    counting.consume(DAY + HOUR, rpm=2_500)
    counting.count()
    assert counting.rows("hour") == {
        DAY: {"events": 1, "rpm": 5_000, "tpm": 700},
        DAY + HOUR: {"events": 2, "rpm": -2_500},
    }
    assert counting.rows("day") == {DAY: {"events": 3, "rpm": 2_500, "tpm": 700}}


def test_shards_of_a_bucket_are_one_row(counting: Counting) -> None:
    for shard in range(4):
        counting.consume(DAY, shard=shard, rpm=1_000)
    counting.count()
    assert counting.rows("hour") == {DAY: {"events": 4, "rpm": 4_000}}


def test_more_rows_than_a_transaction_has_are_several(counting: Counting) -> None:
    for n in range(70):
        counting.consume(DAY, f"user-{n:02d}", rpm=n)
    counting.consume(DAY, "user-00", rpm=5)
    done = counting.count()
    # The first consumes nothing; 70 x 3 rows, 33 entities to each transaction.
    assert done == AggregateResult(records=70, rows=210, transactions=3)
    found = counting.read(resource="gpt", window="hour", limit=100)
    assert {row.entity: row.millitokens["rpm"] for row in found} == {
        f"user-{n:02d}": n or 5 for n in range(70)
    }


def test_more_limits_than_an_update_takes_are_several(counting: Counting) -> None:
    # Names of limits are whatever calls give, ten at a time.
    for n in range(0, 150, 10):
        counting.consume(DAY, more={f"a-rather-long-name-of-a-limit-{n + each}": 1_000 for each in range(10)})
    assert counting.count() == AggregateResult(records=15, rows=6, transactions=2)
    (row,) = counting.rows("hour").values()
    assert row.pop("events") == 15
    assert list(row.values()) == [1_000] * 150


def test_with_nothing_new_nothing_is_written(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    counting.count()
    counting.count()
    counting.place.sent()
    # What the job has written itself is in the stream, too.
    assert counting.count() == AggregateResult()
    assert set(counting.place.sent()) <= {
        "Query",
        "DescribeTable",
        "DescribeStream",
        "GetShardIterator",
        "GetRecords",
    }


def test_s1_1_rows_and_marks_are_flat_and_expire(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000, more={"x.y-z": 5})
    counting.count()
    rows = counting.place.raw("Usage")
    assert {row["SK"]["S"]: row["expires"] for row in rows} == {
        f"{window}#2035-01-01T00:00:00Z#gpt": {"N": str(int((DAY + kept).timestamp()))}
        for window, kept in {
            "hour": timedelta(days=90, hours=1),
            "day": timedelta(days=91),
            "month": timedelta(days=431),
        }.items()
    }
    marks = counting.place.raw("_usage")
    # Records are gone from a stream after a day.
    month = counting.place.clock.seconds + 30 * 24 * 3600
    assert [mark["expires"] for mark in marks] == [{"N": str(int(month))}]
    for item in [*rows, *marks]:
        assert {kind for value in item.values() for kind in value} <= {"S", "N"}
    assert counting.rows("hour") == {DAY: {"events": 1, "rpm": 1_000, "x.y-z": 5}}


def test_hours_are_kept_for_90_days_and_months_for_400(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    counting.count()
    clock = counting.place.clock
    clock.seconds = (DAY + timedelta(days=90, minutes=59)).timestamp()
    assert len(counting.rows("hour")) == len(counting.rows("day")) == 1
    clock.seconds = (DAY + timedelta(days=91)).timestamp()
    assert (counting.rows("hour"), counting.rows("day")) == ({}, {})
    assert len(counting.rows("month")) == 1
    clock.seconds = (DAY + timedelta(days=431)).timestamp()
    assert counting.rows("month") == {}


def test_an_entity_and_a_resource_are_listed_by_one_query_each(counting: Counting) -> None:
    for entity in ("ann", "bob"):
        for resource in ("api", "gpt"):
            for hour in range(3):
                counting.consume(DAY + hour * HOUR, entity, resource, rpm=1_000)
    counting.consume(DAY, namespace=ZETA, rpm=9_000)
    counting.count()
    counting.place.sent()
    of_entity = counting.read(entity="ann", window="hour")
    assert [(row.start - DAY, row.resource) for row in of_entity] == [
        (hour * HOUR, resource) for hour in range(3) for resource in ("api", "gpt")
    ]
    of_resource = counting.read(resource="gpt", window="hour")
    assert [(row.start - DAY, row.entity) for row in of_resource] == [
        (hour * HOUR, entity) for hour in range(3) for entity in ("ann", "bob")
    ]
    both = counting.read(entity="bob", resource="api", window="hour")
    assert [(row.entity, row.resource) for row in both] == [("bob", "api")] * 3
    assert counting.place.sent() == ["Query"] * 3
    assert all(row.millitokens == {"rpm": 1_000} for row in of_resource)


def test_a_range_has_its_beginning_and_not_its_end(counting: Counting) -> None:
    for hour in range(6):
        counting.consume(DAY + hour * HOUR, rpm=1_000)
    counting.count()

    def hours(since: datetime | None, until: datetime | None) -> list[int]:
        return [(start - DAY) // HOUR for start in counting.rows("hour", since=since, until=until)]

    assert hours(None, None) == [0, 1, 2, 3, 4, 5]
    assert hours(DAY + HOUR, DAY + 3 * HOUR) == [1, 2]
    assert hours(DAY + HOUR, None) == [1, 2, 3, 4, 5]
    assert hours(None, DAY + HOUR) == [0]
    # Within a window: all of it.
    assert hours(DAY + HOUR - EDGE, DAY + 3 * HOUR + EDGE) == [0, 1, 2, 3]
    assert hours(DAY + HOUR + EDGE, DAY + 3 * HOUR - EDGE) == [1, 2]
    assert hours(DAY + HOUR, DAY + HOUR) == hours(DAY + HOUR + EDGE, DAY + HOUR + EDGE) == []
    assert hours(DAY + 9 * HOUR, DAY + 10 * HOUR) == []


def test_pages_go_on_where_they_ended_and_cursors_stay_with_their_query(counting: Counting) -> None:
    for hour in range(7):
        counting.consume(DAY + hour * HOUR, rpm=1_000 + hour)
    counting.count()
    asked: dict[str, Any] = {"entity": "ann", "window": "hour", "since": DAY + HOUR, "until": DAY + 6 * HOUR}
    first = counting.read(**asked, limit=3)
    rest = counting.read(**asked, limit=3, cursor=first.cursor)
    assert [row.millitokens["rpm"] for row in (*first, *rest)] == [1_001, 1_002, 1_003, 1_004, 1_005]
    assert (len(first), rest.cursor) == (3, None)
    with pytest.raises(CursorRejected):
        counting.read(**{**asked, "entity": "bob"}, cursor=first.cursor)


def test_a_summary_adds_up_what_was_asked_for(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000, tpm=500)
    counting.consume(DAY, "ann", "api", rpm=3_000)
    counting.consume(DAY + 3 * HOUR, rpm=2_000)
    counting.consume(DAY, "bob", rpm=50_000)
    counting.count()
    counting.place.clock.seconds = (DAY + 4.5 * HOUR).timestamp()
    ann = counting.sum(entity="ann", window="hour", since=DAY - HOUR)
    # Six windows from an hour before to the one that has begun.
    assert (ann.windows, ann.events, ann.until) == (6, 3, DAY + 5 * HOUR)
    rpm = ann.limits["rpm"]
    assert (rpm.total, rpm.mean, rpm.peak, rpm.peak_at) == (6, 1.0, 4, DAY)
    assert (ann.limits["tpm"].total, ann.limits["tpm"].peak) == (0.5, 0.5)
    gpt = counting.sum(resource="gpt", window="day", since=DAY, until=DAY + 10 * 24 * HOUR)
    assert (gpt.windows, gpt.limits["rpm"].total, gpt.limits["rpm"].mean) == (1, 53, 53)
    assert counting.sum(entity="ann", since=DAY, until=DAY).limits == {}
    assert counting.sum(entity="nobody").events == 0


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, "name one of them"),
        ({"entity": "a#b"}, "An entity name has"),
        ({"resource": ""}, "A resource name has"),
        ({"entity": "ann", "window": "week"}, "hour, day, month; got 'week'"),
        ({"entity": "ann", "since": datetime(2035, 1, 1)}, "has no time zone"),
        ({"entity": "ann", "since": DAY, "until": DAY - HOUR}, "ends after it begins"),
        ({"entity": "ann", "limit": 0}, "limit= must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(counting: Counting, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        counting.read(**asked)
    assert counting.place.sent() == []


def test_a_bucket_that_cannot_be_read_stops_the_counting_there(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    counting.consume(DAY, "eve", rpm=1_000)
    counting.place.plant(
        {
            **bucket_key("eve", "gpt"),
            limiter.internal_tag: {"S": "Bucket"},
            "namespace": {"S": ACME},
            "consumed_rpm": {"N": "7"},
        }
    )
    for _ in range(2):
        with pytest.raises(DataError, match="'acme#BUCKET#eve#gpt#00' cannot be read"):
            counting.count()


def test_a_feed_that_was_trimmed_is_gone_on_with_knowingly(counting: Counting) -> None:
    if counting.place.name != "engine":
        pytest.skip("the clock of a server is its own")
    counting.consume(DAY, rpm=1_000)
    counting.count()
    for _ in range(2):
        counting.consume(DAY, rpm=10_000)
        counting.place.clock.seconds += 25 * 3600
    counting.consume(DAY, rpm=200_000)
    with pytest.raises(FeedTrimmed, match="recover=True; the usage in between is not known"):
        counting.count()
    counting.count(recover=True)
    assert counting.rows("hour") == {DAY: {"events": 2, "rpm": 201_000}}


class Enough(Exception):
    """The test has seen what it waited for."""


def test_a_job_that_follows_counts_what_comes_later(counting: Counting) -> None:
    counting.consume(DAY, rpm=1_000)
    seen: list[int] = []

    def progress(done: AggregateResult) -> None:
        seen.append(done.records)
        if len(seen) == 3:
            raise Enough
        counting.consume(DAY, rpm=1_000)

    with pytest.raises(Enough):
        counting.count(follow=True, poll_seconds=0.0, progress=progress)
    assert seen == [1, 2, 3]
    assert counting.rows("hour") == {DAY: {"events": 3, "rpm": 3_000}}


def test_an_awaited_job_can_be_cancelled_and_goes_on_later(place: Place) -> None:
    counting = Counting(place, "async", place.arun)
    counting.consume(DAY, rpm=1_000)

    async def for_a_while() -> None:
        seen: list[int] = []
        job = asyncio.create_task(
            aggregate_async(
                place.adb, follow=True, poll_seconds=0.001, progress=lambda done: seen.append(done.records)
            )
        )
        await wait_until_async(lambda: seen)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    place.wait(for_a_while())
    counting.consume(DAY, rpm=2_000)
    counting.count()
    assert counting.rows("hour") == {DAY: {"events": 2, "rpm": 3_000}}


def test_a_stream_that_was_turned_off_and_on_has_new_checkpoints(counting: Counting) -> None:
    if counting.place.name != "engine":
        pytest.skip("a stream of a server cannot be moved on by a clock")
    counting.consume(DAY, rpm=1_000)
    counting.count()
    for specification in ({"StreamEnabled": False}, STREAM):
        members = {"TableName": counting.place.table, "StreamSpecification": specification}
        counting.place.engine.handle(Control(operation="UpdateTable", members=members))
        counting.place.clock.seconds += 1
    counting.consume(DAY, rpm=2_000)
    with pytest.raises(FeedTrimmed):
        counting.count()
    counting.count(recover=True)
    assert counting.rows("hour") == {DAY: {"events": 2, "rpm": 3_000}}
    assert len(counting.place.raw("_usage")) == 2


def test_what_leases_consume_adjust_and_give_back_is_what_usage_says(counting: Counting, mode: Mode) -> None:
    limits = [Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)]
    limiter_, clock = either(counting.place, mode, limits=limits), counting.place.clock
    clock.seconds = (DAY + HOUR - timedelta(seconds=10)).timestamp()
    with limiter_.acquire("ann", "gpt", {"rpm": 1, "tpm": 500}) as lease:
        lease.consume(tpm=100)
        lease.adjust(tpm=50)
    with limiter_.acquire("ann", "gpt", {"rpm": 1, "tpm": 500}) as lease:
        clock.seconds += 10
        lease.release(tpm=200)

    def work() -> None:
        with limiter_.acquire("ann", "gpt", {"rpm": 1, "tpm": 700}):
            # What was refused is not consumed, and what an error gives back is not either.
            with pytest.raises(RateLimitExceeded), limiter_.acquire("ann", "gpt", {"tpm": 9_999}):
                pass
            raise Enough

    with pytest.raises(Enough):
        work()
    counting.count()
    found = limiter_.usage(entity="ann", resource="gpt", window="hour")
    assert [(row.start - DAY, row.tokens) for row in found] == [
        (timedelta(0), {"rpm": 2, "tpm": 1_150}),
        (HOUR, {"rpm": 0, "tpm": -200}),
    ]
    summary = limiter_.usage_summary(entity="ann", window="day")
    assert {name: each.total for name, each in summary.limits.items()} == {"rpm": 2, "tpm": 950}
