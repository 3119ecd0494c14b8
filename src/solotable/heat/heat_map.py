"""Arrange recorded heat as a map: partitions by time, hottest first, with the limit of a partition.

Cells hold the busiest second of their column, because a partition is throttled by the second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from solotable._protocol.heat import (
    MINUTE,
    READ_LIMIT,
    WRITE_LIMIT,
    HeatInterval,
    HeatLog,
    PartitionTraffic,
    Traffic,
)
from solotable._values import Item

Direction = Literal["read", "write"]

#: The label of a row that holds the traffic of Scans.
SCANS = "(scans)"
#: The steps of `shade`; the last one is at the limit.
STEPS = 7
_EMPTY = Traffic()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """One partition of a table or index."""

    #: None for the table itself.
    index: str | None
    #: The attributes of the partition key in DynamoDB JSON; None for Scans.
    key: Item | None
    #: The units of the busiest second in each column.
    cells: tuple[float, ...]
    peak: float
    #: The start of the column with the peak, in seconds since the epoch.
    peak_at: int
    units: float
    #: The units beyond the limit, second by second: DynamoDB would have throttled most of them.
    over: float
    #: How many columns reach the limit.
    columns_over: int
    #: How many units the partition may have beyond `units`.
    error: float = 0.0

    @property
    def label(self) -> str:
        """The values of the partition key as text."""
        return label_of(self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The partitions of one table and its indexes by time, hottest first."""

    table: str
    direction: Direction
    #: The units per second of one partition on AWS.
    limit: float
    #: The start of each column, in seconds since the epoch.
    columns: tuple[int, ...]
    column_seconds: int
    rows: tuple[HeatRow, ...]
    #: How many partitions were recorded, also those that are not in `rows`.
    partitions: int
    #: All units, also of partitions that were not recorded.
    units: float
    #: The part of `units` that was read or written by Scans.
    scan_units: float
    #: The units beyond the limit, of all partitions.
    over: float
    #: The first and the last column with a second at or over the limit; None without one.
    first_over: int | None
    last_over: int | None
    #: How many minutes of the range have any traffic.
    minutes: int

    @property
    def hottest(self) -> HeatRow | None:
        """The row with the highest peak that is a partition."""
        return next((row for row in self.rows if row.key is not None), None)

    @property
    def share_shown(self) -> float:
        """The part of all units that the rows have, from 0 to 1."""
        return min(1.0, sum(row.units for row in self.rows) / self.units) if self.units else 1.0


def label_of(key: Item | None) -> str:
    """Return the values of a partition key as text; several are joined with a comma.

    >>> label_of({"PK": {"S": "TENANT#acme"}})
    'TENANT#acme'
    """
    if key is None:
        return SCANS
    return ", ".join(str(content) for value in key.values() for content in value.values())


def shade(value: float, limit: float) -> int:
    """Return the step of a cell from 0 (none) to 7 (at the limit or over), by the square root.

    >>> [shade(value, 1000.0) for value in (0, 1, 40, 250, 999, 1000)]
    [0, 1, 2, 4, 6, 7]
    """
    if value <= 0:
        return 0
    if value >= limit:
        return STEPS
    return 1 + int(math.sqrt(value / limit) * (STEPS - 1))


def build_heat_map(
    log: HeatLog,
    table: str,
    direction: Direction = "write",
    *,
    until: float,
    seconds: int = 60 * MINUTE,
    columns: int = 60,
    top: int = 20,
) -> HeatMap:
    """Arrange the heat of one table in the `seconds` before `until`.

    A column is at least a minute, and as long as the recorded intervals are.
    """
    width = max(MINUTE, -(-seconds // columns // MINUTE) * MINUTE)
    count = max(1, -(-seconds // width))
    end = -(-math.ceil(until) // width) * width
    starts = tuple(range(end - count * width, end, width))
    found = [each for each in log.intervals if each.table == table and _overlaps(each, starts[0], end)]
    limit = WRITE_LIMIT if direction == "write" else READ_LIMIT
    partitions = _by_partition(found, direction)
    rows = [_row(index, cells, starts, width, limit) for index, cells in partitions]
    rows.sort(key=lambda row: (-row.peak, -row.units, row.label))
    hot = [
        start
        for row in rows
        if row.columns_over
        for start, cell in zip(starts, row.cells, strict=True)
        if cell >= limit
    ]
    return HeatMap(
        table=table,
        direction=direction,
        limit=limit,
        columns=starts,
        column_seconds=width,
        rows=tuple(rows[:top]),
        partitions=sum(row.key is not None for row in rows),
        units=sum(each.write_units if direction == "write" else each.read_units for each in found),
        scan_units=sum(row.units for row in rows if row.key is None),
        over=sum(row.over for row in rows),
        first_over=min(hot, default=None),
        last_over=max(hot, default=None),
        minutes=len(
            {start for each in found for start in range(each.start, each.start + each.seconds, MINUTE)}
        ),
    )


def _overlaps(interval: HeatInterval, start: int, end: int) -> bool:
    return interval.start < end and interval.start + interval.seconds > start


#: The intervals of one partition: start, seconds, traffic, error, and the key.
_Cells = list[tuple[HeatInterval, PartitionTraffic, Traffic]]


def _by_partition(found: Iterable[HeatInterval], direction: Direction) -> list[tuple[str | None, _Cells]]:
    grouped: dict[tuple[str | None, str], _Cells] = {}
    for interval in found:
        for partition in interval.partitions:
            traffic = partition.writes if direction == "write" else partition.reads
            if traffic.units:
                place = (interval.index, repr(partition.key))
                grouped.setdefault(place, []).append((interval, partition, traffic))
    return [(index, cells) for (index, _), cells in grouped.items()]


def _row(index: str | None, cells: _Cells, starts: tuple[int, ...], width: int, limit: float) -> HeatRow:
    peaks = [0.0] * len(starts)
    total = _EMPTY
    for interval, _, traffic in cells:
        total += traffic
        first = max(0, (interval.start - starts[0]) // width)
        last = min(len(starts) - 1, (interval.start + interval.seconds - 1 - starts[0]) // width)
        for column in range(first, last + 1):
            peaks[column] = max(peaks[column], traffic.peak)
    is_scan = cells[0][1].key is None
    return HeatRow(
        index=index,
        key=cells[0][1].key,
        cells=tuple(peaks),
        peak=total.peak,
        peak_at=starts[peaks.index(total.peak)],
        units=total.units,
        # A Scan reads many partitions, so its units are not beyond the limit of one.
        over=0.0 if is_scan else total.over,
        columns_over=0 if is_scan else sum(peak >= limit for peak in peaks),
        error=max(partition.error for _, partition, _ in cells),
    )
