"""Where bytes lie: a port, a folder that needs nothing, and any S3-compatible bucket.

Keys are made by the services, of ids only. The folder checks them all the same: nothing outside of it is
read or written. Refused here: knowing what the bytes are, and who may have them.
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

_BEGINNING = 16
_PIECE = 256 * 1024
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


async def _pieces(file: Any) -> AsyncIterator[bytes]:
    """Yield what a file or a body of a bucket has, and close it."""
    try:
        while piece := await asyncio.to_thread(file.read, _PIECE):
            yield piece
    finally:
        file.close()


class Storage(Protocol):
    """Keeps bytes under keys. A storage that has URLs lets clients send and fetch bytes past us."""

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Keep bytes, in the place of those that were there."""

    async def get(self, key: str) -> bytes:
        """Return bytes, or raise NotFound."""

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return bytes piece by piece, or raise NotFound before the first: a film is in no memory whole."""

    async def beginning(self, key: str) -> bytes:
        """Return the first bytes, enough to see what they are, or raise NotFound."""

    async def delete(self, key: str) -> None:
        """Forget bytes; nothing happens if there are none."""

    async def size(self, key: str) -> int | None:
        """Return how many bytes there are; None for nothing."""

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int) -> str | None:
        """Return where a client may put exactly these bytes, or None: through us."""

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Return where a client may fetch the bytes for some time, or None: through us."""


class FolderStorage:
    """Keeps bytes in files below a folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).resolve()

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Write a file, whole or not at all."""
        await asyncio.to_thread(self._write, self._path(key), data)

    async def get(self, key: str) -> bytes:
        """Read a file, or raise NotFound."""
        try:
            return await asyncio.to_thread(self._path(key).read_bytes)
        except FileNotFoundError:
            raise NotFound(f"There are no bytes under {key!r}.") from None

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Read a file piece by piece, or raise NotFound."""
        try:
            return _pieces(await asyncio.to_thread(self._path(key).open, "rb"))
        except FileNotFoundError:
            raise NotFound(f"There are no bytes under {key!r}.") from None

    async def beginning(self, key: str) -> bytes:
        """Read the beginning of a file, or raise NotFound."""
        try:
            return await asyncio.to_thread(self._first, self._path(key))
        except FileNotFoundError:
            raise NotFound(f"There are no bytes under {key!r}.") from None

    async def delete(self, key: str) -> None:
        """Remove a file."""
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    async def size(self, key: str) -> int | None:
        """Return the size of a file."""
        try:
            return (await asyncio.to_thread(self._path(key).stat)).st_size
        except FileNotFoundError:
            return None

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int) -> str | None:
        """A folder has no URLs."""
        return None

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """A folder has no URLs."""
        return None

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if not all(_PART.fullmatch(part) for part in parts):
            raise DataError(f"{key!r} is no key of a storage.")
        path = self._folder.joinpath(*parts)
        # A link that somebody put into the folder must not lead out of it.
        if not path.parent.resolve().is_relative_to(self._folder) or path.is_symlink():
            raise DataError(f"{key!r} leads out of the storage.")
        return path

    def _first(self, path: Path) -> bytes:
        with path.open("rb") as file:
            return file.read(_BEGINNING)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".incoming-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                # The table says "stored" for good after this, also when the power fails.
                os.fsync(handle)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


class BucketStorage:
    """Keeps bytes in a bucket. `client` is boto3's, with signatures of version 4:

    `boto3.client("s3", endpoint_url=..., config=Config(signature_version="s3v4"))`.
    """

    def __init__(self, client: Any, bucket: str, *, prefix: str = "") -> None:
        # Older signatures leave the length out, so that whoever has a URL could put any number of bytes.
        if client.meta.config.signature_version != "s3v4":
            raise DeclarationError("BucketStorage: make the client with Config(signature_version='s3v4').")
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        """Put an object."""
        await asyncio.to_thread(self._client.put_object, **self._named(key), Body=data, ContentType=mime)

    async def get(self, key: str) -> bytes:
        """Get an object, or raise NotFound."""
        return await self._read(key)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Get an object piece by piece, or raise NotFound."""
        return _pieces(await self._body(key))

    async def beginning(self, key: str) -> bytes:
        """Get the beginning of an object, or raise NotFound."""
        return await self._read(key, Range=f"bytes=0-{_BEGINNING - 1}")

    async def _read(self, key: str, **more: str) -> bytes:
        body: bytes = await asyncio.to_thread((await self._body(key, **more)).read)
        return body

    async def _body(self, key: str, **more: str) -> Any:
        try:
            found = await asyncio.to_thread(self._client.get_object, **self._named(key), **more)
        except self._client.exceptions.NoSuchKey:
            raise NotFound(f"There are no bytes under {key!r}.") from None
        return found["Body"]

    async def delete(self, key: str) -> None:
        """Delete an object."""
        await asyncio.to_thread(self._client.delete_object, **self._named(key))

    async def size(self, key: str) -> int | None:
        """Return the size of an object."""
        try:
            head = await asyncio.to_thread(self._client.head_object, **self._named(key))
        except self._client.exceptions.ClientError as refused:
            if refused.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return None
            raise
        return int(head["ContentLength"])

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int) -> str | None:
        """Sign a PUT of exactly this type and length."""
        parameters = {**self._named(key), "ContentType": mime, "ContentLength": size}
        return self._signed("put_object", parameters, seconds)

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Sign a GET that is saved, never shown: bytes of others do not run on our pages."""
        quoted = re.sub(r"[^\w. -]", "_", name, flags=re.ASCII)
        shown = {"ResponseContentDisposition": f'attachment; filename="{quoted}"'}
        return self._signed("get_object", {**self._named(key), **shown}, seconds)

    def _signed(self, operation: str, parameters: dict[str, Any], seconds: int) -> str:
        url: str = self._client.generate_presigned_url(operation, Params=parameters, ExpiresIn=seconds)
        return url

    def _named(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._bucket, "Key": self._prefix + key}
