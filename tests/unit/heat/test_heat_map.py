"""Heat maps and their advice: columns, rows, limits, Scans, and what to do."""

from __future__ import annotations

import pytest

from solotable.heat import (
    Direction,
    HeatInterval,
    HeatLog,
    HeatMap,
    PartitionTraffic,
    Traffic,
    advise,
    build_heat_map,
)
from solotable.heat.heat_map import label_of

NOW = 1_800_000_000


def partition(key: str | None, units: float, peak: float, over: float = 0.0) -> PartitionTraffic:
    shown = None if key is None else {"PK": {"S": key}}
    traffic = Traffic(units=units, peak=peak, over=over)
    return PartitionTraffic(key=shown, writes=traffic, reads=traffic)


def minute(back: int, *partitions: PartitionTraffic, index: str | None = None) -> HeatInterval:
    return HeatInterval(
        start=NOW - 60 * back,
        table="Shop",
        index=index,
        read_units=sum(each.reads.units for each in partitions),
        write_units=sum(each.writes.units for each in partitions),
        partitions=partitions,
    )


def heat_of(*intervals: HeatInterval, by: Direction = "write", seconds: int = 3600) -> HeatMap:
    return build_heat_map(HeatLog(intervals=intervals), "Shop", by, until=NOW, seconds=seconds)


def test_rows_are_partitions_by_their_peak_with_a_cell_for_each_minute() -> None:
    heat = heat_of(
        minute(2, partition("a", 10, 4), partition("b", 90, 3)),
        minute(1, partition("a", 5, 5)),
        minute(1, partition("a", 1, 1), index="GSI1"),
        minute(90, partition("old", 1000, 1000)),
    )
    assert [(row.index, row.label, row.peak, row.units) for row in heat.rows] == [
        (None, "a", 5, 15),
        (None, "b", 3, 90),
        ("GSI1", "a", 1, 1),
    ]
    assert heat.rows[0].cells == (*[0.0] * 58, 4, 5)
    assert heat.rows[0].peak_at == NOW - 60
    assert (len(heat.columns), heat.columns[-1], heat.units, heat.minutes) == (60, NOW - 60, 106, 2)
    assert (heat.first_over, heat.last_over, heat.share_shown) == (None, None, 1.0)


def test_a_long_range_has_wider_columns_and_hours_fill_theirs() -> None:
    hour = HeatInterval(
        start=NOW - 3 * 86_400, seconds=3600, table="Shop", write_units=7, partitions=(partition("a", 7, 2),)
    )
    heat = heat_of(hour, minute(1, partition("a", 1, 1)), seconds=7 * 86_400)
    assert heat.column_seconds == 168 * 60
    assert sum(cell > 0 for cell in heat.rows[0].cells) in (2, 3)
    assert heat.rows[0].units == 8


def test_a_hot_partition_is_to_be_sharded_and_its_burst_spread() -> None:
    busy = [minute(back, partition("a", 100, 10)) for back in range(2, 30)]
    heat = heat_of(*busy, minute(1, partition("a", 4000, 2500, 1500)))
    shard, spread = advise(heat)
    assert (shard.severity, shard.title, shard.code) == (
        "bad",
        "Shard a by 3 or more",
        "key = Key(..., ..., shards=6)",
    )
    assert (spread.severity, spread.title) == ("warn", "Spread the burst")
    assert (heat.over, heat.first_over, heat.last_over) == (1500, NOW - 60, NOW - 60)


def test_hot_reads_are_to_be_cached() -> None:
    titles = [each.title for each in advise(heat_of(minute(1, partition("a", 4000, 3100)), by="read"))]
    assert titles[:2] == ["Shard a by 2 or more", "Cache the reads of a"]


def test_scans_are_a_row_that_is_never_a_hot_partition() -> None:
    heat = heat_of(minute(1, partition(None, 9000, 9000, 6000), partition("a", 1, 1)), by="read")
    assert (heat.hottest and heat.hottest.label, heat.first_over, heat.over) == ("a", None, 0)
    assert (heat.partitions, heat.scan_units) == (1, 9000)
    assert [each.title for each in advise(heat)] == ["Scans read 100% of the units"]


@pytest.mark.parametrize(("peak", "expected"), [(0.5, "Writes are cool"), (700, "a is warm")])
def test_advice_below_the_limit(peak: float, expected: str) -> None:
    assert [each.title for each in advise(heat_of(minute(1, partition("a", peak, peak))))] == [expected]


def test_no_traffic_is_cool() -> None:
    assert [each.severity for each in advise(heat_of())] == ["ok"]


def test_the_label_of_a_key_with_several_attributes() -> None:
    assert label_of({"a": {"S": "x"}, "b": {"N": "1"}}) == "x, 1"
