"""The settings of a tenant: a tree of JSON, hidden but for what an administrator has declared public.

A change is merged into the tree: what is not named stays, null removes, and what comes back hidden stays
what it is. A list is replaced whole; an entry that comes back as it was shown keeps its hidden values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solotable import AsyncDatabase
from solotable.errors import VersionConflict
from solotable.systems.cms.entities.tenancy import MOST_SETTINGS, TenantConfig
from solotable.systems.cms.errors import Refused, made
from solotable.systems.cms.formats.json_sizes import within

from .redaction import Public, hidden_of, merged, parse_path, redacted

#: Attempts of a change that met others and did not name a version.
_ATTEMPTS = 10


def shown(config: TenantConfig) -> dict[str, Any]:
    """Return the settings of a tenant as those see them who may not see secrets."""
    return redacted(config.settings, Public(config.public))


class Settings:
    """The settings of one tenant."""

    def __init__(self, db: AsyncDatabase, tenant: str) -> None:
        self._db = db
        self._tenant = tenant

    async def read(self) -> dict[str, Any]:
        """Return the settings; what is not declared public is hidden."""
        return shown(await self._db.require(TenantConfig, id=self._tenant))

    async def secrets(self) -> dict[str, Any]:
        """Return what is hidden as it is; for administrators of the tenant."""
        found = await self._db.require(TenantConfig, id=self._tenant)
        return hidden_of(found.settings, Public(found.public))

    async def declare(self, paths: Iterable[str], *, version: int | None = None) -> TenantConfig:
        """Declare which values are public, by their paths; all others are hidden from now on."""
        given = sorted(set(paths))
        for path in given:
            parse_path(path)
        current = await self._db.require(TenantConfig, id=self._tenant, consistent=True)
        made(TenantConfig, **{**current.model_dump(), "public": given})
        expected = current.version if version is None else version
        return await self._db.update(TenantConfig, id=self._tenant, version=expected, set={"public": given})

    async def merge(self, patch: Mapping[str, Any], *, version: int | None = None) -> dict[str, Any]:
        """Merge a change into the settings, and return them as `read` does.

        Without a version a change that meets another is merged into that.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._merge(patch, version)
            except VersionConflict:
                if version is not None:
                    raise
        return await self._merge(patch, version)

    async def _merge(self, patch: Mapping[str, Any], version: int | None) -> dict[str, Any]:
        current = await self._db.require(TenantConfig, id=self._tenant, consistent=True)
        try:
            settings = within(MOST_SETTINGS)(merged(current.settings, patch, Public(current.public)))
        except ValueError as refused:
            raise Refused(f"The settings: this {refused}.") from None
        expected = current.version if version is None else version
        stored = await self._db.update(
            TenantConfig, id=self._tenant, version=expected, set={"settings": settings}
        )
        return shown(stored)
