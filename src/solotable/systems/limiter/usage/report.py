"""Reading usage: pages of rows, and what they come to. Windows are whole, and their edges exact.

A row is in a range when its window begins in it: at `since` or after it, and before `until`. A `since` within
a window takes that window from its start, an `until` within one takes it to its end; None is no end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from solotable._entities.patterns.query import Query
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.verbs import query
from solotable.errors import DataError
from solotable.systems.limiter.admin.limits import MILLI, in_tokens
from solotable.systems.limiter.admin.names import entity_name, resource_name

from . import windows
from .rows import Usage, UsageRow
from .windows import Window, window_of

_MOST_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class UsagePage:
    """Some rows, oldest first, and the cursor of those after them: None at the end."""

    items: list[Usage]
    cursor: str | None

    def __iter__(self) -> Iterator[Usage]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitUsage:
    """What was used of one limit: in all, on average and at most in one window."""

    total_millitokens: int
    peak_millitokens: int
    #: The first window with so much.
    peak_at: datetime
    windows: int

    @property
    def total(self) -> int | float:
        """All of it, in tokens."""
        return in_tokens(self.total_millitokens)

    @property
    def peak(self) -> int | float:
        """The most in one window, in tokens."""
        return in_tokens(self.peak_millitokens)

    @property
    def mean(self) -> float:
        """The tokens of a window on average, those without usage included."""
        return self.total_millitokens / MILLI / self.windows

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "total": self.total,
            "mean": self.mean,
            "peak": self.peak,
            "peak_at": self.peak_at.isoformat(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSummary:
    """What rows of usage come to; several entities or resources are added up, window by window."""

    window: Window
    #: From the start of the first window up to the end of the last; None where there is nothing.
    since: datetime | None
    until: datetime | None
    windows: int
    events: int
    limits: Mapping[str, LimitUsage]

    @classmethod
    def of(
        cls,
        rows: Iterable[Usage],
        *,
        window: Window,
        since: datetime | None,
        until: datetime,
    ) -> Self:
        """Return what rows come to; the range is aligned, and without `since` it begins with the first."""
        by_limit: dict[str, dict[datetime, int]] = {}
        events = 0
        first: datetime | None = None
        for row in rows:
            first = row.start if first is None else min(first, row.start)
            until = max(until, row.end)
            events += row.events
            for name, amount in row.millitokens.items():
                by_start = by_limit.setdefault(name, {})
                by_start[row.start] = by_start.get(row.start, 0) + amount
        since = first if since is None else since
        number = 0 if since is None else windows.count(window, since, until)
        limits = {name: _limit_usage(by_limit[name], number) for name in sorted(by_limit)}
        return cls(
            window=window,
            since=since,
            until=None if since is None else until,
            windows=number,
            events=events,
            limits=limits,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as JSON has it."""
        return {
            "window": self.window,
            "since": None if self.since is None else self.since.isoformat(),
            "until": None if self.until is None else self.until.isoformat(),
            "windows": self.windows,
            "events": self.events,
            "limits": {name: limit.as_dict() for name, limit in self.limits.items()},
        }


def usage(  # noqa: PLR0913 - whose, of what, when and how much, each by name
    scope: Scope,
    *,
    entity: str | None = None,
    resource: str | None = None,
    window: str = "hour",
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Flow[UsagePage]:
    """Return a page of the usage of an entity, of a resource, or of one by the other; oldest first."""
    span = _Span.of(window, since, until)
    asked = span.query(entity, resource)
    if asked is None:
        return UsagePage([], None)
    filled = yield from query.page(scope, asked, limit=limit, cursor=cursor)
    return UsagePage([Usage.of(row) for row in filled.rows], filled.cursor)


def usage_summary(
    scope: Scope,
    *,
    entity: str | None = None,
    resource: str | None = None,
    window: str = "hour",
    since: datetime | None = None,
    until: datetime | None = None,
) -> Flow[UsageSummary]:
    """Return totals, means and peaks by limit; windows that have not begun yet are not averaged over."""
    span = _Span.of(window, since, until)
    now = windows.ceiling(span.window, scope.now())
    end = now if span.until is None else min(now, span.until)
    found = yield from _rows(scope, span.query(entity, resource))
    return UsageSummary.of(found, window=span.window, since=span.since, until=end)


def _limit_usage(by_start: Mapping[datetime, int], number: int) -> LimitUsage:
    peak_at = min(by_start, key=lambda start: (-by_start[start], start))
    return LimitUsage(
        total_millitokens=sum(by_start.values()),
        peak_millitokens=by_start[peak_at],
        peak_at=peak_at,
        windows=number,
    )


def _rows(scope: Scope, asked: Query[UsageRow] | None) -> Flow[list[Usage]]:
    found: list[Usage] = []
    if asked is None:
        return found
    prepared = query.prepare(scope, asked)
    start = None
    while True:
        some = yield from query.rows(scope, prepared, start, None)
        found += map(Usage.of, some.rows)
        if len(found) > _MOST_ROWS:
            raise DataError(
                f"This summary is of more than {_MOST_ROWS:,} rows; ask for less time, or for longer windows."
            )
        start = some.last_key
        if start is None:
            return found


@dataclass(frozen=True, slots=True)
class _Span:
    """A range of whole windows."""

    window: Window
    since: datetime | None
    until: datetime | None

    @classmethod
    def of(cls, window: str, since: datetime | None, until: datetime | None) -> Self:
        kind = window_of(window)
        low = None if since is None else windows.floor(kind, since)
        high = None if until is None else windows.ceiling(kind, until)
        if since is not None and until is not None and since > until:
            raise DataError(f"A range of usage ends after it begins; {since} to {until} was given.")
        # Two equal moments are no time at all, also within a window.
        return cls(kind, low, low if since == until else high)

    def query(self, entity: str | None, resource: str | None) -> Query[UsageRow] | None:
        """Return the query of the rows in the range; None where no window is."""
        asked = _asked(entity, resource, self.window)
        if self.until is None:
            return asked if self.since is None else asked.since(start=self.since)
        if self.since is None:
            return asked.before(start=self.until)
        if self.until <= self.since:
            return None
        return asked.between(start=(self.since, windows.preceding(self.window, self.until)))


def _asked(entity: str | None, resource: str | None, window: Window) -> Query[UsageRow]:
    if entity is not None:
        asked: Query[UsageRow] = UsageRow.of_entity(entity_name(entity), window)
        if resource is None:
            return asked
        # An entity has few resources: its rows of the others are cheaper than another index of all rows.
        name = resource_name(resource)
        return asked.where(lambda row: row.resource == name)
    if resource is None:
        raise DataError("Usage is of an entity or of a resource; name one of them, or both.")
    return UsageRow.of_resource(resource_name(resource), window)
