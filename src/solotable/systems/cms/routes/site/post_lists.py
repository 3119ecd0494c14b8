"""The newest posts of a site, for blocks that list them: read from the index, cached for a minute."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from fastapi import Request

from solotable import AsyncStore
from solotable.cache import TTLCache
from solotable.systems.cms.entities import Content, ContentSummary
from solotable.systems.cms.entities.pages import is_public
from solotable.systems.cms.formats.timestamps import Now, now_ms
from solotable.systems.cms.services import Contents
from solotable.systems.cms.services.visitors import tenant_of
from solotable.systems.cms.theme.blocks import MAX_POSTS

_PAGE_SIZE = 100
#: The pages that are read for a list of posts.
_MAX_READ = 1000


@dataclass(frozen=True, slots=True)
class PostList:
    """Posts, the newest first; `tag` differs for another list, for entity tags."""

    posts: tuple[ContentSummary, ...]
    tag: str


class PostLists:
    """The newest posts of all tenants."""

    def __init__(self, *, ttl_seconds: float = 60.0, max_size: int = 1024, now: Now = now_ms) -> None:
        self._now = now
        self._cache: TTLCache[str, PostList] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size)

    async def get(self, store: AsyncStore) -> PostList:
        """Return the newest public posts of a store's tenant."""
        return await self._cache.load_async(tenant_of(store), lambda: self._read(store))

    def forget(self, tenant: str) -> None:
        """Forget the posts of a tenant after a page changed."""
        self._cache.forget(tenant)

    async def _read(self, store: AsyncStore) -> PostList:
        contents, found, read = Contents(store), list[ContentSummary](), 0
        cursor: str | None = None
        now = self._now()
        while len(found) < MAX_POSTS and read < _MAX_READ:
            page = await contents.list(limit=_PAGE_SIZE, cursor=cursor)
            found += [each for each in page.items if each.kind == "post" and is_public(each, now)]
            read += _PAGE_SIZE
            cursor = page.cursor
            if cursor is None:
                break
        posts = tuple(sorted(found, key=lambda each: (date_of(each, now), each.node_id), reverse=True))
        shown = [(each.node_id, each.version) for each in posts[:MAX_POSTS]]
        return PostList(posts[:MAX_POSTS], f"{zlib.crc32(repr(shown).encode()):08x}")


def date_of(page: Content | ContentSummary, now: datetime) -> datetime:
    """Return the date of a post: its publication, or its creation if it had no schedule."""
    planned = page.publish_at
    return planned if planned is not None and planned <= now else page.created or now


def post_lists(request: Request) -> PostLists:
    """Return the app's lists of posts."""
    return cast(PostLists, request.app.state.post_lists)
