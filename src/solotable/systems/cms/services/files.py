"""Assets and resources: metadata in the table, bytes in a storage.

A file is announced first, by type and size; then its bytes come, through us or, where the storage has URLs,
past us. It is shown when its bytes are there. A resource is handed out for some minutes: 15 to a lead, 5
after a purchase.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from solotable import AsyncStore, Page
from solotable.errors import AlreadyExists, NotFound
from solotable.systems.cms.entities.catalogue import Asset, AssetSummary, Resource, ResourceSummary
from solotable.systems.cms.errors import Refused, made
from solotable.systems.cms.formats.mime import ASSETS, RESOURCES, judge_bytes, judge_kind
from solotable.systems.cms.storage import Storage

UPLOAD_SECONDS = 15 * 60
DOWNLOAD_SECONDS = {"lead": 15 * 60, "purchase": 5 * 60}

FileT = TypeVar("FileT", bound=Asset | Resource)


class Announced(BaseModel):
    """Where the bytes of an announced file go: to a URL, or (None) through us."""

    model_config = ConfigDict(frozen=True)

    id: str
    upload_url: str | None


class _Files(Generic[FileT]):
    """What is the same for all files."""

    def __init__(self, store: AsyncStore, storage: Storage, entity: type[FileT], id_field: str) -> None:
        self._store = store
        self._storage = storage
        self._entity = entity
        self._id = id_field

    async def get(self, id: str) -> FileT:  # noqa: A002 - the name that every entity's id has
        """Return the metadata of a file, or raise NotFound."""
        return await self._store.require(self._entity, **self._key(id))

    async def upload(self, id: str, data: bytes) -> FileT:  # noqa: A002
        """Take the bytes of an announced file; they are judged by what was announced."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        if found.status == "stored":
            # They are served as immutable, and may lie in caches for a year.
            raise AlreadyExists(f"The bytes of {self._entity.__name__} {id!r} are here; announce another.")
        if len(data) != found.size:
            raise Refused(f"{found.size} bytes were announced, and {len(data)} have come.")
        judge_bytes(found.mime, data)
        await self._storage.put(found.storage_key, data, mime=found.mime)
        return await self._store.update(found, set={"status": "stored"})

    async def confirm(self, id: str) -> FileT:  # noqa: A002
        """Say that bytes went past us to a URL: they are looked up and judged, not believed."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        if await self._storage.size(found.storage_key) != found.size:
            raise Refused(f"The {found.size} bytes that were announced are not there.")
        judge_bytes(found.mime, await self._storage.beginning(found.storage_key))
        return await self._store.update(found, set={"status": "stored"})

    async def read(self, id: str) -> tuple[FileT, bytes]:  # noqa: A002
        """Return a file and its bytes."""
        found = await self._stored(id)
        return found, await self._storage.get(found.storage_key)

    async def stream(self, id: str) -> tuple[FileT, AsyncIterator[bytes]]:  # noqa: A002
        """Return a file and its bytes, piece by piece."""
        found = await self._stored(id)
        return found, await self._storage.stream(found.storage_key)

    async def delete(self, id: str) -> None:  # noqa: A002
        """Delete a file: first the metadata, so that nothing leads to bytes that are gone."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        await self._store.delete(found)
        await self._storage.delete(found.storage_key)

    async def _stored(self, id: str) -> FileT:  # noqa: A002
        found = await self._store.require(self._entity, **self._key(id))
        if found.status != "stored":
            raise NotFound(f"The bytes of {self._entity.__name__} {id!r} have not come yet.")
        return found

    def _key(self, id: str) -> dict[str, Any]:  # noqa: A002
        return {self._id: id}

    def _announced(self, id: str, file: FileT) -> Announced:  # noqa: A002
        url = self._storage.upload_url(
            file.storage_key, mime=file.mime, size=file.size, seconds=UPLOAD_SECONDS
        )
        return Announced(id=id, upload_url=url)


class Assets(_Files[Asset]):
    """The assets of one tenant: pictures and films for everybody."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        super().__init__(store, storage, Asset, "asset_id")

    async def announce(self, *, name: str, mime: str, size: int, alt: str = "") -> Announced:
        """Take in the metadata of a file whose bytes will come."""
        judge_kind(mime, size, ASSETS)
        asset = await self._store.create(made(Asset, name=name, mime=mime, size=size, alt=alt))
        return self._announced(asset.asset_id, asset)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[AssetSummary]:
        """Return assets, newest first."""
        return await self._store.page(Asset.listed(), limit=limit, cursor=cursor)


class Resources(_Files[Resource]):
    """The resources of one tenant: files that are handed out."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        super().__init__(store, storage, Resource, "resource_id")

    async def announce(
        self, *, name: str, mime: str, size: int, gate: Literal["lead", "purchase"] = "lead"
    ) -> Announced:
        """Take in the metadata of a file whose bytes will come."""
        judge_kind(mime, size, RESOURCES)
        found = await self._store.create(made(Resource, name=name, mime=mime, size=size, gate=gate))
        return self._announced(found.resource_id, found)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ResourceSummary]:
        """Return resources, newest first."""
        return await self._store.page(Resource.listed(), limit=limit, cursor=cursor)

    async def hand_out(self, resource_id: str) -> str | None:
        """Return a URL that is good for some minutes, or None: the bytes are `read` through us."""
        found = await self._stored(resource_id)
        seconds = DOWNLOAD_SECONDS[found.gate]
        return self._storage.download_url(found.storage_key, name=found.name, seconds=seconds)
