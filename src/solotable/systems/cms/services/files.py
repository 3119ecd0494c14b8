"""Assets and resources: metadata in the table, bytes in a storage.

First register a file with its type and size, then upload its bytes: through the app, or directly to a storage
that has URLs. The file is available when its bytes are stored. A download URL of a resource is valid for some
minutes: 15 for a lead, 5 for a purchase.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from solotable import AsyncStore, Page
from solotable.errors import AlreadyExists, NotFound
from solotable.systems.cms.entities.catalogue import Asset, AssetSummary, Resource, ResourceSummary
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.file_types import ASSETS, RESOURCES, check_bytes, check_type
from solotable.systems.storage import Storage

UPLOAD_SECONDS = 15 * 60
DOWNLOAD_SECONDS = {"lead": 15 * 60, "purchase": 5 * 60}

FileT = TypeVar("FileT", bound=Asset | Resource)


class UploadTarget(BaseModel):
    """Where to upload the bytes of a registered file: a URL, or None for the app itself."""

    model_config = ConfigDict(frozen=True)

    id: str
    upload_url: str | None


class _Files(Generic[FileT]):
    """The verbs of assets and resources."""

    def __init__(self, store: AsyncStore, storage: Storage, entity: type[FileT], id_field: str) -> None:
        self._store = store
        self._storage = storage
        self._entity = entity
        self._id = id_field

    async def get(self, id: str) -> FileT:  # noqa: A002 - the services' name for an entity's id
        """Return the metadata of a file, or raise NotFound."""
        return await self._store.require(self._entity, **self._key(id))

    async def upload(self, id: str, data: bytes) -> FileT:  # noqa: A002
        """Store the bytes of a registered file, if they have its type and size."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        if found.status == "stored":
            # They are served as immutable, and caches may hold them for a year.
            raise AlreadyExists(
                f"{self._entity.__name__} {id!r} has its bytes already; register another file."
            )
        if len(data) != found.size:
            raise InvalidInput(f"The file was registered with {found.size} bytes, got {len(data)}.")
        check_bytes(found.mime, data)
        await self._storage.put(found.storage_key, data, mime=found.mime)
        return await self._store.update(found, set={"status": "stored"})

    async def confirm(self, id: str) -> FileT:  # noqa: A002
        """Check the bytes that a client uploaded to a URL, and mark the file as stored."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        if await self._storage.size(found.storage_key) != found.size:
            raise InvalidInput(f"The storage does not have the {found.size} registered bytes.")
        check_bytes(found.mime, await self._storage.head(found.storage_key))
        return await self._store.update(found, set={"status": "stored"})

    async def read(self, id: str) -> tuple[FileT, bytes]:  # noqa: A002
        """Return a file and its bytes."""
        found = await self._stored(id)
        return found, await self._storage.get(found.storage_key)

    async def stream(self, id: str) -> tuple[FileT, AsyncIterator[bytes]]:  # noqa: A002
        """Return a file and its bytes in chunks."""
        found = await self._stored(id)
        return found, await self._storage.stream(found.storage_key)

    async def delete(self, id: str) -> None:  # noqa: A002
        """Delete a file: first the metadata, so that it never points to missing bytes."""
        found = await self._store.require(self._entity, consistent=True, **self._key(id))
        await self._store.delete(found)
        await self._storage.delete(found.storage_key)

    async def _stored(self, id: str) -> FileT:  # noqa: A002
        found = await self._store.require(self._entity, **self._key(id))
        if found.status != "stored":
            raise NotFound(f"The bytes of {self._entity.__name__} {id!r} are not uploaded yet.")
        return found

    def _key(self, id: str) -> dict[str, Any]:  # noqa: A002
        return {self._id: id}

    def _upload_target(self, id: str, file: FileT) -> UploadTarget:  # noqa: A002
        url = self._storage.upload_url(
            file.storage_key, mime=file.mime, size=file.size, seconds=UPLOAD_SECONDS
        )
        return UploadTarget(id=id, upload_url=url)


class Assets(_Files[Asset]):
    """The assets of one tenant: public images and videos."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        super().__init__(store, storage, Asset, "asset_id")

    async def register(self, *, name: str, mime: str, size: int, alt: str = "") -> UploadTarget:
        """Store the metadata of a file, before its bytes are uploaded."""
        check_type(mime, size, ASSETS)
        asset = await self._store.create(validate(Asset, name=name, mime=mime, size=size, alt=alt))
        return self._upload_target(asset.asset_id, asset)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[AssetSummary]:
        """Return assets, newest first."""
        return await self._store.page(Asset.listed(), limit=limit, cursor=cursor)


class Resources(_Files[Resource]):
    """The resources of one tenant: files for leads and buyers."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        super().__init__(store, storage, Resource, "resource_id")

    async def register(
        self, *, name: str, mime: str, size: int, gate: Literal["lead", "purchase"] = "lead"
    ) -> UploadTarget:
        """Store the metadata of a file, before its bytes are uploaded."""
        check_type(mime, size, RESOURCES)
        found = await self._store.create(validate(Resource, name=name, mime=mime, size=size, gate=gate))
        return self._upload_target(found.resource_id, found)

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> Page[ResourceSummary]:
        """Return resources, newest first."""
        return await self._store.page(Resource.listed(), limit=limit, cursor=cursor)

    async def download_url(self, resource_id: str) -> str | None:
        """Return a URL that is valid for some minutes; None without URLs: use `read`."""
        found = await self._stored(resource_id)
        seconds = DOWNLOAD_SECONDS[found.gate]
        return self._storage.download_url(found.storage_key, name=found.name, seconds=seconds)
