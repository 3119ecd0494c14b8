"""Usage without a table: windows, folding, what fits into a transaction, summaries and the chart."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from solotable._connect import over
from solotable._flows.feed.streams import Record
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._store.runner import run
from solotable._values import Item
from solotable.engines import sqlite
from solotable.errors import DataError
from solotable.systems.ledger import StreamShard
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.meters.token_bucket import TokenBucket
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import Usage, UsageRow, UsageSummary, Window
from solotable.systems.limiter.usage import windows as w
from solotable.systems.limiter.usage.chart import chart
from solotable.systems.limiter.usage.deltas import RowKey, fold, is_consumption
from solotable.systems.limiter.usage.ledger import USAGE
from solotable.urls import Url

from .consuming import RULES, bucket_key, micros

DAY = datetime(2035, 1, 1, tzinfo=UTC)
#: So that no clock of an engine expires anything.
CLOCK: Callable[[], float] = DAY.timestamp


def image(
    at: datetime, entity: str = "ann", resource: str = "gpt", shard: int = 0, /, **counters: int
) -> Item:
    """Return a bucket's item; counters are given by their full names."""
    return {
        **bucket_key(entity, resource, shard),
        limiter.internal_tag: {"S": "Bucket"},
        "namespace": {"S": "acme"},
        "entity": {"S": entity},
        "resource": {"S": resource},
        "rules": {"S": RULES},
        "at": {"N": str(micros(at))},
        **{name: {"N": str(value)} for name, value in counters.items()},
    }


def record(sequence: int, before: Item | None, after: Item | None) -> Record:
    kind: Any = "inserted" if before is None else "removed" if after is None else "modified"
    return Record(
        table=limiter,
        shard="s1",
        sequence=f"{sequence:021d}",
        # Never what usage is dated by.
        at=datetime(2001, 1, 1, tzinfo=UTC),
        kind=kind,
        before=before,
        after=after,
        by_ttl=False,
    )


def slot(window: Window, start: datetime, entity: str = "ann", resource: str = "gpt") -> RowKey:
    return RowKey("acme", entity, resource, window, start)


def folded(*records: Record) -> dict[tuple[str, datetime], dict[str, int]]:
    return {(each.window, each.start): amounts for each, amounts in fold(records).items()}


@pytest.mark.parametrize(
    ("window", "start", "end"),
    [
        ("hour", "2024-02-29T23:00", "2024-03-01T00:00"),
        ("day", "2024-02-29T00:00", "2024-03-01T00:00"),
        ("month", "2024-02-01T00:00", "2024-03-01T00:00"),
        ("month", "2024-12-01T00:00", "2025-01-01T00:00"),
        ("day", "2024-12-31T00:00", "2025-01-01T00:00"),
    ],
)
def test_a_window_is_from_its_start_up_to_the_next(window: Window, start: str, end: str) -> None:
    first, after = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    last = after - timedelta(microseconds=1)
    assert w.floor(window, first) == w.floor(window, last) == first
    assert w.floor(window, after) == after == w.following(window, first)
    assert w.ceiling(window, first) == first
    assert w.ceiling(window, first + timedelta(microseconds=1)) == w.ceiling(window, last) == after
    assert w.preceding(window, after) == first
    assert w.count(window, first, after) == 1
    assert dict(w.starts_at(micros(last)))[window] == first
    assert dict(w.starts_at(micros(after)))[window] == after


@pytest.mark.parametrize("window", w.WINDOWS)
def test_the_edges_of_the_calendar_are_refused_in_one_sentence(window: Window) -> None:
    first, last = "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:00+00:00"
    with pytest.raises(DataError, match="is at the edge of the calendar"):
        w.floor(window, datetime.fromisoformat(first))
    with pytest.raises(DataError, match="is at the edge of the calendar"):
        w.ceiling(window, datetime.fromisoformat(last))


def test_windows_are_utc_whatever_zone_a_moment_has() -> None:
    there = timezone(timedelta(hours=5, minutes=30))
    assert w.floor("day", datetime(2026, 3, 1, 2, tzinfo=there)) == datetime(2026, 2, 28, tzinfo=UTC)
    with pytest.raises(DataError, match="no time zone"):
        w.floor("day", datetime(2026, 3, 1))


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2200, 1, 1)), st.integers(1, 1500))
def test_counting_windows_is_walking_over_them(moment: datetime, hours: int) -> None:
    since = moment.replace(tzinfo=UTC)
    for window in w.WINDOWS:
        start = w.floor(window, since)
        until = w.floor(window, since + timedelta(hours=hours))
        walked, at = 0, start
        while at < until:
            walked, at = walked + 1, w.following(window, at)
        assert (at, w.count(window, start, until)) == (until, walked)


def test_rows_are_kept_for_90_days_after_their_window_and_months_for_400() -> None:
    assert w.expiry("hour", DAY) == DAY + timedelta(days=90, hours=1)
    assert w.expiry("day", DAY) == DAY + timedelta(days=91)
    assert w.expiry("month", DAY) == DAY + timedelta(days=431)


def test_c1_9_an_hour_and_a_day_that_begin_together_are_two_rows() -> None:
    early, late = DAY + timedelta(minutes=30), DAY + timedelta(hours=5, minutes=30)
    one = image(early, consumed_rpm=10_000)
    found = folded(record(1, None, one), record(2, one, image(late, consumed_rpm=17_000)))
    assert found == {
        ("hour", DAY): {"events": 1, "tokens_rpm": 10_000},
        ("hour", DAY + timedelta(hours=5)): {"events": 1, "tokens_rpm": 7_000},
        ("day", DAY): {"events": 2, "tokens_rpm": 17_000},
        ("month", DAY): {"events": 2, "tokens_rpm": 17_000},
    }
    keys = {
        repr(UsageRow(**each._asdict()).plan().key_from(each._asdict()))
        for each in fold([record(1, None, one)])
    }
    assert len(keys) == 3


def test_c1_10_usage_is_dated_by_the_write_that_consumed() -> None:
    # The state before is hours old, and the stream tells another time still.
    before = image(DAY - timedelta(hours=7), consumed_rpm=1_000)
    found = folded(record(1, before, image(DAY, consumed_rpm=3_000)))
    assert {start for window, start in found if window == "hour"} == {DAY}
    assert found["month", DAY] == {"events": 1, "tokens_rpm": 2_000}


@pytest.mark.parametrize(
    ("at", "hour", "day", "month"),
    [
        (DAY, DAY, DAY, DAY),
        (
            DAY - timedelta(microseconds=1),
            DAY - timedelta(hours=1),
            DAY - timedelta(days=1),
            datetime(2034, 12, 1, tzinfo=UTC),
        ),
    ],
)
def test_c1_10_the_edge_of_a_window_is_the_next_ones(
    at: datetime, hour: datetime, day: datetime, month: datetime
) -> None:
    found = folded(record(1, None, image(at, consumed_rpm=1)))
    assert set(found) == {("hour", hour), ("day", day), ("month", month)}


def test_c1_11_a_bucket_counts_from_its_first_image_and_again_after_it_expired() -> None:
    first, second = image(DAY, consumed_rpm=4_000), image(DAY, consumed_rpm=2_000)
    records = [record(1, None, first), record(2, first, None), record(3, None, second)]
    assert folded(*records)["day", DAY] == {"events": 2, "tokens_rpm": 6_000}
    assert not is_consumption(records[1])


def test_s1_10_consumption_is_the_counters_never_a_difference_of_tokens() -> None:
    # 10M tokens a minute; 100 ms pass, in which 1,000 tokens are consumed and 16,667 flow in.
    token_bucket = TokenBucket.of(Limit.per_minute("tpm", 10_000_000))
    start, end = micros(DAY), micros(DAY) + 100_000
    used = start * token_bucket.rate - token_bucket.depth // 2
    after_use = used + token_bucket.cost(1_000_000)
    naive = token_bucket.tokens(used, start) - token_bucket.tokens(after_use, end)
    assert round(naive / 1000) == -15_667
    before = image(DAY, used_tpm=used, consumed_tpm=5_000_000)
    after = image(DAY + timedelta(milliseconds=100), used_tpm=after_use, consumed_tpm=6_000_000)
    assert folded(record(1, before, after))["hour", DAY]["tokens_tpm"] == 1_000_000


def test_what_is_given_back_is_subtracted_where_it_is_given_back() -> None:
    late = DAY + timedelta(hours=1)
    one = image(DAY, consumed_rpm=5_000, consumed_tpm=900)
    found = folded(record(1, None, one), record(2, one, image(late, consumed_rpm=3_000, consumed_tpm=900)))
    assert found["hour", DAY] == {"events": 1, "tokens_rpm": 5_000, "tokens_tpm": 900}
    assert found["hour", late] == {"events": 1, "tokens_rpm": -2_000}
    assert found["day", DAY] == {"events": 2, "tokens_rpm": 3_000, "tokens_tpm": 900}


def test_a_write_that_consumes_nothing_is_not_an_event() -> None:
    one = image(DAY, used_rpm=5, consumed_rpm=5_000)
    fresh_shard = record(1, None, image(DAY, "ann", "gpt", 1, used_rpm=5, consumed_rpm=0))
    recast = record(2, one, {**one, "rules": {"S": "rpm=1/1"}, "used_rpm": {"N": "77"}})
    # A limit that a bucket no longer has gives nothing back.
    dropped = record(3, one, {name: value for name, value in one.items() if name != "consumed_rpm"})
    foreign = record(4, None, {**one, limiter.internal_tag: {"S": "Usage"}})
    assert fold([fresh_shard, recast, dropped, foreign]) == {}
    assert not any(map(is_consumption, [fresh_shard, recast, dropped, foreign]))


@pytest.mark.parametrize(
    "wrong",
    [{"at": {"N": "1e40"}}, {"at": {"S": "x"}}, {"consumed_rpm": {"S": "1"}}, {"consumed_rpm": {"N": "1.5"}}],
)
def test_a_bucket_that_cannot_be_read_is_refused_by_its_key(wrong: Item) -> None:
    with pytest.raises(DataError, match=r"change 0+1 of bucket 'acme#BUCKET#ann#gpt#00' cannot be read"):
        fold([record(1, None, {**image(DAY, consumed_rpm=1), **wrong})])


def test_a_transaction_has_at_most_99_rows_and_its_mark() -> None:
    records = [record(n, None, image(DAY, f"user-{n}", consumed_rpm=1)) for n in range(1, 101)]
    sizes, at = [], 0
    while at < len(records):
        rows, at = USAGE.fill_transaction(records, at)
        sizes.append(len(rows))
    assert sizes == [99, 99, 99, 3]
    # Another hour of the same day would be the hundredth row.
    one, late = (
        image(DAY, "user-1", consumed_rpm=1),
        image(DAY + timedelta(hours=1), "user-1", consumed_rpm=2),
    )
    rows, end = USAGE.fill_transaction([*records[:33], record(34, one, late)], 0)
    assert (len(rows), end) == (99, 33)


def test_many_records_of_few_buckets_are_few_rows() -> None:
    images = [image(DAY, consumed_rpm=n) for n in range(1, 1002)]
    records = [record(n, images[n - 1], images[n]) for n in range(1, 1001)]
    rows, end = USAGE.fill_transaction(records, 0)
    assert (end, len(rows)) == (1000, 3)
    assert rows[slot("hour", DAY)] == {"events": 1000, "tokens_rpm": 1000}


def test_an_update_of_a_row_stays_within_the_operators_that_dynamodb_takes() -> None:
    # Names of limits are whatever calls gave.
    records = [record(n, None, image(DAY, **{f"consumed_l{n}": 1})) for n in range(1, 151)]
    rows, end = USAGE.fill_transaction(records, 0)
    assert (end, max(map(len, rows.values()))) == (99, 100)
    assert USAGE.fill_transaction(records, end)[1] == 150


buckets = st.tuples(st.sampled_from(["ann", "bob"]), st.sampled_from(["gpt", "api"]), st.integers(0, 1))
edges = st.tuples(st.sampled_from([0, 1, 23, 24, 31 * 24]), st.sampled_from([-1, 0, 1, 1_800_000_000]))
steps = st.lists(
    st.tuples(
        buckets,
        edges,
        st.dictionaries(st.sampled_from(["rpm", "tpm"]), st.integers(-2_000, 5_000)),
        # Whether the bucket is removed before.
        st.booleans(),
    ),
    max_size=25,
)


def history(played: list[Any]) -> tuple[list[Record], dict[tuple[Any, ...], dict[str, int]]]:
    """Return the records of some consumptions, and the rows that a plain sum of these gives."""
    records: list[Record] = []
    images: dict[tuple[Any, ...], Item] = {}
    total: dict[tuple[Any, ...], dict[str, int]] = {}
    for bucket, (hours, shift), amounts, removed in played:
        if removed and bucket in images:
            records.append(record(len(records) + 1, images.pop(bucket), None))
        at = DAY + timedelta(hours=hours, microseconds=shift)
        before = images.get(bucket)
        counters = (
            {name: int(before[name]["N"]) for name in before if name[:9] == "consumed_"} if before else {}
        )
        for name, amount in amounts.items():
            counters[f"consumed_{name}"] = counters.get(f"consumed_{name}", 0) + amount
        images[bucket] = image(at, *bucket, **counters)
        records.append(record(len(records) + 1, before, images[bucket]))
        moved = {name: amount for name, amount in amounts.items() if amount}
        starts = (at.strftime("hour%Y-%m-%dT%H"), at.strftime("day%Y-%m-%d"), at.strftime("month%Y-%m"))
        for start in starts if moved else ():
            row = total.setdefault((*bucket[:2], start), {"events": 0})
            row["events"] += 1
            for name, amount in moved.items():
                row[f"tokens_{name}"] = row.get(f"tokens_{name}", 0) + amount
    return records, total


def shown(items: list[Item]) -> dict[tuple[Any, ...], dict[str, int]]:
    """Return stored rows as `history` has them."""
    width = {"hour": 13, "day": 10, "month": 7}
    return {
        (
            item["entity"]["S"],
            item["resource"]["S"],
            item["window"]["S"] + item["start"]["S"][: width[item["window"]["S"]]],
        ): {
            name: int(value["N"])
            for name, value in item.items()
            if name == "events" or name.startswith("tokens_")
        }
        for item in items
        if item[limiter.internal_tag] == {"S": "Usage"}
    }


@settings(max_examples=60, deadline=None)
@given(steps, st.lists(st.tuples(st.integers(0, 60), st.integers(1, 12)), max_size=8), st.data())
def test_c1_5_any_batching_and_any_redelivery_give_the_plain_sum(
    played: list[Any], deliveries: list[tuple[int, int]], data: st.DataObject
) -> None:
    records, total = history(played)
    records = [each for each in records if is_consumption(each)]
    place = StreamShard("arn:aws:dynamodb:us-east-1:1:table/Limiter/stream/x", "s1")
    with sqlite.open(sqlite.MEMORY, clock=CLOCK) as engine:
        found = over(engine, [limiter], Url("sqlite", "test"), clock=CLOCK)
        scope = found.scope.of_admin()
        booked = behind = 0
        for back, size in deliveries:
            # A feed goes back as far as it likes, and never skips.
            start = max(0, behind - back)
            part = records[start : start + size]
            done = run(USAGE.write(scope, place, part), engine)
            assert done.records + done.skipped == len(part)
            booked, behind = booked + done.records, max(behind, start + len(part))
        booked += run(USAGE.write(scope, place, records[data.draw(st.integers(0, behind)) :]), engine).records
        stored = engine.handle(Scan(table=scope.table(limiter), consistent=True))
        assert shown(list(decode_items(stored.items or ()))) == total
    assert booked == len(records)


def test_c1_5_a_mark_is_of_one_shard_of_one_stream() -> None:
    records = [record(1, None, image(DAY, consumed_rpm=5))]
    places = [StreamShard("stream/1", "s1"), StreamShard("stream/1", "s2"), StreamShard("stream/2", "s1")]
    with sqlite.open(sqlite.MEMORY, clock=CLOCK) as engine:
        scope = over(engine, [limiter], Url("sqlite", "test"), clock=CLOCK).scope.of_admin()
        done = [run(USAGE.write(scope, place, records), engine).records for place in (*places, *places)]
        stored = engine.handle(Scan(table=scope.table(limiter), consistent=True))
        found = shown(list(decode_items(stored.items or ())))
    assert done == [1, 1, 1, 0, 0, 0]
    assert set(map(repr, found.values())) == {repr({"events": 3, "tokens_rpm": 15})}


def rows(*amounts: tuple[int, int], window: Window = "hour", entity: str = "ann") -> list[Usage]:
    """Return rows of hours with these amounts of rpm."""
    return [
        Usage(
            entity=entity,
            resource="gpt",
            window=window,
            start=DAY + timedelta(hours=hour),
            events=1,
            millitokens={"rpm": amount},
        )
        for hour, amount in amounts
    ]


def test_a_summary_has_totals_means_and_peaks_over_all_windows() -> None:
    several = [*rows((0, 4_000), (3, 6_000)), *rows((0, 3_500), entity="bob")]
    found = UsageSummary.of(several, window="hour", since=DAY, until=DAY + timedelta(hours=5))
    rpm = found.limits["rpm"]
    assert (found.windows, found.events) == (5, 3)
    assert (rpm.total, rpm.mean, rpm.peak, rpm.peak_at) == (13.5, 2.7, 7.5, DAY)
    assert found.as_dict()["limits"] == {
        "rpm": {"total": 13.5, "mean": 2.7, "peak": 7.5, "peak_at": "2035-01-01T00:00:00+00:00"}
    }
    # Without a beginning it begins with the first row, and a row after its end moves the end.
    open_ended = UsageSummary.of(several, window="hour", since=None, until=DAY + timedelta(hours=1))
    assert (open_ended.since, open_ended.until, open_ended.windows) == (DAY, DAY + timedelta(hours=4), 4)


def test_a_summary_of_nothing_is_zero() -> None:
    found = UsageSummary.of([], window="day", since=None, until=DAY)
    assert (found.windows, found.events, found.limits, found.since) == (0, 0, {}, None)
    assert found.as_dict()["since"] is None


def test_usage_as_json_has_tokens() -> None:
    (row,) = rows((0, 1_500))
    assert row.as_dict() == {
        "entity": "ann",
        "resource": "gpt",
        "window": "hour",
        "start": "2035-01-01T00:00:00+00:00",
        "end": "2035-01-01T01:00:00+00:00",
        "events": 1,
        "tokens": {"rpm": 1.5},
    }


def drawn(renderable: RenderableType) -> list[str]:
    console = Console(width=100, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return [line.rstrip() for line in captured.get().splitlines()]


def test_a_chart_has_a_bar_for_each_window_also_for_empty_ones() -> None:
    lines = drawn(chart([*rows((0, 4_000), (2, 8_000), (3, -1_500)), *rows((0, 0), entity="bob")], width=10))
    assert lines[0] == "rpm: 10.5 tokens"
    assert [line.split()[1] for line in lines[1:]] == ["00:00", "01:00", "02:00", "03:00"]
    assert [line.count("█") for line in lines[1:]] == [5, 0, 10, 0]
    assert [line.split()[-1] for line in lines[1:]] == ["4", "0", "8", "-1.5"]


def test_a_chart_of_much_time_says_what_it_leaves_out() -> None:
    lines = drawn(chart(rows((0, 1_000), (999, 1_000))))
    assert len(lines) == 122
    assert lines[-1] == "880 earlier windows are not shown."


def test_a_chart_of_nothing_says_so() -> None:
    assert drawn(chart([])) == drawn(chart(rows((0, 5)), limit="tpm")) == ["No usage in this time."]
