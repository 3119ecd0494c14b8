"""Search as routes and pages use it: what a caller may see, and hits as rows of a list."""

from __future__ import annotations

from solotable import Page
from solotable.systems.portal.entities.content import ContentSummary
from solotable.systems.portal.entities.values import Status
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.search.records import Hit, SearchQuery, Visibility
from solotable.systems.portal.search.service import Search
from solotable.systems.portal.services.access import visible_statuses


def visibility_of(caller: Caller) -> Visibility:
    """Return what a caller may find: content of the statuses of their role, and their own."""
    return Visibility(statuses=frozenset(visible_statuses(caller)), owner=caller.user_id)


def search_query(
    caller: Caller, text: str, suite: str | None, concept: str | None, status: Status | None
) -> SearchQuery:
    """Return the query of a caller for a text in a suite, a concept and a status."""
    return SearchQuery(
        visible=visibility_of(caller),
        text=text,
        suite=() if suite is None else (suite,),
        concept=() if concept is None else (concept,),
        status=() if status is None else (status,),
    )


async def find_content(
    search: Search, query: SearchQuery, *, limit: int, cursor: str | None
) -> Page[ContentSummary]:
    """Return a page of the content that matches, best first."""
    found = await search.page(query, cursor=cursor, limit=limit)
    return Page([summary_of(hit) for hit in found.hits], found.cursor, len(found.hits))


def summary_of(hit: Hit) -> ContentSummary:
    """Return a hit as a row of a list of content; the index has no version, date or file."""
    document = hit.document
    return ContentSummary.model_construct(
        content_id=document.content_id,
        status=document.status,
        title=document.title,
        summary=document.summary,
        product_suite=document.suite,
        product_concept=document.concept,
        audience_role=document.audience,
        owner_user_id=document.owner,
        tags=list(document.tags),
        last_updated=document.updated,
        revision=document.version,
    )
