"""A chart of usage for the terminal: one bar per window, one block per limit. Pure.

Several entities or resources are added up, window by window. Windows without usage have a row, too, so that
the time axis is even.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from solotable.systems.limiter.admin.limits import in_tokens

from .report import sums_by_limit
from .rows import Usage
from .windows import Window, count, following, preceding

#: Of more windows the oldest are left out, and the chart says so.
_MOST_BARS = 120
_FORMATS: dict[Window, str] = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "month": "%Y-%m"}


def chart(rows: Iterable[Usage], *, limit: str | None = None, width: int = 40) -> RenderableType:
    """Return the bars of rows of one kind of window, of all limits or of one."""
    rows = list(rows)
    sums = {name: each for name, each in sums_by_limit(rows).items() if limit in (None, name)}
    if not sums:
        return Text("No usage in this time.")
    return Group(*(_block(name, rows[0].window, each, width) for name, each in sums.items()))


def _block(name: str, window: Window, sums: dict[datetime, int], width: int) -> RenderableType:
    starts, left_out = _axis(window, sums)
    most = max(*sums.values(), 1)
    title = f"{name}: {in_tokens(sum(sums.values())):,} tokens"
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(width=width)
    table.add_column(justify="right", no_wrap=True)
    for start in starts:
        amount = sums.get(start, 0)
        # A window in which more was given back than taken is below zero, which a bar cannot show.
        bar = Bar(most, 0, max(amount, 0), width=width, color="cyan")
        table.add_row(f"{start:{_FORMATS[window]}}", bar, f"{in_tokens(amount):,}")
    if not left_out:
        return table
    return Group(table, Text(f"{left_out} earlier windows are not shown.", style="dim"))


def _axis(window: Window, sums: dict[datetime, int]) -> tuple[list[datetime], int]:
    """Return the starts of the windows to show, in order, and how many before them are not."""
    first, last = min(sums), max(sums)
    whole = count(window, first, following(window, last))
    starts = [last]
    while len(starts) < min(whole, _MOST_BARS):
        starts.append(preceding(window, starts[-1]))
    return starts[::-1], whole - len(starts)
