"""Records of traffic by partition key and minute; an engine fills them.

Units are capacity units as DynamoDB counts them. The limits are those of one partition on AWS.
"""

from __future__ import annotations

from typing import Final

from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass

#: The units per second that one partition serves on AWS.
READ_LIMIT: Final = 3000.0
WRITE_LIMIT: Final = 1000.0
MINUTE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """The read or the write units of one partition in one interval."""

    units: float = 0.0
    #: The units of the busiest second.
    peak: float = 0.0
    #: The units beyond the limit of a partition, second by second.
    over: float = 0.0

    def __add__(self, other: Traffic) -> Traffic:
        """Return both together: sums, and the larger peak."""
        return Traffic(
            units=self.units + other.units, peak=max(self.peak, other.peak), over=self.over + other.over
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTraffic:
    """The traffic of one partition in one interval."""

    #: The attributes of the partition key; None for Scans, which have no partition.
    key: Item | None
    reads: Traffic = Traffic()
    writes: Traffic = Traffic()
    #: How many units the partition may have beyond those counted: the most that it can have had before the
    #: engine began to count it.
    error: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatInterval:
    """The traffic of a table or an index in one interval: its sum, and the busiest partitions."""

    #: Seconds since the epoch, a multiple of `seconds`.
    start: int
    seconds: int = MINUTE
    table: str
    #: None for the table itself.
    index: str | None = None
    #: The units of all partitions, also of those that `partitions` lacks.
    read_units: float = 0.0
    write_units: float = 0.0
    partitions: tuple[PartitionTraffic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatLog:
    """The recorded intervals of a database, oldest first."""

    intervals: tuple[HeatInterval, ...] = ()
