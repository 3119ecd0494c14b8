"""The public part of a tenant for HTML pages: name, language, menus, details; cached for a minute."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from typing import cast

from fastapi import Request

from solotable import AsyncDatabase
from solotable.cache import TTLCache
from solotable.systems.cms.entities import TenantConfig
from solotable.systems.cms.services import Tenants
from solotable.systems.cms.services.tenancy.site_settings import SiteSettings, site_settings_of
from solotable.systems.cms.theme.links import Link, links_of
from solotable.systems.cms.theme.words import Words, words_of

#: A language tag such as `de` or `pt-BR` (RFC 5646).
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_DEFAULT_LANGUAGE = "en"
#: More links would not fit beside the name.
_MAX_NAVIGATION = 6
_MAX_FOOTER = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteInfo:
    """The public part of a tenant and of its settings."""

    name: str
    language: str = _DEFAULT_LANGUAGE
    words: Words = field(default_factory=Words)
    navigation: tuple[Link, ...] = ()
    footer: tuple[Link, ...] = ()
    details: SiteSettings = field(default_factory=SiteSettings)
    #: A short text that differs for other sites and settings, for entity tags.
    tag: str = field(init=False)

    def __post_init__(self) -> None:
        shown = (self.name, self.language, self.words.replaced, self.navigation, self.footer, self.details)
        object.__setattr__(self, "tag", f"{zlib.crc32(repr(shown).encode()):08x}")


def site_info_of(config: TenantConfig) -> SiteInfo:
    """Return the public part of a tenant; settings of another form are left out."""
    settings = config.settings
    given = settings.get("language")
    language = given if isinstance(given, str) and _LANGUAGE.fullmatch(given) else _DEFAULT_LANGUAGE
    words = words_of(language, settings.get("words"))
    # Every site has a page with the contact form.
    contact = (Link(words["contact"], "/contact"),)
    return SiteInfo(
        name=config.name,
        language=language,
        words=words,
        navigation=links_of(settings.get("navLinks"), limit=_MAX_NAVIGATION) or contact,
        footer=links_of(settings.get("footerLinks"), limit=_MAX_FOOTER) or contact,
        details=site_settings_of(settings),
    )


class SiteInfoCache:
    """The public parts of all tenants."""

    def __init__(self, *, ttl_seconds: float = 60.0, max_size: int = 1024) -> None:
        self._cache: TTLCache[str, SiteInfo] = TTLCache(ttl_seconds=ttl_seconds, max_size=max_size)

    async def get(self, db: AsyncDatabase, tenant: str) -> SiteInfo:
        """Return the public part of a tenant."""

        async def load() -> SiteInfo:
            return site_info_of(await Tenants(db).get(tenant))

        return await self._cache.load_async(tenant, load)

    def forget(self, tenant: str) -> None:
        """Forget a tenant after it or its settings changed."""
        self._cache.forget(tenant)


def site_infos(request: Request) -> SiteInfoCache:
    """Return the app's cache of the public parts of tenants."""
    return cast(SiteInfoCache, request.app.state.site_infos)
