"""Bytes from an endpoint -> one HTTP answer; pure, and knows neither sockets nor DynamoDB's errors.

What is not exactly one whole answer is none: more bytes than were announced, fewer of them, a checksum
of another body, or more than anybody can have asked for.
"""

from __future__ import annotations

from typing import Any, Final

import httptools

from solotable._values.checksum import crc32

#: 16 MB of items, each byte written as \u0000, and room for what is around them.
MOST_BYTES: Final = 128 * 1024 * 1024
_MOST_BYTES_OF_HEAD: Final = 64 * 1024


class Unreadable(Exception):
    """An answer that is no JSON, or not the JSON that was sent."""


class Answer:
    """One answer while it is read, and afterwards; also what the parser calls."""

    __slots__ = (
        "_chunks",
        "_in_head",
        "_most_bytes",
        "_parser",
        "_size",
        "begun",
        "body",
        "headers",
        "reusable",
        "status",
        "whole",
    )

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._parser: Any = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._size = 0
        self._in_head = True
        #: Whether a byte has come.
        self.begun = False
        #: Whether the last byte has come.
        self.whole = False
        #: Whether the connection can take another request once this is whole.
        self.reusable = False
        self.status = 0
        #: As it was sent; there once it was judged.
        self.body = b""
        self.headers: dict[bytes, bytes] = {}

    def judge(self) -> None:
        """Put the body together; raise Unreadable when its checksum is that of another one."""
        self.body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        stated = self.headers.get(b"x-amz-crc32")
        if stated is not None and stated != b"%d" % crc32(self.body):
            raise Unreadable("Its checksum is that of another body.")

    def feed(self, data: bytes) -> None:
        """Take the next bytes; raise Unreadable for those that cannot be an answer."""
        self.begun = True
        if self._in_head:
            self._size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as fault:
            raise Unreadable("It wants another protocol.") from fault
        except httptools.HttpParserError as fault:
            if not self._is_followed():
                raise Unreadable(f"It is no HTTP: {fault!r}.") from fault
        if self._size > (_MOST_BYTES_OF_HEAD if self._in_head else self._most_bytes):
            raise Unreadable("It is larger than any answer of DynamoDB.")

    def end(self) -> None:
        """Take the end of the connection; raise Unreadable when the answer is not whole by that."""
        if not self.whole:
            unannounced = not self._in_head and not (
                b"content-length" in self.headers or b"transfer-encoding" in self.headers
            )
            if not unannounced:
                raise Unreadable("The connection was closed within it." if self.begun else "It has no byte.")
            self.whole = True
        self.reusable = False

    def _is_followed(self) -> bool:
        """Return whether the answer is whole; what comes behind it then is nobody's, as is the connection."""
        if self.whole:
            self.reusable = False
        return self.whole

    def on_message_begin(self) -> None:
        """Called by the parser at the first byte of an answer."""
        self._is_followed()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser for each header."""
        if not self.whole:
            self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Called by the parser behind the headers."""
        if not self.whole:
            self.status = self._parser.get_status_code()
            self._in_head = False
            # Announced is as good as sent.
            announced = int(self.headers.get(b"content-length", b"0"))
            self._size = announced if announced > self._most_bytes else 0

    def on_body(self, chunk: bytes) -> None:
        """Called by the parser for each piece of the body, without what frames chunks."""
        if not self.whole:
            self._chunks.append(chunk)
            self._size += len(chunk)

    def on_message_complete(self) -> None:
        """Called by the parser at an answer's end."""
        if self.whole:
            return
        if self.status < 200:
            # 100 Continue and its like: the answer is still to come.
            self.headers = {}
            self._in_head = True
            return
        self.whole = True
        self.reusable = self._parser.should_keep_alive()
