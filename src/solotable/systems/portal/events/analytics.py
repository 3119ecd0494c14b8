"""Analytics over the last days, from kept numbers. It reads rows of days, and never the events.

Days are days in UTC. The numbers follow the events with the delay of `counting`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from solotable import AsyncDatabase, Entity, Query
from solotable.flow import scope_of
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.aggregates import ContentTotals, DayTotals, EmptySearch, UserTotals

MOST_DAYS = 365
#: The length of the lists, unless the caller asks for less.
MOST_ROWS = 100
#: Queries at the same time.
_CONCURRENCY = 8
EntityT = TypeVar("EntityT", bound=Entity)


class DayFigures(BaseModel):
    """The numbers of one day; zeros for a day without events."""

    day: date
    events: int = 0
    views: int = 0
    downloads: int = 0
    searches: int = 0
    empty_searches: int = 0
    #: Different users who did something.
    active_users: int = 0


class PeriodFigures(BaseModel):
    """The numbers of a period."""

    first: date
    last: date
    events: int = 0
    views: int = 0
    downloads: int = 0
    searches: int = 0
    empty_searches: int = 0
    #: Different users in the period: a user of several days counts once.
    active_users: int = 0


class Overview(BaseModel):
    """A period, the one before it, and its days, the oldest first."""

    days: int
    current: PeriodFigures
    previous: PeriodFigures
    by_day: list[DayFigures]


class ContentFigures(BaseModel):
    """The numbers of one content item in a period."""

    content_id: str
    events: int = 0
    views: int = 0
    downloads: int = 0


class UserFigures(BaseModel):
    """The numbers of one user in a period."""

    user_id: str
    events: int = 0
    views: int = 0
    downloads: int = 0
    searches: int = 0
    active_days: int = 0
    last_day: date


class NotFoundText(BaseModel):
    """A text that was searched and not found, and how often."""

    text: str
    searches: int


class Analytics:
    """The numbers of the last days, today included."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._clock = scope_of(db).clock

    async def overview(self, days: int = 30) -> Overview:
        """Return the numbers of a period and of the one before."""
        every = self._days(2 * _checked(days))
        totals = {row.day: row async for row in self._db.all(DayTotals.of_days(every[0], every[-1]))}
        users: dict[date, set[str]] = {day: set() for day in every}
        for row in await self._rows(UserTotals.of_day(day) for day in every):
            users[row.day].add(row.user_id)
        figures = [
            DayFigures(day=day, active_users=len(users[day]), **_numbers(totals.get(day))) for day in every
        ]
        return Overview(
            days=days,
            current=_period(figures[days:], users),
            previous=_period(figures[:days], users),
            by_day=figures[days:],
        )

    async def content(self, days: int = 30, *, limit: int = MOST_ROWS) -> list[ContentFigures]:
        """Return the content with the most views and downloads, the most active first."""
        sums: dict[str, Counter[str]] = {}
        for row in await self._rows(ContentTotals.of_day(day) for day in self._days(_checked(days))):
            sums.setdefault(row.content_id, Counter()).update(_numbers(row))
        found = [ContentFigures(content_id=each, **numbers) for each, numbers in sums.items()]
        return sorted(found, key=lambda each: (-each.events, each.content_id))[:limit]

    async def users(self, days: int = 30, *, limit: int = MOST_ROWS) -> list[UserFigures]:
        """Return the most active users, the most active first."""
        sums: dict[str, Counter[str]] = {}
        seen: dict[str, set[date]] = {}
        for row in await self._rows(UserTotals.of_day(day) for day in self._days(_checked(days))):
            sums.setdefault(row.user_id, Counter()).update(_numbers(row))
            seen.setdefault(row.user_id, set()).add(row.day)
        found = [
            UserFigures(user_id=each, active_days=len(seen[each]), last_day=max(seen[each]), **numbers)
            for each, numbers in sums.items()
        ]
        return sorted(found, key=lambda each: (-each.events, each.user_id))[:limit]

    async def not_found(self, days: int = 30, *, limit: int = MOST_ROWS) -> list[NotFoundText]:
        """Return the texts that were searched and not found, the most frequent first."""
        sums: Counter[str] = Counter()
        for row in await self._rows(EmptySearch.of_day(day) for day in self._days(_checked(days))):
            sums[row.text] += row.searches
        ordered = sorted(sums.items(), key=lambda each: (-each[1], each[0]))
        return [NotFoundText(text=text, searches=count) for text, count in ordered[:limit]]

    async def _rows(self, queries: Iterable[Query[EntityT]]) -> list[EntityT]:
        """Return the rows of one query a day, several at the same time."""
        free = asyncio.Semaphore(_CONCURRENCY)

        async def read(query: Query[EntityT]) -> list[EntityT]:
            async with free:
                return [row async for row in self._db.all(query)]

        return [row for rows in await asyncio.gather(*map(read, queries)) for row in rows]

    def _days(self, count: int) -> list[date]:
        """Return the last days, the oldest first and today last."""
        today = datetime.fromtimestamp(self._clock(), UTC).date()
        return [today - timedelta(days=back) for back in reversed(range(count))]


def _checked(days: int) -> int:
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"days: give a number from 1 to {MOST_DAYS}.")
    return days


def _numbers(row: Entity | None) -> dict[str, Any]:
    """Return the numbers of a row by name."""
    return {} if row is None else {name: each for name, each in row if type(each) is int}


def _period(figures: list[DayFigures], users: dict[date, set[str]]) -> PeriodFigures:
    names = ("events", "views", "downloads", "searches", "empty_searches")
    return PeriodFigures(
        first=figures[0].day,
        last=figures[-1].day,
        active_users=len(set().union(*(users[each.day] for each in figures))),
        **{name: sum(getattr(each, name) for each in figures) for name in names},
    )
