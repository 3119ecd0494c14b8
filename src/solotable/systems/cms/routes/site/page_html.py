"""A page of a site as HTML: its blocks, menus, posts and comments in the theme, with an entity tag."""

from __future__ import annotations

import asyncio
import zlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from solotable import AsyncStore
from solotable.pages.forms import Form
from solotable.systems.browser.render import POLICY
from solotable.systems.cms.entities import CommentSummary, Content
from solotable.systems.cms.formats.timestamps import Now
from solotable.systems.cms.routes.dependencies import clock_of
from solotable.systems.cms.services import Comments
from solotable.systems.cms.theme.blocks import blocks_of
from solotable.systems.cms.theme.layout import layout_of
from solotable.systems.cms.theme.render import Ribbon, ShownComment, ShownPage, ShownPost, Theme
from solotable.web import get_database, not_modified

from .markup import url_path
from .post_lists import PostList, date_of, post_lists
from .site_info import SiteInfo, site_infos

#: The page that has the contact form.
CONTACT = "/contact"
_MAX_COMMENTS = 100
#: `same-origin`: with `no-referrer`, browsers send `Origin: null` with forms.
_HEADERS = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
_PUBLIC = {"cache-control": "public, max-age=60", "vary": "accept, host"}
_PRIVATE = {"cache-control": "no-store", "x-robots-tag": "noindex"}


def theme_of(request: Request) -> Theme:
    """Return the app's theme."""
    return cast(Theme, request.app.state.theme)


async def site_of(request: Request, tenant: str) -> SiteInfo:
    """Return the public part of a tenant, and keep it for an error page."""
    site = await site_infos(request).get(get_database(request), tenant)
    request.state.site = site
    return site


@dataclass(frozen=True, slots=True)
class _Parts:
    """A page and what it shows beside its own content."""

    page: ShownPage
    tag: str


async def html_page(request: Request, page: Content, store: AsyncStore) -> Response:
    """Return a public page, or 304 if the client has it."""
    site = await site_of(request, page.tenant_id)
    parts = await _parts(request, page, store, site)
    # Another page may take this path with the same version.
    tag = f'"{page.node_id}-{page.version}-{site.tag}-{parts.tag}-{theme_of(request).tag}"'
    headers = {**_HEADERS, **_PUBLIC, "etag": tag}
    if not_modified(request, tag):
        return Response(status_code=304, headers=headers)
    return HTMLResponse(_html(request, site, parts.page), headers=headers)


async def private_page(
    request: Request,
    page: Content,
    store: AsyncStore,
    *,
    status: int = 200,
    form: Form | None = None,
    sent: str = "",
    ribbon: Ribbon | None = None,
) -> Response:
    """Return a page for one visitor: a preview, or the answer to a form. No cache keeps it."""
    site = await site_of(request, page.tenant_id)
    parts = await _parts(request, page, store, site)
    shown = replace(parts.page, ribbon=ribbon, form=form or parts.page.form, sent=sent)
    return HTMLResponse(_html(request, site, shown), status_code=status, headers={**_HEADERS, **_PRIVATE})


def _html(request: Request, site: SiteInfo, page: ShownPage) -> str:
    return theme_of(request).html("page.html", site=site, page=page, canonical=url_path(page.path))


async def _parts(request: Request, page: Content, store: AsyncStore, site: SiteInfo) -> _Parts:
    """Return what a page shows. Only posts read comments, and only pages that list posts read those."""
    layout = layout_of(blocks_of(page.blocks))
    posts, comments = await asyncio.gather(
        post_lists(request).get(store) if layout.posts else _no_posts(), _comments(page, store)
    )
    words, now = site.words, clock_of(request)
    shown = ShownPage(
        path=page.slug,
        title=page.title,
        description=page.description,
        is_post=page.kind == "post",
        layout=layout,
        at=words.day(_date(page, now)) if page.kind == "post" else None,
        comments=tuple(
            ShownComment(name=each.author_name, text=each.body, at=words.day(each.at)) for each in comments
        ),
        posts=_shown_posts(posts, site, now),
        form=Form() if page.slug == CONTACT else None,
    )
    said = repr([each.comment_id for each in comments])
    return _Parts(shown, f"{posts.tag}{zlib.crc32(said.encode()):08x}")


def _date(page: Content, now: Now) -> datetime:
    """Return the date that a page has, or will have when it is public."""
    if page.status == "scheduled" and page.publish_at is not None:
        return page.publish_at
    return date_of(page, now())


def _shown_posts(posts: PostList, site: SiteInfo, now: Now) -> tuple[ShownPost, ...]:
    at = now()
    return tuple(
        ShownPost(title=each.title, href=url_path(each.slug), at=site.words.day(date_of(each, at)))
        for each in posts.posts
    )


async def _no_posts() -> PostList:
    return PostList((), "")


async def _comments(page: Content, store: AsyncStore) -> list[CommentSummary]:
    if page.kind != "post":
        return []
    return list((await Comments(store).shown(page.node_id, limit=_MAX_COMMENTS)).items)
