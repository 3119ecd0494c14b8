"""Storage of file bytes: a protocol, a folder, and any S3-compatible bucket.

Services make the keys from ids. The folder checks them nevertheless, so that no path leads out of it.
A storage knows neither file types nor permissions.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

from solotable.errors import DataError, DeclarationError, NotFound

_HEAD_BYTES = 16
_CHUNK_BYTES = 256 * 1024
_SIGNATURE = "BucketStorage needs a client with Config(signature_version='s3v4')."
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


async def _chunks(file: Any) -> AsyncIterator[bytes]:
    """Yield the bytes of a file or a bucket's body in chunks, and close it."""
    try:
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk
    finally:
        file.close()


class Storage(Protocol):
    """Stores bytes under keys. A storage with URLs lets clients upload and download directly."""

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Store bytes; they replace those of the key."""

    async def get(self, key: str) -> bytes:
        """Return bytes, or raise NotFound."""

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return the bytes in chunks, or raise NotFound before the first; a video is too large for memory."""

    async def head(self, key: str) -> bytes:
        """Return the first bytes, enough to check the type, or raise NotFound."""

    async def delete(self, key: str) -> None:
        """Delete the bytes, if there are any."""

    async def size(self, key: str) -> int | None:
        """Return the number of bytes; None without any."""

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int, once: bool = False) -> str | None:
        """Return a URL for the upload of exactly this type and size; None without URLs.

        With `once`, the client sends `If-None-Match: *`, and the upload replaces no bytes.
        """

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Return a URL for the download, valid for some seconds; None without URLs."""


class FolderStorage:
    """Stores bytes as files in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).resolve()

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Write a file, entirely or not at all."""
        await asyncio.to_thread(self._write, self._path(key), data)

    async def get(self, key: str) -> bytes:
        """Read a file, or raise NotFound."""
        try:
            return await asyncio.to_thread(self._path(key).read_bytes)
        except FileNotFoundError:
            raise NotFound(f"The storage has no bytes under {key!r}.") from None

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Read a file in chunks, or raise NotFound."""
        try:
            return _chunks(await asyncio.to_thread(self._path(key).open, "rb"))
        except FileNotFoundError:
            raise NotFound(f"The storage has no bytes under {key!r}.") from None

    async def head(self, key: str) -> bytes:
        """Read the first bytes of a file, or raise NotFound."""
        try:
            return await asyncio.to_thread(self._read_head, self._path(key))
        except FileNotFoundError:
            raise NotFound(f"The storage has no bytes under {key!r}.") from None

    async def delete(self, key: str) -> None:
        """Remove a file."""
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    async def size(self, key: str) -> int | None:
        """Return the size of a file."""
        try:
            return (await asyncio.to_thread(self._path(key).stat)).st_size
        except FileNotFoundError:
            return None

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int, once: bool = False) -> str | None:
        """Return None: a folder has no URLs."""
        return None

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Return None: a folder has no URLs."""
        return None

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if not all(_PART.fullmatch(part) for part in parts):
            raise DataError(f"{key!r} is not a storage key.")
        path = self._folder.joinpath(*parts)
        # A symbolic link in the folder must not lead out of it.
        if not path.parent.resolve().is_relative_to(self._folder) or path.is_symlink():
            raise DataError(f"{key!r} leads out of the storage.")
        return path

    def _read_head(self, path: Path) -> bytes:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".incoming-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                # Flush to disk before the table says "stored", so that a power failure loses nothing.
                os.fsync(handle)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


class BucketStorage:
    """Stores bytes in a bucket. `client` is a boto3 client with signature version 4:

    `boto3.client("s3", endpoint_url=..., config=Config(signature_version="s3v4"))`.
    """

    def __init__(self, client: Any, bucket: str, *, prefix: str = "") -> None:
        # Older signatures leave out the length, so that an upload URL would accept any number of bytes.
        if client.meta.config.signature_version != "s3v4":
            raise DeclarationError(_SIGNATURE)
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Put an object."""
        await asyncio.to_thread(self._client.put_object, **self._object(key), Body=data, ContentType=mime)

    async def get(self, key: str) -> bytes:
        """Get an object, or raise NotFound."""
        return await self._read(key)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Get an object in chunks, or raise NotFound."""
        return _chunks(await self._body(key))

    async def head(self, key: str) -> bytes:
        """Get the first bytes of an object, or raise NotFound."""
        return await self._read(key, Range=f"bytes=0-{_HEAD_BYTES - 1}")

    async def _read(self, key: str, **more: str) -> bytes:
        body: bytes = await asyncio.to_thread((await self._body(key, **more)).read)
        return body

    async def _body(self, key: str, **more: str) -> Any:
        try:
            found = await asyncio.to_thread(self._client.get_object, **self._object(key), **more)
        except self._client.exceptions.NoSuchKey:
            raise NotFound(f"The storage has no bytes under {key!r}.") from None
        return found["Body"]

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await asyncio.to_thread(self._client.delete_object, **self._object(key))

    async def size(self, key: str) -> int | None:
        """Return the size of an object."""
        try:
            head = await asyncio.to_thread(self._client.head_object, **self._object(key))
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return None
            raise
        return int(head["ContentLength"])

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int, once: bool = False) -> str | None:
        """Sign a PUT of exactly this type and length."""
        parameters = {**self._object(key), "ContentType": mime, "ContentLength": size}
        if once:
            parameters["IfNoneMatch"] = "*"
        return self._sign("put_object", parameters, seconds)

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Sign a GET as an attachment, so that a browser saves the file and does not run it."""
        quoted = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
        disposition = {"ResponseContentDisposition": f'attachment; filename="{quoted}"'}
        return self._sign("get_object", {**self._object(key), **disposition}, seconds)

    def _sign(self, operation: str, parameters: dict[str, Any], seconds: int) -> str:
        url: str = self._client.generate_presigned_url(operation, Params=parameters, ExpiresIn=seconds)
        # botocore signs URLs with version 2 unless version 4 was asked for, whatever its configuration says.
        if "X-Amz-Signature=" not in url:
            raise DeclarationError(_SIGNATURE)
        return url

    def _object(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": self._prefix + key}
