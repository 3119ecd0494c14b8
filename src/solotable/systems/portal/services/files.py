"""Files of content: upload by a presigned PUT, attach to a Draft, download by status (3b).

The key of a file is `content/<id>/source/<name>`. Its name begins with a random id, and a URL stores bytes
once: a URL that is left over never changes a file that was attached or approved. An upload that is never
attached stays in the storage; let the bucket's lifecycle rule remove it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from solotable import AsyncDatabase, new_id
from solotable.errors import NotFound
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.file_types import MB, RESOURCES, check_bytes, check_type
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import FileRemoval
from solotable.systems.portal.entities.subscriptions import DOWNLOADER_DAYS, Downloader
from solotable.systems.portal.roles import Caller
from solotable.systems.storage import Storage

from .access import check_attachable, check_downloadable, check_visible
from .drafts import FileDetails, utc_now

#: The contract of the public project says one hour; its code and we say five minutes.
UPLOAD_SECONDS = 5 * 60
DOWNLOAD_SECONDS = 60 * 60
MAX_FILE_BYTES = 50 * MB
_SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
TYPES = {**RESOURCES, _SLIDES: MAX_FILE_BYTES}
_LONGEST_NAME = 100


class UploadTicket(BaseModel):
    """Where a client sends the bytes of a file, with which headers; `url` is None for a storage without."""

    model_config = ConfigDict(frozen=True)

    url: str | None
    key: str
    headers: dict[str, str]
    expires_at: datetime


class DownloadTicket(BaseModel):
    """Where a client gets the bytes of a file; `url` is None for a storage without."""

    model_config = ConfigDict(frozen=True)

    url: str | None
    key: str
    file_name: str
    content_type: str
    expires_at: datetime


class Files:
    """The files of content. `bucket` names the storage in the metadata (S3.6)."""

    def __init__(
        self,
        db: AsyncDatabase,
        storage: Storage,
        *,
        bucket: str = "local",
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._db = db
        self._storage = storage
        self._bucket = bucket
        self._now = now

    async def presign(
        self, caller: Caller, content_id: str, *, file_name: str, content_type: str, size_bytes: int
    ) -> UploadTicket:
        """Return a URL for the upload of a file, for a Draft of the caller's."""
        check_attachable(caller, await self._visible(caller, content_id))
        check_type(content_type, size_bytes, TYPES)
        key = f"{_folder(content_id)}{new_id()}-{sanitise(file_name)}"
        url = self._storage.upload_url(
            key, mime=content_type, size=size_bytes, seconds=UPLOAD_SECONDS, once=True
        )
        return UploadTicket(
            url=url,
            key=key,
            headers={"Content-Type": content_type, "If-None-Match": "*"},
            expires_at=self._now() + timedelta(seconds=UPLOAD_SECONDS),
        )

    async def attach(
        self,
        caller: Caller,
        content_id: str,
        *,
        key: str,
        file_name: str,
        content_type: str,
        revision: int | None = None,
    ) -> Content:
        """Attach an uploaded file to a Draft; the file that it replaces is removed."""
        found = await self._visible(caller, content_id)
        check_attachable(caller, found)
        details = validate(FileDetails, file_name=file_name, content_type=content_type)
        if not re.fullmatch(re.escape(_folder(content_id)) + r"[A-Za-z0-9][A-Za-z0-9._-]*", key):
            raise InvalidInput("key: is not a key of this content; use the one that the upload returned.")
        # Before the size: a removed file has none. A removal that comes later changes the revision.
        if await self._db.get(FileRemoval, s3_key=key, consistent=True) is not None:
            raise InvalidInput("key: is of a file that was replaced or expired; upload the file again.")
        size = await self._storage.size(key)
        if size is None:
            raise InvalidInput("key: the storage has no bytes under it; upload the file first.")
        check_type(content_type, size, TYPES)
        check_bytes(content_type, await self._storage.head(key))
        fields = {
            "s3_uri": f"s3://{self._bucket}/{key}",
            "s3_bucket": self._bucket,
            "s3_key": key,
            "file_name": details.file_name,
            "content_type": content_type,
            "size_bytes": size,
            "uploaded_at": self._now(),
            "revision": found.revision if revision is None else revision,
        }
        with unwrap_failure():
            async with self._db.transaction() as tx:
                stored = tx.put(found.model_copy(update=fields))
                if found.s3_key is not None and found.s3_key != key:
                    tx.put(FileRemoval(s3_key=found.s3_key, requested_at=self._now()))
        return stored

    async def download(self, caller: Caller, content_id: str) -> DownloadTicket:
        """Return a URL for the download; an expiry of the content then notifies the caller for 30 days."""
        found = await self._visible(caller, content_id)
        check_downloadable(caller, found)
        if found.s3_key is None or found.content_type is None:
            raise NotFound(f"Content {content_id!r} has no file.")
        now = self._now()
        name = found.file_name or "file"
        await self._db.put(
            Downloader(
                content_id=content_id,
                user_id=caller.user_id,
                last_at=now,
                expires_at=now + timedelta(days=DOWNLOADER_DAYS),
            )
        )
        return DownloadTicket(
            url=self._storage.download_url(found.s3_key, name=name, seconds=DOWNLOAD_SECONDS),
            key=found.s3_key,
            file_name=name,
            content_type=found.content_type,
            expires_at=now + timedelta(seconds=DOWNLOAD_SECONDS),
        )

    async def _visible(self, caller: Caller, content_id: str) -> Content:
        found = await self._db.require(Content, content_id=content_id, consistent=True)
        check_visible(caller, found)
        return found


def sanitise(file_name: str) -> str:
    """Return a name of ASCII letters, digits, dots, hyphens and underscores.

    >>> sanitise("../Über uns (2).pdf")
    'Uber-uns-2.pdf'
    >>> sanitise("报告")
    'file'
    """
    ascii_name = unicodedata.normalize("NFKD", file_name).encode("ascii", "ignore").decode()
    name = re.sub(r"[^A-Za-z0-9._]+", "-", ascii_name.replace("\\", "/").rpartition("/")[2])
    name = re.sub(r"-?\.-?", ".", name).strip("-.")
    return name[-_LONGEST_NAME:].lstrip("-._") or "file"


def _folder(content_id: str) -> str:
    return f"content/{content_id}/source/"
