"""The name and language of a site, which its HTML pages show; cached for a minute."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from solotable import AsyncDatabase
from solotable.cache import TTLCache
from solotable.systems.cms.services import Tenants

#: A language tag such as `de` or `pt-BR` (RFC 5646).
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_DEFAULT_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class SiteInfo:
    """The name of a tenant, and the language in its settings (`language`)."""

    name: str
    language: str
    #: A short text that differs for other names and languages, for entity tags.
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        tag = f"{zlib.crc32(f'{self.language}|{self.name}'.encode()):08x}"
        object.__setattr__(self, "tag", tag)


class SiteInfoCache:
    """The names and languages of all sites."""

    def __init__(self, *, ttl_seconds: float = 60.0, max_size: int = 1024) -> None:
        self._cache: TTLCache[str, SiteInfo] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size)

    async def get(self, db: AsyncDatabase, tenant: str) -> SiteInfo:
        """Return the name and language of a tenant's site."""

        async def load() -> SiteInfo:
            config = await Tenants(db).get(tenant)
            language = config.settings.get("language")
            is_valid = isinstance(language, str) and _LANGUAGE.fullmatch(language)
            return SiteInfo(config.name, cast(str, language) if is_valid else _DEFAULT_LANGUAGE)

        return await self._cache.load_async(tenant, load)

    def forget(self, tenant: str) -> None:
        """Forget a tenant after it or its settings changed."""
        self._cache.forget(tenant)


def site_infos(request: Request) -> SiteInfoCache:
    """Return the app's cache of site names and languages."""
    return cast(SiteInfoCache, request.app.state.site_infos)
