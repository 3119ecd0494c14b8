"""Previews: signed links to pages that are not public yet.

A link names the tenant, the page and its end, sealed with the app's secrets. It opens the page at its own
path as it will be public, below a ribbon. Caches and search engines keep none of it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from solotable import AsyncStore
from solotable.systems.browser.dates import relative
from solotable.systems.cms.entities import Content
from solotable.systems.cms.entities.pages import is_public
from solotable.systems.cms.routes.access import EDITORS
from solotable.systems.cms.routes.dependencies import ActiveStore, clock_of
from solotable.systems.cms.services import Contents
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.cms.theme.render import Ribbon
from solotable.systems.http.sealing import Seal
from solotable.systems.routes import Id, JsonRoute, allow

from .markup import url_path
from .page_html import private_page

router = APIRouter(tags=["content"], route_class=JsonRoute)
PARAMETER = "preview"
_MAX_HOURS = 14 * 24
_LONGEST = 1000


class NewPreview(BaseModel):
    """How long a preview link works."""

    model_config = ConfigDict(extra="forbid")

    hours: Annotated[int, Field(ge=1, le=_MAX_HOURS)] = 24


class PreviewLink(BaseModel):
    """A link to a page on the tenant's site that works without a credential."""

    path: str
    expires: datetime


def preview_seal(request: Request) -> Seal:
    """Return the app's seal of preview links."""
    return cast(Seal, request.app.state.preview_seal)


@router.post("/content/{node_id}/preview", status_code=201, **allow(*EDITORS))
async def create_preview(node_id: Id, body: NewPreview, store: ActiveStore, request: Request) -> PreviewLink:
    """Make a link to a page as it is now and will be; open it at the site's host name."""
    page = await Contents(store).get(node_id)
    expires = clock_of(request)() + timedelta(hours=body.hours)
    content = json.dumps([page.node_id, expires.timestamp()])
    token = preview_seal(request).seal(content, tenant_of(store))
    return PreviewLink(path=f"{url_path(page.slug)}?{PARAMETER}={token}", expires=expires)


async def show_preview(request: Request, store: AsyncStore, token: str) -> Response:
    """Show the page of a link; 404 if the link is of another site, changed, or too old."""
    opened = preview_seal(request).open(token, tenant_of(store)) if len(token) <= _LONGEST else None
    if opened is None:
        raise HTTPException(404, "This preview link is not valid.")
    node_id, ends = json.loads(opened)
    now, expires = clock_of(request)(), datetime.fromtimestamp(ends, UTC)
    if expires <= now:
        raise HTTPException(404, "This preview link has expired.")
    page = await Contents(store).get(node_id)
    return await private_page(request, page, store, ribbon=_ribbon(page, now, expires))


def _ribbon(page: Content, now: datetime, expires: datetime) -> Ribbon:
    status = "Published" if is_public(page, now) else page.status.capitalize()
    waits = page.status == "scheduled" and not is_public(page, now) and page.publish_at is not None
    return Ribbon(
        status=status,
        version=page.version,
        saved=None if page.updated is None else relative(page.updated, now),
        public_from=relative(page.publish_at, now) if waits and page.publish_at else None,
        expires=relative(expires, now),
    )
