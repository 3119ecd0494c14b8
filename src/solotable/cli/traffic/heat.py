"""`solotable heat`: which partition is hot, and what to do."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.database import NotFoundError, db_option
from solotable.cli.output import json_option, note, plural, print_json, print_table

from .window import last_option, read_log

if TYPE_CHECKING:
    from solotable.heat import Advice, Direction, HeatLog, HeatMap

_UNITS = {"read": "RCU", "write": "WCU"}
_SHADES = "·▁▂▃▄▅▆█"
#: A strip is as long as this on a terminal.
_STRIP = 30


@click.command("heat", epilog="Example: solotable heat -d shop.db Shop --by read --last 24h")
@click.argument("table", required=False)
@db_option
@click.option(
    "--by",
    type=click.Choice(("read", "write", "both")),
    default="both",
    show_default=True,
    help="Reads, writes, or both.",
)
@last_option
@click.option(
    "--top",
    type=click.IntRange(1, 1000),
    help="Partitions to print. Default: 20, or 5 of each of several tables.",
)
@json_option
def command(table: str | None, db: str | None, by: str, last: int, top: int | None, as_json: bool) -> int:
    """Print the hottest partitions of TABLE, and advice.

    Without TABLE, those of all tables. The database is a file, which has the finished minutes of every
    process that used it, or a running server: -d http://127.0.0.1:8000. A partition of DynamoDB serves
    1,000 write units or 3,000 read units a second.
    Exits with 1 if a partition reached its limit.
    """
    from solotable.heat import advise

    log, now = read_log(db, last)
    directions: tuple[Direction, ...] = ("write", "read") if by == "both" else (_direction(by),)
    names = _tables(log, table)
    most = top or (20 if len(names) == 1 else 5)
    maps = [each for name in names for each in _maps(log, name, directions, now, last, most)]
    findings = [advise(each) for each in maps]
    if as_json:
        print_json({"until": now, "maps": [_encode(*each) for each in zip(maps, findings, strict=True)]})
    else:
        for each, advice in zip(maps, findings, strict=True):
            _print(each, advice)
        if not maps:
            note(_nothing(last))
    return int(any(each.first_over is not None for each in maps))


def _direction(text: str) -> Direction:
    return "write" if text == "write" else "read"


def _nothing(last: int) -> str:
    return (
        f"No traffic was recorded in the last {last // 60:,} minutes. A file has the minutes of programs "
        "that used it for more than a minute; `solotable serve` also answers for the current one."
    )


def _tables(log: HeatLog, table: str | None) -> list[str]:
    names = sorted({each.table for each in log.intervals})
    if table is None:
        return names
    if table not in names:
        known = f"; there is traffic of {', '.join(names)}" if names else ""
        raise NotFoundError(f"No traffic of table {table} was recorded{known}.")
    return [table]


def _maps(
    log: HeatLog, table: str, directions: Sequence[Direction], now: float, last: int, top: int
) -> list[HeatMap]:
    from solotable.heat import build_heat_map

    found = [
        build_heat_map(log, table, each, until=now, seconds=last, columns=_STRIP, top=top)
        for each in directions
    ]
    return [each for each in found if each.units]


def _encode(heat: HeatMap, advice: list[Advice]) -> dict[str, Any]:
    rows = [asdict(row) | {"label": row.label} for row in heat.rows]
    return asdict(heat) | {"rows": rows, "advice": [asdict(each) for each in advice]}


def _print(heat: HeatMap, advice: list[Advice]) -> None:
    from solotable.heat import shade

    units = _UNITS[heat.direction]
    range_ = f"{_clock(heat.columns[0])} to {_clock(heat.columns[-1] + heat.column_seconds)}"
    click.echo(
        f"{heat.table}: {heat.units:,.1f} {units} in {plural(heat.partitions, 'partition')}, {range_}. "
        f"One partition serves {heat.limit:,.0f} {units} a second."
    )
    print_table(
        [
            {
                "partition": row.label,
                "in": row.index or "table",
                **(
                    {"time": "".join(_SHADES[shade(each, heat.limit)] for each in row.cells)}
                    if _draws()
                    else {}
                ),
                f"peak {units}/s": f"{row.peak:,.1f}",
                "of limit": "" if row.key is None else f"{row.peak / heat.limit:.0%}",
                units: f"{row.units:,.1f}",
            }
            for row in heat.rows
        ]
    )
    for each in advice:
        mark = {"bad": "!", "warn": "-", "ok": " "}[each.severity]
        click.echo(f"{mark} {each.title}. {each.text}")
        if each.code:
            click.echo(f"    {each.code}")
    click.echo()


def _draws() -> bool:
    """Whether the strip can be printed; a pipe gets numbers."""
    return sys.stdout.isatty() and "utf" in (sys.stdout.encoding or "").lower()


def _clock(moment: int) -> str:
    return time.strftime("%H:%M", time.localtime(moment))
