"""multipart/form-data with one file, read as a stream (RFC 7578): small fields first, then the file.

It refuses what no browser sends for our form: a second file, large fields, nested parts.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.message import Message

from fastapi import HTTPException
from starlette.requests import Request

_BOUNDARY = re.compile(r"[A-Za-z0-9'()+_,./:=? -]{1,70}")
_LARGEST_HEAD = 8 * 1024
_LARGEST_FIELD = 4 * 1024
_MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """The file of a form: its name and type as the browser says, and its bytes in chunks."""

    name: str
    mime: str
    chunks: AsyncIterator[bytes]


class MultipartReader:
    """Reads one form: `fields`, then `file.chunks` to the end."""

    def __init__(self, request: Request) -> None:
        head = Message()
        head["content-type"] = request.headers.get("content-type", "")
        boundary = head.get_param("boundary")
        if head.get_content_type() != "multipart/form-data" or not isinstance(boundary, str):
            raise HTTPException(415, "A file is sent as multipart/form-data.")
        if not _BOUNDARY.fullmatch(boundary):
            raise _unreadable()
        self._stream = request.stream()
        self._delimiter = b"\r\n--" + boundary.encode()
        # The first delimiter has no line before it.
        self._buffer = bytearray(b"\r\n")
        self._ended = False

    async def read(self) -> tuple[dict[str, str], UploadedFile | None]:
        """Return the fields before the file, and the file; None for a form without one."""
        fields: dict[str, str] = {}
        await self._skip_to_part()
        while not self._ended:
            name, filename, mime = _describe(await self._head())
            if filename is not None:
                return fields, UploadedFile(filename, mime, self._chunks())
            if len(fields) >= _MOST_FIELDS:
                raise _unreadable()
            fields[name] = (await self._field()).decode("utf-8", "replace")
        return fields, None

    async def _skip_to_part(self) -> None:
        while (at := self._buffer.find(self._delimiter)) < 0:
            if len(self._buffer) > _LARGEST_HEAD:
                raise _unreadable()
            await self._more()
        del self._buffer[: at + len(self._delimiter)]
        await self._after_delimiter()

    async def _after_delimiter(self) -> None:
        while len(self._buffer) < 2:
            await self._more()
        start = bytes(self._buffer[:2])
        if start not in (b"\r\n", b"--"):
            raise _unreadable()
        self._ended = start == b"--"
        del self._buffer[:2]

    async def _head(self) -> bytes:
        while (at := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _LARGEST_HEAD:
                raise _unreadable()
            await self._more()
        head = bytes(self._buffer[:at])
        del self._buffer[: at + 4]
        return head

    async def _field(self) -> bytes:
        data = bytearray()
        async for chunk in self._chunks():
            data += chunk
            if len(data) > _LARGEST_FIELD:
                raise _unreadable()
        return bytes(data)

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes up to the next delimiter."""
        while (at := self._buffer.find(self._delimiter)) < 0:
            # The end of the buffer may be the start of the delimiter.
            certain = len(self._buffer) - len(self._delimiter)
            if certain > 0:
                chunk = bytes(self._buffer[:certain])
                del self._buffer[:certain]
                yield chunk
            await self._more()
        if at:
            chunk = bytes(self._buffer[:at])
            yield chunk
        del self._buffer[: at + len(self._delimiter)]
        await self._after_delimiter()

    async def _more(self) -> None:
        try:
            self._buffer += await anext(self._stream)
        except StopAsyncIteration:
            raise _unreadable() from None


def _describe(head: bytes) -> tuple[str, str | None, str]:
    """Return the name, the file name and the type of a part."""
    part = Message()
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() in ("content-disposition", "content-type"):
            part[name.strip()] = value.strip()
    field = part.get_param("name", header="content-disposition")
    filename = part.get_param("filename", header="content-disposition")
    if not isinstance(field, str):
        raise _unreadable()
    return field, filename if isinstance(filename, str) else None, part.get_content_type()


def _unreadable() -> HTTPException:
    return HTTPException(400, "The upload cannot be read.")
