"""Temporary data of a tenant: it expires after a day, and no read returns it after that (S4.42)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from solotable import AsyncStore
from solotable.flow import scope_of
from solotable.systems.errors import validate
from solotable.systems.surveys.entities.access import Temp

LIFETIME = timedelta(hours=24)


class TempData:
    """The temporary data of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def put(self, temp_id: str, data: dict[str, Any]) -> Temp:
        """Store data for 24 hours, and replace what has this id."""
        expires = scope_of(self._store).now() + LIFETIME
        return await self._store.put(validate(Temp, temp_id=temp_id, data=data, ttl=expires))

    async def get(self, temp_id: str) -> Temp:
        """Return data, or raise NotFound; also before DynamoDB has removed what expired."""
        return await self._store.require(Temp, temp_id=temp_id)

    async def delete(self, temp_id: str) -> None:
        """Delete data, if it exists."""
        await self._store.delete(Temp, temp_id=temp_id)
