"""Heat: the units of each partition key by minute, with DynamoDB's limit of a partition and advice."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from solotable.console.pages.facets import find_table
from solotable.console.state import Console, PageRequest, View
from solotable.console.table_links import TableLinks
from solotable.errors import SolotableError
from solotable.heat import Direction, HeatMap, HeatRow, advise, build_heat_map, read_heat, shade

_SPANS = {"1h": 3600, "24h": 24 * 3600, "7d": 7 * 24 * 3600}
_UNITS = {"read": "RCU", "write": "WCU"}
_TICKS = 7
#: Less says little about a table.
_FEWEST_MINUTES = 1
_CHART_WIDTH, _CHART_HEIGHT = 600, 90


def heat(console: Console, asked: PageRequest) -> View:
    """Show which partitions are hot, and what to do."""
    table = find_table(console, asked.segments[0])
    links = TableLinks(table.name, asked.tenant)
    direction: Direction = "read" if asked.get("by") == "read" else "write"
    span = asked.get("last") if asked.get("last") in _SPANS else "1h"
    now = console.settings.clock()
    data: dict[str, Any] = {
        "table": table.name,
        "by": direction,
        "unit": _UNITS[direction],
        "last": span,
        "spans": list(_SPANS),
        "problem": "",
        "map": None,
    }
    try:
        log = read_heat(console.engine, since=now - _SPANS[span])
    except SolotableError as error:
        data["problem"] = str(error)
    else:
        found = build_heat_map(log, table.name, direction, until=now, seconds=_SPANS[span])
        if found.minutes >= _FEWEST_MINUTES and found.rows:
            data["map"] = _shown(found, links)
    return View(
        template="heat.html",
        title=f"Heat, {table.name}",
        data=data,
        table=table,
        section="heat",
        crumbs=((table.name, links.home()), ("Heat", "")),
    )


def _shown(found: HeatMap, links: TableLinks) -> dict[str, Any]:
    hottest = found.hottest
    return {
        "limit": found.limit,
        "partitions": found.partitions,
        "shown": sum(row.key is not None for row in found.rows),
        "share_shown": 100 * found.share_shown,
        "units": found.units,
        "over": found.over,
        "first_over": None if found.first_over is None else _clock(found.first_over),
        "last_over": None if found.last_over is None else _clock(found.last_over),
        "ticks": [_clock(found.columns[at]) for at in _ticks(len(found.columns))],
        "columns": len(found.columns),
        "rows": [_row(each, found, links) for each in found.rows],
        "hottest": None if hottest is None else _row(hottest, found, links) | _chart(hottest, found),
        "advice": [
            {"severity": each.severity, "title": each.title, "text": each.text, "code": each.code}
            for each in advise(found)
        ],
    }


def _row(row: HeatRow, found: HeatMap, links: TableLinks) -> dict[str, Any]:
    href = None
    if row.key is not None and row.index is None and len(row.key) == 1:
        href = links.partition(next(iter(row.key.values())))
    return {
        "label": row.label,
        "index": row.index,
        "href": href,
        "peak": row.peak,
        "peak_at": _clock(row.peak_at),
        "units": row.units,
        "columns_over": row.columns_over,
        "is_hot": row.key is not None and row.peak >= found.limit,
        "cells": [
            {"shade": shade(value, found.limit), "value": value, "at": _clock(found.columns[at])}
            for at, value in enumerate(row.cells)
        ],
    }


def _chart(row: HeatRow, found: HeatMap) -> dict[str, Any]:
    """Return the line of a partition as points, with the limit at four fifths of the height or above."""
    top = max(found.limit * 1.25, row.peak * 1.1)
    step = _CHART_WIDTH / len(row.cells)
    points = [
        f"{(at + 0.5) * step:.1f},{_CHART_HEIGHT * (1 - value / top):.1f}"
        for at, value in enumerate(row.cells)
    ]
    return {"points": " ".join(points), "limit_y": round(_CHART_HEIGHT * (1 - found.limit / top), 1)}


def _ticks(columns: int) -> list[int]:
    return [round(at * (columns - 1) / (_TICKS - 1)) for at in range(_TICKS)]


def _clock(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M")
