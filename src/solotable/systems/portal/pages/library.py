"""`/`: the library with its search and filters, as a GET form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from starlette.responses import Response

from solotable.systems.browser.render import Done
from solotable.systems.http.cursors import CursorSeal
from solotable.systems.portal.events.recording import EventLog
from solotable.systems.portal.routes.searches import visibility_of
from solotable.systems.portal.search.records import LONGEST_TEXT, MOST_WORDS, SearchQuery
from solotable.systems.portal.search.service import Search

from .browser.visits import Visit
from .views.library import FILTERS, library_page

_PAGE = 20
_MESSAGES = {"deleted": Done(title="Deleted.", text="The content and its file are gone.")}


async def show_library(visit: Visit) -> Response:
    """Show the content that matches, and the next page behind a cursor."""
    params = visit.request.query_params
    # More words than a query takes make it no better.
    text = " ".join(visit.query("query")[:LONGEST_TEXT].split()[:MOST_WORDS])
    chosen = {name: tuple(dict.fromkeys(each for each in params.getlist(name) if each)) for name in FILTERS}
    query = SearchQuery(visible=visibility_of(visit.caller), text=text, **chosen)
    search = cast(Search, visit.state.search)
    cursor = seal_of(visit).open(params.get("cursor"), user_id=visit.caller.user_id, list_name="library")
    page = await search.page(query, cursor=cursor, limit=_PAGE)
    if text and cursor is None:
        await EventLog(visit.db).record(
            "search",
            user_id=visit.caller.user_id,
            metadata={"query": text.casefold(), "results": page.total},
        )
    sealed = seal_of(visit).seal(page.cursor, user_id=visit.caller.user_id, list_name="library")
    shown = visit.query("shown")
    view = library_page(
        query,
        page,
        next_cursor=sealed,
        shown_before=int(shown) if shown.isascii() and shown.isdigit() and len(shown) < 9 else 0,
        now=datetime.now(UTC),
        may_create=visit.caller.has("Contributor"),
    )
    return await visit.page("library.html", page=view, done=_MESSAGES.get(visit.query("done")))


def seal_of(visit: Visit) -> CursorSeal:
    """Return the app's seal of cursors."""
    return cast(CursorSeal, visit.state.cursor_seal)
