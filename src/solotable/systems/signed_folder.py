"""A folder with signed URLs: what presigned URLs of S3 are, for an app that serves the files itself.

The app has two routes below `base_url`, a PUT and a GET, which pass the key and the query to `receive` and
`open_download`. A URL is valid for one key, type, size and time. An upload never replaces a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

from solotable.errors import AlreadyExists, DataError

from .errors import InvalidInput
from .storage import FolderStorage


class SignatureRejected(DataError):
    """The URL was changed, has expired, or is for another request."""


class SignedFolderStorage(FolderStorage):
    """Stores bytes as files in a folder, and signs URLs of the app that serves it."""

    def __init__(
        self,
        folder: str | Path,
        *,
        secret: bytes,
        base_url: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(folder)
        self._secret = secret
        self._base_url = base_url.rstrip("/")
        self._clock = clock

    def upload_url(self, key: str, *, mime: str, size: int, seconds: int, once: bool = False) -> str | None:
        """Sign a PUT of exactly this type and size."""
        return self._sign("PUT", key, seconds, type=mime, size=str(size))

    def download_url(self, key: str, *, name: str, seconds: int) -> str | None:
        """Sign a GET as an attachment with this name."""
        return self._sign("GET", key, seconds, name=name)

    async def receive(
        self, key: str, query: Mapping[str, str], chunks: AsyncIterator[bytes], *, mime: str
    ) -> None:
        """Store an upload to a signed URL, or raise SignatureRejected, InvalidInput or AlreadyExists.

        It reads at most one chunk more than the signed size, and keeps none of them in memory.
        """
        size = self.max_bytes(key, query)
        if mime != query["type"]:
            raise InvalidInput(f"The URL is for the type {query['type']}; send it as Content-Type.")
        path = self._path(key)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".incoming-")
        try:
            with os.fdopen(handle, "wb") as file:
                received = 0
                async for chunk in chunks:
                    received += len(chunk)
                    if received > size:
                        break
                    await asyncio.to_thread(file.write, chunk)
                if received != size:
                    raise InvalidInput(f"The URL is for {size} bytes; the body has another size.")
                file.flush()
                await asyncio.to_thread(os.fsync, handle)
            # A link replaces nothing: of two uploads to one URL, one is stored.
            os.link(name, path)
        except FileExistsError:
            raise AlreadyExists("The file was uploaded already; ask for another URL.") from None
        finally:
            os.unlink(name)  # noqa: PTH108 - no await: a cancelled upload is cleaned up too

    async def open_download(self, key: str, query: Mapping[str, str]) -> tuple[str, AsyncIterator[bytes]]:
        """Return the name and the bytes of a signed URL, or raise SignatureRejected or NotFound."""
        self._verify("GET", key, query, ("name",))
        return query["name"], await self.stream(key)

    def max_bytes(self, key: str, query: Mapping[str, str]) -> int:
        """Return how many bytes a signed URL accepts, before its body is read, or raise SignatureRejected."""
        self._verify("PUT", key, query, ("type", "size"))
        return int(query["size"])

    def _sign(self, method: str, key: str, seconds: int, **fields: str) -> str:
        self._path(key)  # reject a key that leads out of the folder
        given = {"expires": str(int(self._clock()) + seconds), **fields}
        signature = self._signature(method, key, given)
        return f"{self._base_url}/{quote(key)}?{urlencode({**given, 'signature': signature})}"

    def _verify(self, method: str, key: str, query: Mapping[str, str], names: tuple[str, ...]) -> None:
        given = {name: query.get(name, "") for name in ("expires", *names)}
        signature = self._signature(method, key, given)
        if not hmac.compare_digest(signature.encode(), query.get("signature", "").encode()):
            raise SignatureRejected("The URL is not valid.", public_message="The URL is not valid.")
        if int(given["expires"]) <= self._clock():
            raise SignatureRejected("The URL has expired.", public_message="The URL has expired.")

    def _signature(self, method: str, key: str, fields: Mapping[str, str]) -> str:
        # Lengths before the values: no two requests have the same text.
        parts = [method, key, *(text for pair in sorted(fields.items()) for text in pair)]
        message = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._secret, message.encode(), hashlib.sha256).hexdigest()
