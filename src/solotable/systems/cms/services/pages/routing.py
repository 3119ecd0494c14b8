"""From a path to a page: one GetItem for the route, one for the page.

A former path of a page redirects straight to where the page is now. Only what is published is shown, and a
redirect to anything else is None as well: its target would tell the path of a draft. `preview` shows both.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from solotable import AsyncStore, Page, Redirect
from solotable.errors import DataError
from solotable.systems.cms.entities.pages import Content, Route, RouteSummary
from solotable.systems.cms.formats.slugs import clean_slug

from .contents import Contents


class Moved(BaseModel):
    """The path leads elsewhere for good: 301."""

    model_config = ConfigDict(frozen=True)

    path: str
    to: str


class Routes:
    """The paths of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def resolve(self, path: str, *, preview: bool = False) -> Content | Moved | None:
        """Return the page at a path, where it has moved to, or None."""
        try:
            slug = clean_slug(path)
        except DataError:  # no page can have such a path
            return None
        found = await self._store.names(Route).resolve(slug, follow=True)
        if found is None:
            return None
        if isinstance(found, Redirect):
            return await self._moved(found, preview=preview)
        content = await self._store.get(Content, node_id=found.node_id)
        if content is None or not (preview or content.status == "published"):
            return None
        return content

    async def _moved(self, found: Redirect[Route], *, preview: bool) -> Moved | None:
        route = found.entity
        if route is None:
            return None
        # The index knows the status for half a read unit, whatever the page weighs.
        shown = preview or await Contents(self._store).is_published(route.node_id)
        return Moved(path=found.name, to=found.to) if shown else None

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[RouteSummary]:
        """Return routes by path."""
        return await self._store.page(Route.listed(), limit=limit, cursor=cursor)

    async def redirects(self, *, limit: int = 50, cursor: str | None = None) -> Page[Moved]:
        """Return the redirects of a page of routes; there may be none on a page that has a cursor."""
        found = await self._store.names(Route).redirects(Route.of_tenant(), limit=limit, cursor=cursor)
        moved = [Moved(path=each.name, to=each.to) for each in found.items]
        return Page(items=moved, cursor=found.cursor, scanned=found.scanned)

    async def release(self, path: str) -> None:
        """Give up a redirect, so that another page may have its path."""
        await self._store.names(Route).release(clean_slug(path))
