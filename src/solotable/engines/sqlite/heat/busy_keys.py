"""The busiest keys of a stream in bounded memory: Space-Saving in batches.

Up to `capacity` keys are counted exactly. When there are twice as many, the smaller half is dropped. A key
that comes later starts with the credit of the largest dropped one, so that a key which returns often is not
dropped again and again. Its units are between `units` and `units + credit`, and the credit is at most about
twice the sum of all units divided by the capacity.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from solotable._protocol.heat import PartitionTraffic, Traffic

#: The value of a partition key: its content, several for an index with several attributes, None for Scans.
Content = str | tuple[str, ...] | None


class BusyKey:
    """The traffic of one key."""

    __slots__ = ("credit", "read_over", "read_peak", "reads", "write_over", "write_peak", "writes")

    def __init__(self, credit: float) -> None:
        self.credit = credit
        self.reads = self.read_peak = self.read_over = 0.0
        self.writes = self.write_peak = self.write_over = 0.0

    def add_reads(self, units: float, limit: float) -> None:
        """Add the reads of one second."""
        self.reads += units
        self.read_peak = max(self.read_peak, units)
        if units > limit:
            self.read_over += units - limit

    def add_writes(self, units: float, limit: float) -> None:
        """Add the writes of one second."""
        self.writes += units
        self.write_peak = max(self.write_peak, units)
        if units > limit:
            self.write_over += units - limit

    @property
    def most(self) -> float:
        """The most units that the key can have."""
        return self.reads + self.writes + self.credit

    def to_traffic(self, names: Iterable[tuple[str, str]], content: Content) -> PartitionTraffic:
        """Return the record of the key; `names` are the attributes of the partition key and their types."""
        contents = (content,) if isinstance(content, str) else content
        return PartitionTraffic(
            key=None
            if contents is None
            else {name: {kind: each} for (name, kind), each in zip(names, contents, strict=True)},
            reads=Traffic(units=self.reads, peak=self.read_peak, over=self.read_over),
            writes=Traffic(units=self.writes, peak=self.write_peak, over=self.write_over),
            error=self.credit,
        )


class BusyKeys:
    """The busiest keys of one table or index in one minute."""

    __slots__ = ("_capacity", "_floor", "found", "read_units", "write_units")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._floor = 0.0
        self.found: dict[Content, BusyKey] = {}
        #: The units of all keys, also of those that were dropped.
        self.read_units = 0.0
        self.write_units = 0.0

    def key(self, content: Content) -> BusyKey:
        """Return the counters of a key, and begin to count it if it is new."""
        found = self.found.get(content)
        if found is None:
            if len(self.found) >= 2 * self._capacity:
                self.trim(self._capacity)
            found = self.found[content] = BusyKey(self._floor)
        return found

    def copy(self) -> BusyKeys:
        """Return an independent copy."""
        other = BusyKeys(self._capacity)
        other._floor = self._floor
        other.found = {content: copy(key) for content, key in self.found.items()}
        other.read_units, other.write_units = self.read_units, self.write_units
        return other

    def trim(self, count: int) -> None:
        """Drop all keys but the busiest ones."""
        if len(self.found) <= count:
            return
        ranked = sorted(self.found.items(), key=lambda entry: entry[1].most, reverse=True)
        self.found = dict(ranked[:count])
        self._floor = max(self._floor, ranked[count][1].most)
