"""A chart of usage for the terminal: a bar for each window, a block for each limit. Pure.

Several entities or resources are added up, window by window. Windows without usage between others have a row
of their own, so that the bars stand on an even time axis.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from solotable.systems.limiter.admin.limits import in_tokens

from .rows import Usage
from .windows import Window, count, following, preceding

#: Beyond so many windows the oldest are left out, and the chart says so.
_MOST_BARS = 120
_FORMATS: dict[Window, str] = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "month": "%Y-%m"}


def chart(rows: Iterable[Usage], *, limit: str | None = None, width: int = 40) -> RenderableType:
    """Return the bars of some rows, of all limits or of one; rows are of one kind of window."""
    by_limit: dict[str, dict[datetime, int]] = {}
    window: Window | None = None
    for row in rows:
        window = row.window
        for name, amount in row.millitokens.items():
            if limit is None or name == limit:
                by_start = by_limit.setdefault(name, {})
                by_start[row.start] = by_start.get(row.start, 0) + amount
    if window is None or not by_limit:
        return Text("No usage in this time.")
    return Group(*(_block(name, window, by_limit[name], width) for name in sorted(by_limit)))


def _block(name: str, window: Window, by_start: dict[datetime, int], width: int) -> RenderableType:
    starts, left_out = _axis(window, by_start)
    most = max(*by_start.values(), 1)
    title = f"{name}: {in_tokens(sum(by_start.values())):,} tokens"
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(width=width)
    table.add_column(justify="right", no_wrap=True)
    for start in starts:
        amount = by_start.get(start, 0)
        # Tokens that were given back leave a window below zero: the number says so, a bar cannot.
        bar = Bar(most, 0, max(amount, 0), width=width, color="cyan")
        table.add_row(f"{start:{_FORMATS[window]}}", bar, f"{in_tokens(amount):,}")
    if not left_out:
        return table
    return Group(table, Text(f"{left_out} earlier windows are not shown.", style="dim"))


def _axis(window: Window, by_start: dict[datetime, int]) -> tuple[list[datetime], int]:
    """Return the starts of the windows to show, in order, and how many before them are not."""
    first, last = min(by_start), max(by_start)
    whole = count(window, first, following(window, last))
    starts = [last]
    while len(starts) < min(whole, _MOST_BARS):
        starts.append(preceding(window, starts[-1]))
    return starts[::-1], whole - len(starts)
