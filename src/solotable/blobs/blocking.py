"""The async methods of a storage, made from its blocking ones."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime

from solotable._entities.declare.field_storage import StoredObject


class BlockingStorage(ABC):
    """The base of a storage with blocking methods; the async ones call them in threads.

    See `BlobStorage` for what each method does.
    """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""

    @abstractmethod
    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object durably, or replace it; its time is now."""

    @abstractmethod
    def touch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object to now; return whether it exists."""

    @abstractmethod
    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Delete an object unless it was stored or touched after a time; return whether it was deleted."""

    @abstractmethod
    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose names start with a prefix, which is empty or ends with a slash."""

    async def aget(self, name: str) -> bytes | None:
        """Return the content of an object in a thread."""
        return await asyncio.to_thread(self.get, name)

    async def aput(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object in a thread."""
        await asyncio.to_thread(self.put, name, data, media_type)

    async def atouch(self, name: str, media_type: str | None) -> bool:
        """Set the time of an object in a thread."""
        return await asyncio.to_thread(self.touch, name, media_type)
