"""Count the capacity units of requests by partition key, second by second, in bounded memory.

A request only appends a record to a list. When the second ends or the list is long, the records are added up.
The busiest second of each minute is kept, because a partition is throttled by the second.

The first 1,024 reads and writes of each second are counted one by one. Of the others, one in 16 is
counted for 16, at random. So counting takes little of a request under full load,
and little of a core otherwise. The recorder waits for no disk and raises no error.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from itertools import cycle
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from solotable._protocol.heat import MINUTE, READ_LIMIT, WRITE_LIMIT, HeatInterval, HeatLog
from solotable.fork_safe import new_lock

from .busy_keys import BusyKeys, Content
from .charges import multiply

if TYPE_CHECKING:
    from solotable.engines.sqlite.tables.catalog import Index, Table

#: The table, the index (None for the table itself), the partition key, the units, and whether it is a write.
HeatRecord = tuple["Table", "Index | None", Content, float, bool]

#: The most records before they are added up.
_MOST_RECORDS: Final = 2048
#: The most keys of one second; beyond that, the smaller half is added to the minute early.
_MOST_KEYS_OF_SECOND: Final = 8192
#: The keys that are counted exactly, in each table or index and minute.
_CAPACITY: Final = 512
#: The keys of a finished minute, in each table or index.
_KEYS_OF_MINUTE: Final = 100
_MINUTES: Final = 60
#: How many reads, and how many writes, of a second are counted one by one.
_EXACT: Final = 1024
#: Of the others, one in so many is counted.
_SAMPLE: Final = 16
#: The tables and indexes of one minute.
_MOST_SERIES: Final = 200


class _Series:
    """A table or index in one minute."""

    __slots__ = ("busy", "index", "names", "table")

    def __init__(self, table: Table, index: Index | None) -> None:
        schema = table.schema if index is None else index.schema
        self.table = table.name
        self.index = None if index is None else index.name
        self.names = tuple((part.name, part.kind) for part in schema.partition)
        self.busy = BusyKeys(_CAPACITY)

    def interval(self, start: int, busy: BusyKeys) -> HeatInterval:
        """Return the record of the minute, busiest partitions first."""
        ranked = sorted(busy.found.items(), key=lambda entry: entry[1].most, reverse=True)
        return HeatInterval(
            start=start,
            table=self.table,
            index=self.index,
            read_units=busy.read_units,
            write_units=busy.write_units,
            partitions=tuple(
                key.to_traffic(self.names, content)
                for content, key in ranked[:_KEYS_OF_MINUTE]
                if key.reads or key.writes
            ),
        )


_Minute = dict[tuple[str, str | None], _Series]
_Sums = dict[Content, float]


def _skips(sample: int) -> Callable[[], int]:
    """Return a function that says how many requests to skip, so that one in `sample` is counted.

    The numbers are random: with a fixed one, a program that reads keys in turn would show one of them only.
    """
    skips = [number % (2 * sample - 1) for number in range(33 * (2 * sample - 1))]
    random.shuffle(skips)
    return cycle(skips).__next__


class HeatRecorder:
    """The heat of one engine in this process, for the last hour."""

    __slots__ = (
        "__weakref__",
        "_clock",
        "_end",
        "_exact_reads",
        "_exact_writes",
        "_keys_of_second",
        "_lock",
        "_minute",
        "_minutes",
        "_next_read_skip",
        "_next_write_skip",
        "_records",
        "_second",
        "_start",
        "skip_reads",
        "skip_writes",
    )

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = new_lock()
        self._next_read_skip = _skips(_SAMPLE)
        self._next_write_skip = _skips(_SAMPLE)
        self.forget()
        _recorders.add(self)

    def forget(self) -> None:
        """Drop everything that was counted."""
        self._start = self._end = 0.0
        self._records: list[HeatRecord] = []
        #: How many reads and writes are not counted before the next one is; callers subtract one for each.
        self.skip_reads = self.skip_writes = 0
        self._exact_reads = self._exact_writes = _EXACT
        #: The sums of the current second, by table, index and direction.
        self._second: dict[tuple[str, str | None, bool], tuple[_Series, _Sums]] = {}
        self._keys_of_second = 0
        self._minutes: dict[int, _Minute] = {}
        self._minute = 0

    def add_read(self, table: Table, index: Index | None, content: Content, units: float) -> None:
        """Count a read; the caller has checked that `skip_reads` is 0."""
        if not self._start <= self._clock() < self._end:
            self._turn()
        if self._exact_reads:
            self._exact_reads -= 1
        else:
            units *= _SAMPLE
            self.skip_reads = self._next_read_skip()
        records = self._records
        records.append((table, index, content, units, False))
        if len(records) >= _MOST_RECORDS:
            self._shorten()

    def add_writes(self, written: list[HeatRecord]) -> None:
        """Count the charges of a write request; the caller has checked that `skip_writes` is 0."""
        if not self._start <= self._clock() < self._end:
            self._turn()
        if self._exact_writes:
            self._exact_writes -= 1
        else:
            multiply(written, _SAMPLE)
            self.skip_writes = self._next_write_skip()
        records = self._records
        records += written
        if len(records) >= _MOST_RECORDS:
            self._shorten()

    def _shorten(self) -> None:
        with self._lock:
            self._sum_up()

    def read(self, since: float = 0.0) -> HeatLog:
        """Return the minutes since a time, with the current one as far as it is counted."""
        with self._lock:
            self._sum_up()
            current = self._current()
            return HeatLog(
                intervals=tuple(
                    series.interval(start, current.get(id(series), series.busy))
                    for start in sorted(self._minutes)
                    if start + MINUTE > since
                    for series in self._minutes[start].values()
                )
            )

    def _current(self) -> dict[int, BusyKeys]:
        """Return copies with the current second, which continues: to end it here would split its peak."""
        copies: dict[int, BusyKeys] = {}
        for (_, _, is_write), (series, sums) in self._second.items():
            if id(series) not in copies:
                copies[id(series)] = series.busy.copy()
            _add(copies[id(series)], sums.items(), is_write)
        return copies

    def _turn(self) -> None:
        """End the second; the clock may also have been set back."""
        now = int(self._clock())
        with self._lock:
            self._sum_up()
            self._end_second()
            self._start, self._end = float(now), now + 1.0
            self.skip_reads = self.skip_writes = 0
            self._exact_reads = self._exact_writes = _EXACT
            minute = now // MINUTE * MINUTE
            is_over = minute != self._minute
            if is_over:
                self._turn_minute(minute)
        if is_over:
            self.end_minute()

    def end_minute(self) -> None:
        """Do what is to be done once a minute is over."""

    def take(self, *, everything: bool) -> list[HeatInterval]:
        """Remove and return the finished minutes, or also the current one."""
        with self._lock:
            if everything:
                self._sum_up()
                self._end_second()
            starts = sorted(start for start in self._minutes if everything or start != self._minute)
            return [
                series.interval(start, series.busy)
                for start in starts
                for series in self._minutes.pop(start).values()
            ]

    def _turn_minute(self, minute: int) -> None:
        for series in self._minutes.get(self._minute, {}).values():
            series.busy.trim(_KEYS_OF_MINUTE)
        self._minute = minute
        if len(self._minutes) >= _MINUTES:
            # The clock may have been set, so the oldest minutes are not always the farthest.
            kept = sorted(self._minutes, key=lambda start: abs(start - minute))[: _MINUTES - 1]
            self._minutes = {start: self._minutes[start] for start in kept}

    def _sum_up(self) -> None:
        """Add the records to the sums of the second."""
        # Other threads append to the list, so it is never replaced.
        count = len(self._records)
        records = self._records[:count]
        del self._records[:count]
        last: tuple[object, object, bool] = (None, None, False)
        sums: _Sums = {}
        for table, index, content, units, is_write in records:
            if last[0] is not table or last[1] is not index or last[2] is not is_write:
                last = (table, index, is_write)
                sums = self._sums_of(table, index, is_write)
            if content in sums:
                sums[content] += units
            else:
                sums[content] = units
                self._keys_of_second += 1
        if self._keys_of_second > _MOST_KEYS_OF_SECOND:
            self._shrink_second()

    def _sums_of(self, table: Table, index: Index | None, is_write: bool) -> _Sums:
        place = (table.name, None if index is None else index.name, is_write)
        found = self._second.get(place)
        if found is None:
            found = self._second[place] = (self._series_of(table, index), {})
        return found[1]

    def _series_of(self, table: Table, index: Index | None) -> _Series:
        minute = self._minutes.setdefault(self._minute, {})
        place = (table.name, None if index is None else index.name)
        series = minute.get(place)
        if series is None:
            series = _Series(table, index)
            if len(minute) < _MOST_SERIES:
                minute[place] = series
        return series

    def _end_second(self) -> None:
        """Add the sums of the second to the minute."""
        for (_, _, is_write), (series, sums) in self._second.items():
            _add(series.busy, sums.items(), is_write)
        self._second = {}
        self._keys_of_second = 0

    def _shrink_second(self) -> None:
        """Add the smaller sums to the minute now; their keys are not the busiest of this second."""
        self._keys_of_second = 0
        for (_, _, is_write), (series, sums) in self._second.items():
            ranked = sorted(sums.items(), key=lambda entry: entry[1])
            early = ranked[: len(ranked) // 2]
            _add(series.busy, early, is_write)
            for content, _ in early:
                del sums[content]
            self._keys_of_second += len(sums)


def _add(busy: BusyKeys, sums: Iterable[tuple[Content, float]], is_write: bool) -> None:
    for content, units in sums:
        key = busy.key(content)
        if is_write:
            busy.write_units += units
            key.add_writes(units, WRITE_LIMIT)
        else:
            busy.read_units += units
            key.add_reads(units, READ_LIMIT)


_recorders: WeakSet[HeatRecorder] = WeakSet()


def _forget_after_fork() -> None:
    # The parent reports the requests of the parent.
    for each in tuple(_recorders):
        each.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
