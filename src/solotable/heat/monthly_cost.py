"""What recorded traffic would cost on AWS in a month: on demand, and provisioned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from solotable._entities.patterns.access_patterns import AccessPattern
from solotable._entities.patterns.cost import SECONDS_PER_MONTH, Prices
from solotable._protocol.heat import HeatLog

from .heat_map import SCANS, label_of

_MILLION = 1_000_000
_HOURS_PER_MONTH = SECONDS_PER_MONTH / 3600
#: Auto scaling keeps capacity at this utilisation by default.
_UTILISATION = 0.7
_OTHERS = "(other keys)"
_PARAMETER = re.compile(r"\\\{[^{}]*\\\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CostLine:
    """The traffic of a table, an index, a pattern or a partition, and its price in dollars a month."""

    label: str
    #: Units in the recorded time.
    read_units: float
    write_units: float
    on_demand: float
    #: None for a pattern or partition, which has no capacity, and without prices.
    provisioned: float | None = None
    #: The capacity to provision, in units a second.
    read_capacity: int | None = None
    write_capacity: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members of the line."""
        return {name: getattr(self, name) for name in self.__slots__}


class _Sums:
    def __init__(self) -> None:
        self.reads = self.writes = 0.0

    def line(self, label: str, seconds: float, prices: Prices) -> CostLine:
        factor = SECONDS_PER_MONTH / seconds / _MILLION
        price = self.reads * prices.read_per_million + self.writes * prices.write_per_million
        return CostLine(label=label, read_units=self.reads, write_units=self.writes, on_demand=price * factor)


def cost_by_table(log: HeatLog, seconds: float, prices: Prices) -> list[CostLine]:
    """Return a line for each table and index, the dearest first."""
    sums: dict[str, _Sums] = {}
    busiest: dict[str, tuple[float, float]] = {}
    minutes: dict[tuple[str, int], list[float]] = {}
    for each in log.intervals:
        label = each.table if each.index is None else f"{each.table}.{each.index}"
        total = sums.setdefault(label, _Sums())
        total.reads += each.read_units
        total.writes += each.write_units
        minute = minutes.setdefault((label, each.start), [0.0, 0.0, float(each.seconds)])
        minute[0] += each.read_units
        minute[1] += each.write_units
    for (label, _), (reads, writes, length) in minutes.items():
        before = busiest.get(label, (0.0, 0.0))
        busiest[label] = (max(before[0], reads / length), max(before[1], writes / length))
    lines = [
        _provisioned(total.line(label, seconds, prices), *busiest[label], prices)
        for label, total in sums.items()
    ]
    return sorted(lines, key=lambda line: (-line.on_demand, line.label))


def _provisioned(line: CostLine, reads: float, writes: float, prices: Prices) -> CostLine:
    read_capacity, write_capacity = _capacity(reads), _capacity(writes)
    provisioned = None
    if prices.read_unit_hour is not None and prices.write_unit_hour is not None:
        hourly = read_capacity * prices.read_unit_hour + write_capacity * prices.write_unit_hour
        provisioned = hourly * _HOURS_PER_MONTH
    return CostLine(
        label=line.label,
        read_units=line.read_units,
        write_units=line.write_units,
        on_demand=line.on_demand,
        provisioned=provisioned,
        read_capacity=read_capacity,
        write_capacity=write_capacity,
    )


def _capacity(units_per_second: float) -> int:
    # DynamoDB: a table or index has at least one unit of each.
    return max(1, -int(-units_per_second // _UTILISATION))


def cost_by_partition(log: HeatLog, seconds: float, prices: Prices) -> list[CostLine]:
    """Return a line for each recorded partition, the dearest first."""
    sums: dict[str, _Sums] = {}
    for each in log.intervals:
        place = each.table if each.index is None else f"{each.table}.{each.index}"
        for partition in each.partitions:
            total = sums.setdefault(f"{place} {label_of(partition.key)}", _Sums())
            total.reads += partition.reads.units
            total.writes += partition.writes.units
    return _sorted(sums, seconds, prices)


def cost_by_pattern(
    log: HeatLog, seconds: float, prices: Prices, patterns: Iterable[AccessPattern]
) -> list[CostLine]:
    """Return a line for the patterns of each partition key template, and one for other keys.

    Patterns with the same template read the same partitions, so they share a line.
    """
    named: dict[tuple[str, str | None, str], list[str]] = {}
    for pattern in patterns:
        template = _partition_template(pattern.key_condition)
        if template is not None:
            named.setdefault((pattern.table, pattern.index, template), []).append(pattern.name)
    matchers = [
        (
            table,
            index,
            re.compile(_PARAMETER.sub(".+", re.escape(template))),
            f"{', '.join(names)}  {template}",
        )
        for (table, index, template), names in named.items()
    ]
    # The longest template first: a short one may match the keys of a longer one.
    matchers.sort(key=lambda each: -len(each[2].pattern))
    sums: dict[str, _Sums] = {}
    for each in log.intervals:
        for partition in each.partitions:
            text = label_of(partition.key)
            place = each.table if each.index is None else f"{each.table}.{each.index}"
            label = f"{place} {SCANS if partition.key is None else _OTHERS}"
            label = next(
                (
                    label
                    for table, index, matcher, label in matchers
                    if table == each.table and index == each.index and matcher.fullmatch(text)
                ),
                label,
            )
            total = sums.setdefault(label, _Sums())
            total.reads += partition.reads.units
            total.writes += partition.writes.units
    return _sorted(sums, seconds, prices)


def _partition_template(condition: str) -> str | None:
    """Return the template of the partition key in `PK = TENANT#{tenant_id} AND begins_with(...)`."""
    name, equals, rest = condition.partition(" AND ")[0].partition(" = ")
    return rest.strip("\"'") if name and equals else None


def _sorted(sums: dict[str, _Sums], seconds: float, prices: Prices) -> list[CostLine]:
    lines: Sequence[CostLine] = [total.line(label, seconds, prices) for label, total in sums.items()]
    return sorted(lines, key=lambda line: (-line.on_demand, line.label))
