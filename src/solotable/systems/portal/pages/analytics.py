"""`/analytics`: what is read and searched, from kept totals, for administrators."""

from __future__ import annotations

from starlette.responses import Response

from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.events.analytics import Analytics, ContentFigures

from .browser.visits import Visit
from .views.analytics import PERIODS, Figure, analytics_page, ranking
from .views.charts import DayCount
from .views.shared import content_url

_DEFAULT_DAYS = 30
_ROWS = 5


async def show_analytics(visit: Visit) -> Response:
    """Show four figures, one chart and two lists of a period."""
    days = next((each for each in PERIODS if str(each) == visit.query("days")), _DEFAULT_DAYS)
    analytics = Analytics(visit.db)
    overview = await analytics.overview(days)
    now, before, by_day = overview.current, overview.previous, overview.by_day
    figures = [
        Figure(
            label="Views", now=now.views, before=before.views, by_day=tuple(each.views for each in by_day)
        ),
        Figure(
            label="Downloads",
            now=now.downloads,
            before=before.downloads,
            by_day=tuple(each.downloads for each in by_day),
        ),
        Figure(
            label="People",
            now=now.active_users,
            before=before.active_users,
            by_day=tuple(each.active_users for each in by_day),
        ),
        Figure(
            label="Searches without result",
            now=now.empty_searches,
            before=before.empty_searches,
            by_day=tuple(each.empty_searches for each in by_day),
            more_is_good=False,
        ),
    ]
    counts = [DayCount(each.day, each.views, each.downloads) for each in by_day]
    words = [(each.text, "", each.searches) for each in await analytics.not_found(days, limit=_ROWS)]
    read = await _titles(visit, await analytics.content(days, limit=_ROWS))
    rankings = [
        ranking("Read most", "Content", "Views", read),
        ranking("Searched, not found", "Words", "Times", words),
    ]
    return await visit.page("analytics.html", page=analytics_page(days, counts, figures, rankings))


async def _titles(visit: Visit, rows: list[ContentFigures]) -> list[tuple[str, str, int]]:
    """Return rows with the titles of their content; deleted content keeps its numbers."""
    found = await visit.db.get_many(Content, [{"content_id": each.content_id} for each in rows])
    named = [
        ("Deleted content", "", row.views)
        if content is None
        else (content.title, content_url(content.content_id), row.views)
        for row, content in zip(rows, found, strict=True)
    ]
    return sorted(named, key=lambda each: -each[2])
