"""One client connection: parses HTTP/1.1 requests with httptools and sends replies in order.

It enforces the limits on a client: header and body sizes, request and idle timeouts, pipelined requests,
unread replies. It does not know DynamoDB's operations.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, cast

import httptools

from solotable._values.limits import LARGEST_REQUEST
from solotable.server.dispatch import answer

from . import response
from .body_budget import SMALL
from .reply_buffer import ReplyBuffer
from .request import LOWER, HttpRequest
from .response import LARGE, Body

if TYPE_CHECKING:
    from solotable.server.run import Server

_MAX_URL_BYTES = 8 * 1024
# DynamoDB: headers over 16 KB are a bad request.
_MAX_HEAD_BYTES = 16 * 1024
_MAX_HEADERS = 128
#: Bytes around a header: colon, space, line end.
_HEADER_BYTES = 4
#: Limits of one connection's pipeline; beyond either, the server stops reading the socket.
_MAX_PIPELINED_REQUESTS = 16
_MAX_PIPELINED_BYTES = 1024 * 1024
#: Grace period for draining a closing connection.
_DRAIN_SECONDS = 5.0
#: How many bytes a client may send after a rejection before the server aborts the connection.
_MAX_IGNORED_BYTES = 2 * LARGEST_REQUEST
_FRAMING = (b"content-length", b"transfer-encoding")


class Connection(asyncio.Protocol):
    """The asyncio protocol of one client connection."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser = httptools.HttpRequestParser(self)
        self._request = HttpRequest()
        #: The headers of the request whose head is being read; None otherwise.
        self._reading_headers: dict[bytes, bytes] | None = None
        #: Bytes of the current request's URL, headers and trailers.
        self._head_bytes = 0
        #: Bytes fed since the parser last called back.
        self._unparsed_bytes = 0
        #: Whether the parser still has to read the body of a request that asked for an upgrade.
        self._skipping_body = False
        #: Whether a 100 Continue waits for earlier replies.
        self._owes_continue = False

        self._pipeline: deque[HttpRequest] = deque()
        self._pipeline_bytes = 0
        #: Whether a request is being answered.
        self._busy = False
        #: The rest of a long reply.
        self._reply_buffer: ReplyBuffer | None = None
        #: How many requests to answer before other connections get a turn.
        self._turn_quota = 0
        self._turn_scheduled = False

        #: Whether input is discarded: a request was rejected, or the client sent its last byte.
        self._ignores_input = False
        self._eof_received = False
        self._ignored_bytes = 0
        self._paused = False
        self._closing = False
        self._close_deadline = 0.0
        #: When the client stopped reading its replies; None while it reads.
        self._stalled_since: float | None = None
        #: When the first byte of the current request arrived; None between requests.
        self._request_started_at: float | None = None
        self._last_used = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._last_used = self._server.now()
        self._server.add_connection(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._server.body_budget.release(self._request)
        self._discard_pipeline()
        self._reply_buffer = None
        self._server.remove_connection(self)

    def data_received(self, data: bytes) -> None:
        if self._ignores_input or self._closing:
            self._ignored_bytes += len(data)
            if self._ignored_bytes > _MAX_IGNORED_BYTES:
                self.abort()
            return
        self._last_used = self._server.now()
        if self._request_started_at is None:
            self._request_started_at = self._last_used
        request = self._request
        parsed = self._head_bytes + request.size
        self._turn_quota = 1
        self._feed(data)
        if self._request is not request or self._head_bytes + request.size != parsed:
            self._unparsed_bytes = 0
        elif not self.idle:
            # The parser buffers a header line of any length until it is complete.
            self._unparsed_bytes += len(data)
            if self._unparsed_bytes > _MAX_HEAD_BYTES:
                self._reject(400)

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._ignore_upgrade(data[cast(int, upgrade.args[0]) :])
            except httptools.HttpParserError:
                self._reject(400)
                return

    def _ignore_upgrade(self, rest: bytes) -> bytes:
        """Return the bytes to parse next after a request that asked for another protocol."""
        request = self._request
        if self._ignores_input or self._closing:
            return b""
        if not self._skipping_body:
            return rest
        # The parser treats such a request's body as the other protocol, so a new parser reads it.
        self._parser = httptools.HttpRequestParser(self)
        framing = b"".join(
            b"%b: %b\r\n" % (name, request.headers[name]) for name in _FRAMING if name in request.headers
        )
        return b"POST / HTTP/1.1\r\n%b\r\n" % framing + rest

    def eof_received(self) -> bool:
        """Return whether to keep the connection open for pending replies."""
        self._server.tick.flush()
        self._ignores_input = self._eof_received = True
        self._request_started_at = None
        return (self._busy or bool(self._pipeline)) and not self._closing

    def pause_writing(self) -> None:
        self._stalled_since = self._server.now()
        self._update_reading()

    def resume_writing(self) -> None:
        self._stalled_since = None
        self._update_reading()
        if self._reply_buffer is not None:
            self._write_more()
        else:
            self._answer_next()

    def _update_reading(self) -> None:
        """Pause or resume reading the socket: read only while further requests can be answered."""
        if self._closing or self._eof_received:
            return
        full = (
            self._stalled_since is not None
            or len(self._pipeline) >= _MAX_PIPELINED_REQUESTS
            or self._pipeline_bytes >= _MAX_PIPELINED_BYTES
        )
        if full == self._paused:
            return
        self._paused = full
        if full:
            self._transport.pause_reading()
        else:
            if self._request_started_at is not None:
                # The server caused this wait, so it does not count against the client.
                self._request_started_at = self._server.now()
            self._transport.resume_reading()

    def on_message_begin(self) -> None:
        if self._skipping_body:
            return
        request = self._request = HttpRequest()
        self._reading_headers = request.headers
        self._head_bytes = self._unparsed_bytes = 0
        if self._request_started_at is None:
            self._request_started_at = self._last_used

    def on_url(self, url: bytes) -> None:
        if self._skipping_body:
            return
        request = self._request
        request.url += url
        self._head_bytes += len(url)
        if len(request.url) > _MAX_URL_BYTES:
            self._reject(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        headers = self._reading_headers
        if headers is None and self._skipping_body:
            return
        self._head_bytes += len(name) + len(value) + _HEADER_BYTES
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._reject(400)
        elif headers is not None:
            # Headers after a chunked body are trailers, which the server ignores.
            lower = LOWER.get(name) or name.lower()
            headers[lower] = value if lower not in headers else headers[lower] + b"," + value

    def on_headers_complete(self) -> None:
        if self._skipping_body:
            self._skipping_body = False
            return
        self._reading_headers = None
        parser, request = self._parser, self._request
        headers = request.headers
        if len(headers) > _MAX_HEADERS:
            self._reject(400)
        request.method = parser.get_method()
        request.keep_alive = parser.should_keep_alive()
        version = parser.get_http_version()
        if version == "1.0":
            request.minor = 0
        elif version != "1.1":
            self._reject(400)
        if parser.should_upgrade():
            if request.method == b"CONNECT":
                self._reject(400)
            self._skipping_body = any(name in headers for name in _FRAMING)
        if b"content-length" in headers and int(headers[b"content-length"]) > LARGEST_REQUEST:
            self._reject(413)
        elif b"expect" in headers and request.minor and not self._ignores_input:
            if headers[b"expect"].lower() != b"100-continue":
                self._reject(417)
            else:
                self._owes_continue = True
                self._send_continue()

    def on_body(self, chunk: bytes) -> None:
        request = self._request
        request.size += len(chunk)
        if request.size > LARGEST_REQUEST:
            self._reject(413)
        elif not self._ignores_input:
            request.add_body(chunk)
            if request.size > SMALL:
                self._server.body_budget.reserve(request, self)

    def on_message_complete(self) -> None:
        if self._skipping_body:
            return
        self._request_started_at = None
        self._owes_continue = False
        if self._request.size > SMALL:
            self._server.body_budget.complete(self._request)
        if self._ignores_input or self._closing:
            return
        if self._turn_quota and not self._busy and not self._pipeline and self._stalled_since is None:
            self._turn_quota -= 1
            self._answer(self._request)
        else:
            self._enqueue(self._request)

    def _enqueue(self, request: HttpRequest) -> None:
        self._pipeline.append(request)
        self._pipeline_bytes += request.size
        self._answer_next()
        if self._pipeline:
            self._update_reading()

    def _send_continue(self) -> None:
        if self._owes_continue and not self._busy and not self._pipeline and not self._closing:
            self._owes_continue = False
            self._write_now(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _answer_next(self) -> None:
        if not self._pipeline or self._busy or self._stalled_since is not None or self._closing:
            return
        if not self._turn_quota:
            # A long pipeline alternates with the other connections.
            if not self._turn_scheduled:
                self._turn_scheduled = True
                self._server.loop.call_soon(self._start_turn)
            return
        self._turn_quota -= 1
        request = self._pipeline.popleft()
        self._pipeline_bytes -= request.size
        if self._paused:
            self._update_reading()
        self._answer(request)

    def _answer(self, request: HttpRequest) -> None:
        self._busy = True
        if self._server.log is not None:
            request.started_at = self._server.now()
        answer(self._server, self, request)

    def _start_turn(self) -> None:
        self._turn_scheduled = False
        self._turn_quota = 1
        self._answer_next()

    @property
    def is_closed(self) -> bool:
        """Whether the connection can send no further reply."""
        return self._closing

    def send(
        self, request: HttpRequest, status: int, body: Body, content_type: bytes, headers: bytes = b""
    ) -> None:
        """Send the reply to the current request."""
        server = self._server
        if request.size > SMALL:
            server.body_budget.release(request)
        if server.log is not None:
            address = self._transport.get_extra_info("peername")
            server.log_request(request, status, body.size, address[0] if address else "-")
        if self._closing:
            self._busy = False
            return
        keep_alive = request.keep_alive and not request.rejection_status and not server.stopping
        if not keep_alive:
            headers += b"Connection: close\r\n"
        elif not request.minor:
            headers += b"Connection: keep-alive\r\n"
        if server.health_pages.allows_cors:
            headers += server.health_pages.cors_headers(request.headers)
        head = response.head(status, body, server.date_and_id(), content_type, headers)
        self._last_used = server.now()
        if request.method == b"HEAD":
            self._write_now(b"".join(head))
        elif body.size > LARGE:
            self._write_now(b"".join(head))
            self._reply_buffer = ReplyBuffer(body.pieces, partial(self._after_reply, request, keep_alive))
            self._write_more()
            return
        else:
            # One copy of the body and one system call.
            whole = b"".join([*head, *body.pieces])
            if keep_alive:
                server.tick.send(self._transport, whole)
            else:
                self._write_now(whole)
        self._after_reply(request, keep_alive)

    def _write_now(self, data: bytes) -> None:
        """Write data after the replies that wait for the end of the tick."""
        self._server.tick.flush()
        self._transport.write(data)

    def _write_more(self) -> None:
        """Write the next piece of a long reply, unless the client has stopped reading."""
        reply_buffer = self._reply_buffer
        if reply_buffer is None or self._closing or self._stalled_since is not None:
            return
        piece = reply_buffer.next_piece()
        if piece is None:
            self._reply_buffer = None
            self._last_used = self._server.now()
            reply_buffer.on_sent()
            return
        self._transport.write(piece)
        if self._stalled_since is None:
            # Let other connections run between two pieces.
            self._server.loop.call_soon(self._write_more)

    def _after_reply(self, request: HttpRequest, keep_alive: bool) -> None:
        """Answer the next request, or close, after a reply was sent."""
        self._busy = False
        if request.rejection_status:
            self._drain_and_close()
        elif not keep_alive:
            self._ignores_input = True
            self._discard_pipeline()
            self._drain_and_close()
        elif self._eof_received and not self._pipeline:
            self.close()
        elif self._pipeline:
            self._answer_next()
        else:
            self._server.idle.touch(self)
            if self._owes_continue:
                self._send_continue()

    def _reject(self, status: int) -> None:
        """Answer the current request with an error status, in its turn, and ignore further input."""
        if not self._ignores_input and not self._closing:
            self._ignores_input = True
            self._request_started_at = None
            self._server.body_budget.release(self._request)
            # A new object: the current request releases its body, or is complete and still pipelined.
            rejected = HttpRequest()
            rejected.rejection_status = status
            rejected.headers = self._request.headers
            self._request = HttpRequest()
            self._enqueue(rejected)

    def _discard_pipeline(self) -> None:
        for request in self._pipeline:
            self._server.body_budget.release(request)
        self._pipeline.clear()
        self._pipeline_bytes = 0

    def reject_unavailable(self) -> None:
        """Reject the current request, or the next one, with 503 Service Unavailable."""
        self._turn_quota = 1
        self._reject(503)

    def _drain_and_close(self) -> None:
        """Close the sending side, but read on: a reset would destroy the final reply."""
        self._close_deadline = self._server.now() + _DRAIN_SECONDS
        if self._eof_received:
            self.close()
        else:
            self._transport.write_eof()
            self._update_reading()

    @property
    def idle(self) -> bool:
        """Whether no request is arriving or being answered."""
        return not self._busy and not self._pipeline and self._request_started_at is None

    @property
    def is_evictable(self) -> bool:
        """Whether the server can close the connection without losing a complete request."""
        return not self._busy and not self._pipeline and not self._closing

    def evict(self) -> None:
        """Close the connection to make way for another; answer a partial request with 503."""
        if self._request_started_at is not None:
            self.reject_unavailable()
        self.close()

    def check_timeouts(self, now: float, *, request_seconds: float, idle_seconds: float) -> None:
        """Close or abort the connection when a timeout has passed."""
        if self._close_deadline:
            # Let a slow client finish reading the final reply.
            grace_seconds = request_seconds if self._transport.get_write_buffer_size() else 0
            if now > self._close_deadline + grace_seconds:
                self.abort()
        elif self._stalled_since is not None:
            if now - self._stalled_since > request_seconds:
                self.abort()
        elif self._request_started_at is not None and not self._paused:
            if now - self._request_started_at > request_seconds:
                self._turn_quota = 1
                self._reject(408)
        elif self.idle and now - self._last_used > idle_seconds:
            self.close()

    def close(self) -> None:
        """Close the connection after the pending bytes are sent."""
        self._server.tick.flush()
        self._closing = True
        self._close_deadline = self._server.now() + _DRAIN_SECONDS
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._closing = True
        self._transport.abort()
