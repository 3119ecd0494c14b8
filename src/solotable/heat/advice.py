"""Say what to do about the heat of a table: shard, cache, spread a burst, or nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from .heat_map import HeatMap, HeatRow

Severity = Literal["bad", "warn", "ok"]

#: Advice begins at this part of the limit.
_WARM = 0.5
#: A partition is hot in a burst if it is at the limit in at most this part of the busy minutes.
_BURST = 0.2
#: Scans are worth a look if they read this part of the units.
_SCANS = 0.5
_MOST_SHARDS = 100
_NAMES = {"read": "Reads", "write": "Writes"}
_UNITS = {"read": "RCU", "write": "WCU"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One finding: its cause, its cure, and code to copy if there is some."""

    severity: Severity
    title: str
    text: str
    code: str | None = None


def advise(heat: HeatMap) -> list[Advice]:
    """Return findings on a heat map, the worst first; there is always at least one."""
    found: list[Advice] = []
    row = heat.hottest
    units, name = _UNITS[heat.direction], _NAMES[heat.direction]
    if row is not None and row.peak >= heat.limit:
        found.append(_shard(heat, row))
        if heat.direction == "read":
            found.append(_cache(row))
        if row.columns_over <= max(1, heat.minutes * _BURST):
            found.append(_spread(heat, row))
    elif row is not None and row.peak >= heat.limit * _WARM:
        found.append(
            Advice(
                severity="warn",
                title=f"{row.label} is warm",
                text=f"Its busiest second has {row.peak:,.0f} {units}, {row.peak / heat.limit:.0%} of the "
                f"{heat.limit:,.0f} of one partition. Twice the traffic would be throttled.",
            )
        )
    if heat.units and heat.scan_units / heat.units >= _SCANS:
        found.append(
            Advice(
                severity="warn",
                title=f"Scans read {heat.scan_units / heat.units:.0%} of the units",
                text="A Scan reads the whole table or index and is charged for it. Declare an access pattern "
                "with a key, so that a Query reads only what it returns.",
                code="solotable lint",
            )
        )
    if not found:
        peak = 0.0 if row is None else row.peak
        found.append(
            Advice(
                severity="ok",
                title=f"{name} are cool",
                text=f"The highest is {peak:,.0f} {units} a second, {peak / heat.limit:.0%} of "
                f"{heat.limit:,.0f}.",
            )
        )
    return found


def _shard(heat: HeatMap, row: HeatRow) -> Advice:
    units = _UNITS[heat.direction]
    needed = max(2, math.ceil(row.peak / heat.limit))
    shards = min(_MOST_SHARDS, needed * 2)
    where = "the table's own key, so it needs a migration" if row.index is None else f"the key of {row.index}"
    index = "" if row.index is None else f', index="{row.index}"'
    return Advice(
        severity="bad",
        title=f"Shard {row.label} by {needed} or more",
        text=f"{row.peak:,.0f} {units} a second need {needed} partitions; {shards} leave room to grow. "
        f"It changes {where}. With shard_by, the items of one value stay in one Query.",
        code=f"key = Key(..., ...{index}, shards={shards})",
    )


def _cache(row: HeatRow) -> Advice:
    return Advice(
        severity="bad",
        title=f"Cache the reads of {row.label}",
        text="Many reads of few items need no more partitions: a cache of one second already removes most of "
        "them. Eventually consistent reads cost half.",
        code="cache = TTLCache(ttl_seconds=1, max_size=1024)",
    )


def _spread(heat: HeatMap, row: HeatRow) -> Advice:
    units = _UNITS[heat.direction]
    busy = row.columns_over * heat.column_seconds / 60
    rate = heat.limit * 0.6
    return Advice(
        severity="warn",
        title="Spread the burst",
        text=f"{row.label} is at the limit in {busy:,.0f} of {heat.minutes:,} minutes, and {row.over:,.0f} "
        f"{units} are beyond it. A job that uses {rate:,.0f} {units} a second is not throttled.",
    )
