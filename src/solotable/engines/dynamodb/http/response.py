"""Parse one HTTP response from bytes with httptools; pure, without DynamoDB's errors.

It rejects what is not exactly one whole response: extra or missing bytes, a wrong checksum, or more bytes
than DynamoDB can send.
"""

from __future__ import annotations

from typing import Any, Final

import httptools

from solotable._values.checksum import crc32

#: 16 MB of items with each byte written as \u0000, and the JSON around them.
MAX_BYTES: Final = 128 * 1024 * 1024
_MAX_HEAD_BYTES: Final = 64 * 1024


class InvalidResponse(Exception):
    """A response that is not valid HTTP or JSON, or does not match its checksum."""


class HttpResponse:
    """One response, while it arrives and after; httptools calls its `on_` methods."""

    __slots__ = (
        "_chunks",
        "_in_head",
        "_max_bytes",
        "_parser",
        "_size",
        "body",
        "complete",
        "headers",
        "reusable",
        "started",
        "status",
    )

    def __init__(self, *, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parser: Any = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._size = 0
        self._in_head = True
        #: Whether the first byte has arrived.
        self.started = False
        #: Whether the last byte has arrived.
        self.complete = False
        #: Whether the connection can take another request after this response.
        self.reusable = False
        self.status = 0
        #: The bytes as sent; set by `finish`.
        self.body = b""
        self.headers: dict[bytes, bytes] = {}

    def finish(self) -> None:
        """Join the body; raise InvalidResponse if its checksum is wrong."""
        self.body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        stated = self.headers.get(b"x-amz-crc32")
        if stated is not None and stated != b"%d" % crc32(self.body):
            raise InvalidResponse("Its checksum does not match the body.")

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; raise InvalidResponse if they cannot belong to a response."""
        self.started = True
        if self._in_head:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as fault:
            raise InvalidResponse("It asks for another protocol.") from fault
        except httptools.HttpParserError as fault:
            if not self._has_extra_bytes():
                raise InvalidResponse(f"It is not HTTP: {fault!r}.") from fault
        if self._size > (_MAX_HEAD_BYTES if self._in_head else self._max_bytes):
            raise InvalidResponse("It is larger than any response of DynamoDB.")

    def feed_eof(self) -> None:
        """Handle the end of the connection; raise InvalidResponse if the response is incomplete."""
        if not self.complete:
            ends_with_connection = not self._in_head and not (
                b"content-length" in self.headers or b"transfer-encoding" in self.headers
            )
            if not ends_with_connection:
                raise InvalidResponse(
                    "The connection was closed within it." if self.started else "It has no byte."
                )
            self.complete = True
        self.reusable = False

    def _has_extra_bytes(self) -> bool:
        """Return whether the response was complete before; extra bytes make the connection unusable."""
        if self.complete:
            self.reusable = False
        return self.complete

    def on_message_begin(self) -> None:
        """Handle the first byte of a response."""
        self._has_extra_bytes()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header."""
        if not self.complete:
            self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Handle the end of the headers."""
        if not self.complete:
            self.status = self._parser.get_status_code()
            self._in_head = False
            # Reject an announced size before its bytes arrive.
            announced = int(self.headers.get(b"content-length", b"0"))
            self._size = announced if announced > self._max_bytes else 0

    def on_body(self, chunk: bytes) -> None:
        """Add a piece of the body, without chunk framing."""
        if not self.complete:
            self._chunks.append(chunk)
            self._size += len(chunk)

    def on_message_complete(self) -> None:
        """Handle the end of the response."""
        if self.complete:
            return
        if self.status < 200:
            # An interim response such as 100 Continue: the final one follows.
            self.headers = {}
            self._in_head = True
            return
        self.complete = True
        self.reusable = self._parser.should_keep_alive()
