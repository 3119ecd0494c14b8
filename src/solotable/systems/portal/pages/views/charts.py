"""Charts as numbers for inline SVG: a line chart by day, and sparklines. The template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from solotable.systems.browser.dates import long_day, short_day

_LEFT, _RIGHT, _TOP, _BOTTOM = 40.0, 890.0, 20.0, 220.0
_GRID_LINES = 4
_MOST_LABELS = 5
_SPARK_HEIGHT, _SPARK_WIDTH, _SPARK_EDGE = 28.0, 100.0, 3.0


@dataclass(frozen=True, slots=True)
class DayCount:
    """The views and downloads of one day."""

    day: date
    views: int
    downloads: int


@dataclass(frozen=True, slots=True)
class GridLine:
    """A horizontal line and the number beside it."""

    y: float
    text: str


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """A day below the chart."""

    x: float
    anchor: str
    text: str


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line; `kind` is its class, which sets colour and dash."""

    kind: str
    points: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The mark of the highest day."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class ChartRow:
    """A day in the table of the chart."""

    iso: str
    day: str
    views: str
    downloads: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart:
    """Views and downloads by day; without events it has axes and no lines."""

    label: str
    grid: tuple[GridLine, ...]
    lines: tuple[ChartLine, ...]
    area: str
    dot: Dot | None
    days: tuple[AxisLabel, ...]
    rows: tuple[ChartRow, ...]


def line_chart(counts: Sequence[DayCount]) -> LineChart:
    """Return the chart of some days, oldest first."""
    highest = max((max(each.views, each.downloads) for each in counts), default=0)
    top = _round_up(highest)
    xs = [_x(number, len(counts)) for number in range(len(counts))]

    def points(values: Sequence[int]) -> list[tuple[float, float]]:
        return [
            (x, round(_BOTTOM - (_BOTTOM - _TOP) * value / top, 1))
            for x, value in zip(xs, values, strict=True)
        ]

    views = points([each.views for each in counts])
    downloads = points([each.downloads for each in counts])
    shown = highest > 0
    peak = max(range(len(counts)), key=lambda at: counts[at].views) if shown else 0
    return LineChart(
        label=_describe(counts),
        grid=tuple(
            GridLine(_BOTTOM - (_BOTTOM - _TOP) * step / _GRID_LINES, f"{top * step // _GRID_LINES:,}")
            for step in range(_GRID_LINES, -1, -1)
        ),
        lines=(ChartLine("a", _join(views)), ChartLine("b", _join(downloads))) if shown else (),
        area=_join([(xs[0], _BOTTOM), *views, (xs[-1], _BOTTOM)]) if shown else "",
        dot=Dot(*views[peak]) if shown else None,
        days=_axis([each.day for each in counts], xs),
        rows=tuple(
            ChartRow(each.day.isoformat(), long_day(each.day), f"{each.views:,}", f"{each.downloads:,}")
            for each in counts
        ),
    )


def sparkline(values: Sequence[int]) -> str:
    """Return the points of a small line without axes; empty without a value above zero."""
    highest = max(values, default=0)
    if highest == 0 or len(values) < 2:
        return ""
    room = _SPARK_HEIGHT - 2 * _SPARK_EDGE
    step = _SPARK_WIDTH / (len(values) - 1)
    return _join(
        [
            (round(number * step, 1), round(_SPARK_HEIGHT - _SPARK_EDGE - room * value / highest, 1))
            for number, value in enumerate(values)
        ]
    )


def _round_up(highest: int) -> int:
    """Return the number at the top of the axis: the next of 4, 8, 20, 40, 80, 200 ... that fits.

    >>> [_round_up(number) for number in (0, 3, 5, 61, 231)]
    [4, 4, 8, 80, 240]
    """
    scale = 1
    while True:
        for step in (4, 8, 12, 16, 20, 24, 28, 32, 36):
            if highest <= step * scale:
                return step * scale
        scale *= 10


def _x(number: int, count: int) -> float:
    return _LEFT if count < 2 else round(_LEFT + (_RIGHT - _LEFT) * number / (count - 1), 1)


def _axis(days: Sequence[date], xs: Sequence[float]) -> tuple[AxisLabel, ...]:
    last = len(days) - 1
    if last < 1:
        return tuple(AxisLabel(x, "start", short_day(day)) for day, x in zip(days, xs, strict=True))
    count = min(_MOST_LABELS, len(days))
    chosen = [round(last * step / (count - 1)) for step in range(count)]
    anchors = {0: "start", last: "end"}
    return tuple(AxisLabel(xs[at], anchors.get(at, "middle"), short_day(days[at])) for at in chosen)


def _join(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _describe(counts: Sequence[DayCount]) -> str:
    """Return the chart as sentences, for readers who do not see it."""
    if not any(each.views or each.downloads for each in counts):
        return "No events in this period."
    views, downloads = (sum(each.views for each in counts), sum(each.downloads for each in counts))
    peak = max(counts, key=lambda each: each.views)
    return (
        f"{views:,} views and {downloads:,} downloads in {len(counts)} days. "
        f"The day with the most views is {long_day(peak.day)}, with {peak.views:,}."
    )
