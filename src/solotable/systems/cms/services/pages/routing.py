"""From a path to a page: one GetItem for the route, one for the page.

A former path of a page redirects to its current path. Without `preview` only public pages are found; a
redirect to an unpublished page is hidden too, because its target would reveal the path of a draft.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from solotable import AsyncStore, Page, Redirect
from solotable.errors import DataError
from solotable.systems.cms.entities.pages import Content, Route, RouteSummary, is_public
from solotable.systems.cms.formats.slugs import normalise_slug
from solotable.systems.cms.formats.timestamps import Now, now_ms

from .contents import Contents


class PathRedirect(BaseModel):
    """A permanent redirect from a path to another one."""

    model_config = ConfigDict(frozen=True)

    path: str
    to: str


class Routes:
    """The paths of one tenant."""

    def __init__(self, store: AsyncStore, *, now: Now = now_ms) -> None:
        self._store = store
        self._now = now

    async def resolve(self, path: str, *, preview: bool = False) -> Content | PathRedirect | None:
        """Return the page at a path, its redirect, or None."""
        try:
            slug = normalise_slug(path)
        except DataError:  # no page can have such a path
            return None
        found = await self._store.names(Route).resolve(slug, follow=True)
        if found is None:
            return None
        if isinstance(found, Redirect):
            return await self._redirect(found, preview=preview)
        content = await self._store.get(Content, node_id=found.node_id)
        if content is None or not (preview or is_public(content, self._now())):
            return None
        return content

    async def _redirect(self, found: Redirect[Route], *, preview: bool) -> PathRedirect | None:
        route = found.entity
        if route is None:
            return None
        # The index has the status for half a read unit, whatever the size of the page.
        shown = preview or await Contents(self._store, now=self._now).is_public(route.node_id)
        return PathRedirect(path=found.name, to=found.to) if shown else None

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[RouteSummary]:
        """Return routes by path."""
        return await self._store.page(Route.listed(), limit=limit, cursor=cursor)

    async def redirects(self, *, limit: int = 50, cursor: str | None = None) -> Page[PathRedirect]:
        """Return redirects; an empty page may still have a cursor."""
        found = await self._store.names(Route).redirects(Route.of_tenant(), limit=limit, cursor=cursor)
        redirects = [PathRedirect(path=each.name, to=each.to) for each in found.items]
        return Page(items=redirects, cursor=found.cursor, scanned=found.scanned)

    async def release(self, path: str) -> None:
        """Delete a redirect, so that another page can use its path."""
        await self._store.names(Route).release(normalise_slug(path))
