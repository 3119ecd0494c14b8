"""One connection: HTTP/1.1 bytes to requests, answered in the order they came.

The parser is httptools'. What a client may not do is ended here: headers or bodies beyond the limits,
requests that never end, more requests in the pipe than are read at once. No operation is known here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import httptools

from solotable.errors import ServiceError
from solotable.protocol import wire
from solotable.protocol.limits import LARGEST_REQUEST

from . import bodies, messages
from .auth import SignedRequest

if TYPE_CHECKING:
    from .run import Server

_LARGEST_HEAD = 32 * 1024
_MOST_HEADERS = 128
#: Requests of one connection that wait; beyond it the socket is not read.
_LONGEST_PIPE = 16
_JSON_TYPES = frozenset({b"application/json", b"application/x-amz-json-1.0"})
_UNKNOWN = b"<UnknownOperationException/>\n"


class Incoming:
    """A request as it comes in."""

    __slots__ = ("chunks", "head_size", "headers", "keep_alive", "method", "size", "url")

    def __init__(self) -> None:
        self.method = b""
        self.url = b""
        #: Names in lower case; what a name came with more than once is joined, as HTTP means it.
        self.headers: dict[bytes, bytes] = {}
        self.head_size = 0
        self.chunks: list[bytes] = []
        self.size = 0
        self.keep_alive = True

    def header(self, name: bytes) -> str:
        """Return a header as text, empty when it is not there."""
        value = self.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    def body(self) -> bytes:
        """Return the body as it was sent."""
        return self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)


class Connection(asyncio.Protocol):
    """A client's connection; the server gives it everything it needs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = Incoming()
        self._waiting: deque[Incoming] = deque()
        self._busy = False
        self._closing = False
        #: When the request that is coming in began; None between requests.
        self.begun: float | None = None
        self.last_used = 0.0

    # The socket ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.last_used = self._server.now()
        self._server.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._server.connections.discard(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self.last_used = self._server.now()
        if self.begun is None:
            self.begun = self.last_used
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.refuse(400)
        except httptools.HttpParserError:
            self.refuse(400)

    def eof_received(self) -> bool:
        return False

    # The parser ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._incoming = Incoming()

    def on_url(self, url: bytes) -> None:
        self._incoming.url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._incoming.headers
        name = name.lower()
        headers[name] = value if name not in headers else headers[name] + b"," + value
        self._count_head(len(name) + len(value))

    def on_headers_complete(self) -> None:
        incoming = self._incoming
        incoming.method = self._parser.get_method()
        incoming.keep_alive = self._parser.should_keep_alive()
        length = incoming.headers.get(b"content-length")
        if length is not None and int(length) > LARGEST_REQUEST:
            self.refuse(413)
        elif b"expect" in incoming.headers:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, chunk: bytes) -> None:
        self._incoming.size += len(chunk)
        if self._incoming.size > LARGEST_REQUEST:
            self.refuse(413)
        elif not self._closing:
            self._incoming.chunks.append(chunk)

    def on_message_complete(self) -> None:
        self.begun = None
        if self._closing:
            return
        self._waiting.append(self._incoming)
        if len(self._waiting) >= _LONGEST_PIPE:
            self._transport.pause_reading()
        self._next()

    def _count_head(self, size: int) -> None:
        incoming = self._incoming
        incoming.head_size += size
        if incoming.head_size > _LARGEST_HEAD or len(incoming.headers) > _MOST_HEADERS:
            self.refuse(431)

    # Answers ------------------------------------------------------------------------------------

    def _next(self) -> None:
        while self._waiting and not self._busy and not self._closing:
            incoming = self._waiting.popleft()
            if len(self._waiting) == _LONGEST_PIPE - 1:
                self._transport.resume_reading()
            self._busy = True
            self._answer(incoming)

    def _answer(self, incoming: Incoming) -> None:
        if incoming.method != b"POST":
            self._send(incoming, *self._server.pages.get(incoming.method, incoming.url, incoming.headers))
            return
        content_type = incoming.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if content_type not in _JSON_TYPES:
            self._send(incoming, 404, _UNKNOWN, b"text/plain")
            return
        try:
            request = self._read(incoming)
        except bodies.TooLarge:
            self.refuse(413)
        except ServiceError as refused:
            self._send(incoming, *wire.refusal(refused), content_type)
        else:

            def done(reply: Callable[[], Any]) -> None:
                self._send(incoming, *wire.render(incoming.header(b"x-amz-target"), reply), content_type)
                self._next()

            self._server.lanes.take(request, done)

    def _read(self, incoming: Incoming) -> Any:
        body = incoming.body()
        if self._server.verifier is not None:
            self._server.verifier.verify(_signed(incoming, body))
        encoding = incoming.header(b"content-encoding").strip().lower()
        if encoding:
            body = bodies.inflate(body, encoding, LARGEST_REQUEST)
        return wire.parse(incoming.header(b"x-amz-target"), body)

    def _send(
        self, incoming: Incoming, status: int, body: bytes, content_type: bytes, headers: bytes = b""
    ) -> None:
        self._busy = False
        if self._closing:
            return
        accepted = incoming.header(b"accept-encoding")
        keep_alive = incoming.keep_alive and not self._server.stopping
        self._transport.write(
            messages.reply(
                status,
                body,
                request_id=self._server.request_id(),
                encoding=bodies.choose(accepted) if accepted else "",
                content_type=content_type,
                headers=headers + self._server.pages.cors(incoming.headers),
                keep_alive=keep_alive,
            )
        )
        self.last_used = self._server.now()
        if not keep_alive:
            self.close()

    def refuse(self, status: int) -> None:
        """Answer what cannot be read any further, and end the connection."""
        if not self._closing:
            self._transport.write(
                messages.reply(status, b"", request_id=self._server.request_id(), keep_alive=False)
            )
            self.close()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way on this connection."""
        return not self._busy and not self._waiting and self.begun is None

    def close(self) -> None:
        """End the connection once what was written is sent."""
        self._closing = True
        self._transport.close()


def _signed(incoming: Incoming, body: bytes) -> SignedRequest:
    return SignedRequest(
        method=incoming.method.decode("latin-1"),
        target=incoming.url.decode("latin-1"),
        headers=tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in incoming.headers.items()
        ),
        body=body,
    )
