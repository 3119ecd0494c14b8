"""The analytics page: four figures, one chart and two lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from solotable.systems.browser.dates import long_day

from .charts import DayCount, LineChart, line_chart, sparkline

PERIODS = (7, 30, 90)
_MOST_ROWS = 5


@dataclass(frozen=True, slots=True)
class Period:
    """A period to choose."""

    days: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure, and how it changed since the period before."""

    label: str
    value: str
    change: str
    trend: str
    spark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingRow:
    """A row of a list, with the width of its bar in percent."""

    label: str
    url: str
    count: str
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A list of what has the highest numbers."""

    title: str
    subject: str
    measure: str
    rows: tuple[RankingRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyticsPage:
    """The analytics of a period."""

    periods: tuple[Period, ...]
    period: str
    tiles: tuple[Tile, ...]
    chart: LineChart
    rankings: tuple[Ranking, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of this period and of the one before, and its days; `more_is_good` sets the colour."""

    label: str
    now: int
    before: int
    by_day: tuple[int, ...] = ()
    more_is_good: bool | None = True


def analytics_page(
    days: int, counts: Sequence[DayCount], figures: Sequence[Figure], rankings: Sequence[Ranking]
) -> AnalyticsPage:
    """Return the page of a period; `counts` has its days, oldest first."""
    return AnalyticsPage(
        periods=tuple(Period(each, each == days) for each in PERIODS),
        period=f"{_span(counts[0].day, counts[-1].day)}. Days are counted in UTC.",
        tiles=tuple(_tile(figure) for figure in figures),
        chart=line_chart(counts),
        rankings=tuple(rankings),
    )


def ranking(title: str, subject: str, measure: str, rows: Sequence[tuple[str, str, int]]) -> Ranking:
    """Return a list of (label, URL, number), the highest first."""
    highest = max((count for _, _, count in rows), default=0)
    return Ranking(
        title=title,
        subject=subject,
        measure=measure,
        rows=tuple(
            RankingRow(label=label, url=url, count=f"{count:,}", width=round(100 * count / highest, 1))
            for label, url, count in rows[:_MOST_ROWS]
        ),
    )


def _span(first: date, last: date) -> str:
    start = long_day(first)
    if first.year == last.year:
        start = start.rpartition(" ")[0]
    return f"{start} to {long_day(last)}"


def _tile(figure: Figure) -> Tile:
    difference = figure.now - figure.before
    trend = ""
    if difference and figure.more_is_good is not None:
        trend = "up" if (difference > 0) is figure.more_is_good else "down"
    return Tile(
        label=figure.label,
        value=f"{figure.now:,}",
        change=_change(figure.now, figure.before),
        trend=trend,
        spark=sparkline(figure.by_day),
    )


def _change(now: int, before: int) -> str:
    """Return how a number changed, in words.

    >>> _change(112, 100), _change(3, 0), _change(5, 5), _change(3, 9)
    ('12 % more than before', '3 more than before', 'as many as before', '6 fewer than before')
    """
    difference = now - before
    if difference == 0:
        return "as many as before"
    word = "more" if difference > 0 else "fewer"
    if before >= 100:
        return f"{round(abs(difference) * 100 / before)} % {word} than before"
    return f"{abs(difference):,} {word} than before"
