"""Documents with versions: metadata in the table, a body for each version in a storage (S4.35).

The body of a new version is stored first, under a separate key, then the version: no version points to a
missing body. The newest ten versions are kept; the body of the one that a write pushes out is removed after
it. A crash between the two leaves bytes behind that belong to no version.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from solotable import AsyncStore, Page, new_id
from solotable.errors import NotFound, SolotableError
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.file_types import DOCUMENTS, check_bytes, check_type
from solotable.systems.storage import Storage
from solotable.systems.surveys.entities.files import (
    KEPT_VERSIONS,
    MAX_DOCUMENT_BYTES,
    Document,
    DocumentSummary,
)

TYPES = dict.fromkeys(DOCUMENTS, MAX_DOCUMENT_BYTES)


class Documents:
    """The documents of one tenant."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        self._store = store
        self._storage = storage

    async def create(
        self, *, name: str, mime: str, data: bytes, owner: str, document_id: str | None = None
    ) -> Document:
        """Create a document with its first version."""
        self._check(mime, data)
        document = validate(
            Document,
            **({} if document_id is None else {"document_id": document_id}),
            name=name,
            mime=mime,
            size=len(data),
            owner=owner,
            sha256=hashlib.sha256(data).hexdigest(),
        )
        # The scope fills the tenant in; the storage key needs it before.
        document = document.model_copy(update={"tenant_id": self._store.tenant_id})
        await self._storage.put(document.storage_key, data, mime=mime)
        return await self._write(document, create=True)

    async def replace(self, document_id: str, *, mime: str, data: bytes, version: int) -> Document:
        """Store a new version, if `version` is the newest one."""
        current = await self.get(document_id, consistent=True)
        self._check(mime, data)
        changed = current.model_copy(
            update={
                "mime": mime,
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "body_id": new_id(),
                "version": version,
            }
        )
        # The write of the new version removes the oldest one.
        oldest = await self._history(document_id).get(current.version + 1 - KEPT_VERSIONS)
        await self._storage.put(changed.storage_key, data, mime=mime)
        stored = await self._write(changed, create=False)
        if oldest is not None:
            await self._storage.delete(oldest.storage_key)
        return stored

    async def get(self, document_id: str, *, consistent: bool = False) -> Document:
        """Return the newest version, or raise NotFound."""
        return await self._store.require(Document, document_id=document_id, consistent=consistent)

    async def version(self, document_id: str, version: int) -> Document:
        """Return a version, or raise NotFound if it does not exist or is not kept any more."""
        found: Document | None = await self._history(document_id).get(version)
        if found is None:
            raise NotFound(f"Document {document_id!r} has no version {version}.")
        return found

    async def versions(self, document_id: str) -> list[Document]:
        """Return the kept versions, newest first (Q8)."""
        current = await self.get(document_id)
        former = await self._history(document_id).list(limit=KEPT_VERSIONS)
        return [current, *former.items]

    async def read(self, document: Document) -> AsyncIterator[bytes]:
        """Return the body of a version in chunks."""
        return await self._storage.stream(document.storage_key)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[DocumentSummary]:
        """Return documents, newest first."""
        return await self._store.page(Document.listed(), limit=limit, cursor=cursor)

    async def delete(self, document_id: str, *, version: int | None = None) -> None:
        """Delete a document with its versions and their bodies."""
        versions = await self.versions(document_id)
        expected = versions[0].version if version is None else version
        await self._store.delete(Document, document_id=document_id, version=expected)
        await self._history(document_id).purge()
        for each in versions:
            await self._storage.delete(each.storage_key)

    async def _write(self, document: Document, *, create: bool) -> Document:
        """Write a version; remove its body if that fails."""
        try:
            return await (self._store.create(document) if create else self._store.put(document))
        except SolotableError:
            with suppress(SolotableError):
                await self._storage.delete(document.storage_key)
            raise

    def _history(self, document_id: str) -> Any:
        return self._store.history(Document, document_id=document_id)

    def _check(self, mime: str, data: bytes) -> None:
        if len(data) > MAX_DOCUMENT_BYTES:
            raise InvalidInput(f"A document has at most {MAX_DOCUMENT_BYTES} bytes; got {len(data)}.")
        check_type(mime, len(data), TYPES)
        check_bytes(mime, data)
