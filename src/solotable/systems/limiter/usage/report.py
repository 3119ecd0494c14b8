"""Report usage: pages of rows, and their totals. Windows are whole.

A row is in a range if its window begins in it: at `since` or later, and before `until`. A `since` within a
window includes that window from its start, an `until` within one to its end; None does not bound it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from solotable import Query
from solotable.errors import DataError
from solotable.flow import Flow, Scope, page
from solotable.systems.limiter.admin.limits import MILLI, in_tokens
from solotable.systems.limiter.admin.names import entity_name, resource_name

from . import windows
from .rows import Usage, UsageRow
from .windows import Window, window_of

_MOST_ROWS = 100_000
_PAGE_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class UsagePage:
    """Rows, oldest first, and the cursor of the next page; None at the end."""

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
    #: The first window with the peak.
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
        """The average tokens of a window, windows without usage included."""
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
    """The totals of usage rows; several entities or resources are added up, window by window."""

    window: Window
    #: From the start of the first window to the end of the last; None without usage.
    since: datetime | None
    until: datetime | None
    windows: int
    events: int
    limits: Mapping[str, LimitUsage]

    @classmethod
    def of(cls, rows: Iterable[Usage], *, window: Window, since: datetime | None, until: datetime) -> Self:
        """Return the totals of rows in an aligned range, which begins with the first row without `since`."""
        rows = list(rows)
        if since is None:
            since = min((row.start for row in rows), default=None)
        until = max([until, *(row.end for row in rows)])
        number = 0 if since is None else windows.count(window, since, until)
        return cls(
            window=window,
            since=since,
            until=None if since is None else until,
            windows=number,
            events=sum(row.events for row in rows),
            limits={name: _limit_usage(sums, number) for name, sums in sums_by_limit(rows).items()},
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


def sums_by_limit(rows: Iterable[Usage]) -> dict[str, dict[datetime, int]]:
    """Return thousandths of tokens by limit and start of the window, limits by name."""
    found: dict[str, dict[datetime, int]] = {}
    for row in rows:
        for name, amount in row.millitokens.items():
            sums = found.setdefault(name, {})
            sums[row.start] = sums.get(row.start, 0) + amount
    return dict(sorted(found.items()))


def _limit_usage(sums: Mapping[datetime, int], number: int) -> LimitUsage:
    peak_at = min(sums, key=lambda start: (-sums[start], start))
    return LimitUsage(
        total_millitokens=sum(sums.values()),
        peak_millitokens=sums[peak_at],
        peak_at=peak_at,
        windows=number,
    )


def usage(  # noqa: PLR0913 - each filter by name
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
    """Return a page of the usage of an entity, of a resource, or of both, by window; oldest first."""
    rows = _Range.of(window, since, until).query(entity, resource)
    if rows is None:
        return UsagePage([], None)
    found = yield from page(scope, rows, limit=limit, cursor=cursor)
    return UsagePage([Usage.of(row) for row in found], found.cursor)


def usage_summary(
    scope: Scope,
    *,
    entity: str | None = None,
    resource: str | None = None,
    window: str = "hour",
    since: datetime | None = None,
    until: datetime | None = None,
) -> Flow[UsageSummary]:
    """Return totals, means and peaks by limit; windows that have not begun yet do not lower the mean."""
    range_ = _Range.of(window, since, until)
    now = windows.ceiling(range_.window, scope.now())
    end = now if range_.until is None else min(now, range_.until)
    found = yield from _all_rows(scope, range_.query(entity, resource))
    return UsageSummary.of(found, window=range_.window, since=range_.since, until=end)


def _all_rows(scope: Scope, rows: Query[UsageRow] | None) -> Flow[list[Usage]]:
    found: list[Usage] = []
    cursor = None
    while rows is not None:
        some = yield from page(scope, rows, limit=_PAGE_ROWS, cursor=cursor)
        found += map(Usage.of, some)
        if len(found) > _MOST_ROWS:
            raise DataError(
                f"This summary has more than {_MOST_ROWS:,} rows; ask for less time, or for longer windows."
            )
        cursor = some.cursor
        if cursor is None:
            break
    return found


@dataclass(frozen=True, slots=True)
class _Range:
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
            raise DataError(f"A range of usage ends after it begins; got {since} to {until}.")
        # From a time to the same time is empty, also within a window.
        return cls(kind, low, low if since == until else high)

    def query(self, entity: str | None, resource: str | None) -> Query[UsageRow] | None:
        """Return the query of the rows in the range; None for an empty range."""
        rows = self._all(entity, resource)
        if self.until is None:
            return rows if self.since is None else rows.since(start=self.since)
        if self.since is None:
            return rows.before(start=self.until)
        if self.until <= self.since:
            return None
        return rows.between(start=(self.since, windows.preceding(self.window, self.until)))

    def _all(self, entity: str | None, resource: str | None) -> Query[UsageRow]:
        if entity is not None:
            rows: Query[UsageRow] = UsageRow.of_entity(entity_name(entity), self.window)
            if resource is None:
                return rows
            # An entity has few resources: reading its other rows is cheaper than another index.
            name = resource_name(resource)
            return rows.where(lambda row: row.resource == name)
        if resource is None:
            raise DataError("Usage is of an entity or of a resource; name one of them, or both.")
        return UsageRow.of_resource(resource_name(resource), self.window)
