"""The settings of a tenant: a JSON tree whose values are hidden unless they are declared public.

A change is merged into the tree: absent values stay, null removes a value, and a value that is sent back
hidden stays. A list is replaced; an entry that is sent back as it was shown keeps its hidden values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from solotable import AsyncDatabase
from solotable.errors import SolotableError, VersionConflict
from solotable.systems.cms.entities.tenancy import MAX_SETTINGS, TenantConfig
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.formats.json_sizes import check_json_size

from .redaction import PublicPointers, hidden_values, merge, parse_path, redact
from .site_settings import check_site_settings


def visible_settings(config: TenantConfig) -> dict[str, Any]:
    """Return the settings of a tenant with the values hidden that are not public."""
    return redact(config.settings, PublicPointers(config.public))


class Settings:
    """The settings of one tenant."""

    def __init__(self, db: AsyncDatabase, tenant: str) -> None:
        self._db = db
        self._tenant = tenant

    async def read(self) -> dict[str, Any]:
        """Return the settings; values that are not public are hidden."""
        return visible_settings(await self._db.require(TenantConfig, id=self._tenant))

    async def secrets(self) -> dict[str, Any]:
        """Return the hidden settings in clear, for administrators of the tenant."""
        found = await self._db.require(TenantConfig, id=self._tenant)
        return hidden_values(found.settings, PublicPointers(found.public))

    async def declare(self, paths: Iterable[str], *, version: int | None = None) -> TenantConfig:
        """Set the paths of the public values; all others are hidden."""
        given = sorted(set(paths))
        for path in given:
            parse_path(path)
        current = await self._db.require(TenantConfig, id=self._tenant, consistent=True)
        validate(TenantConfig, **{**current.model_dump(), "public": given})
        expected = current.version if version is None else version
        return await self._db.update(TenantConfig, id=self._tenant, version=expected, set={"public": given})

    async def merge(self, patch: Mapping[str, Any], *, version: int | None = None) -> dict[str, Any]:
        """Merge a change into the settings, and return them as `read` does.

        Without a version, the change is merged again after a conflict with another one.
        """

        async def attempt() -> dict[str, Any]:
            current = await self._db.require(TenantConfig, id=self._tenant, consistent=True)
            try:
                merged = merge(current.settings, patch, PublicPointers(current.public))
                settings = check_json_size(MAX_SETTINGS)(merged)
                if "site" in patch:
                    check_site_settings(settings.get("site"))
            except ValueError as error:
                raise InvalidInput(f"The settings object {error}.") from None
            expected = current.version if version is None else version
            stored = await self._db.update(
                TenantConfig, id=self._tenant, version=expected, set={"settings": settings}
            )
            return visible_settings(stored)

        def may_retry(error: SolotableError) -> bool:
            return version is None and isinstance(error, VersionConflict)

        return await self._db.retry_conflicts(attempt, when=may_retry)
