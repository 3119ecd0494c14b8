"""One connection: HTTP/1.1 bytes to requests, answered in the order they came.

The parser is httptools'. What a client may not do is ended here: headers or bodies beyond the limits,
requests that never end, more requests in the pipe than are answered, replies that are never read. No
operation is known here.
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
from .plain import read_plain
from .reply_buffer import Outgoing
from .request_buffer import Incoming
from .response import LARGE, Body

if TYPE_CHECKING:
    from solotable.server.run import Server

_LARGEST_URL = 8 * 1024
# DynamoDB: headers over 16 KB are a bad request.
_LARGEST_HEAD = 16 * 1024
_MOST_HEADERS = 128
#: Around a header: colon, space, line end.
_HEADER_BYTES = 4
#: Requests of one connection that wait, and their bytes; beyond either the socket is not read.
_LONGEST_PIPE = 16
_LARGEST_PIPE = 1024 * 1024
#: How long a connection that is ended may take to send the rest, or to hear that it is.
_END_SECONDS = 5.0
#: How much a client may go on sending after it was refused.
_MOST_UNHEARD = 2 * LARGEST_REQUEST
_FRAMING = (b"content-length", b"transfer-encoding")


class Connection(asyncio.Protocol):
    """A client's connection; the server gives it everything it needs."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._parser = httptools.HttpRequestParser(self)
        self._incoming = Incoming()
        self._in_head = False
        #: Bytes since the parser last had something to say.
        self._mute = 0
        #: Whether the body of a request that wants another protocol is still to be read.
        self._skipped_body = False
        #: Whether an interim reply waits for the replies before it.
        self._owes_continue = False

        self._waiting: deque[Incoming] = deque()
        self._waiting_bytes = 0
        self._busy = False
        #: What is left of a long reply.
        self._outgoing: Outgoing | None = None
        #: Requests that may be answered before other connections have their turn.
        self._turns = 0
        self._turn_is_due = False

        #: Whether further requests are not read: one was refused, or the client has said its last.
        self._deaf = False
        self._client_ended = False
        self._unheard = 0
        self._paused = False
        self._closing = False
        self._ends_at = 0.0
        #: When the client stopped reading its replies; None while it does.
        self._stalled_since: float | None = None
        #: When the request that is coming in began; None between requests.
        self._begun: float | None = None
        self._last_used = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._last_used = self._server.now()
        self._server.admit(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._closing = True
        self._server.room.leave(self._incoming)
        self._forget_waiting()
        self._outgoing = None
        self._server.forget(self)

    def data_received(self, data: bytes) -> None:
        if self._deaf or self._closing:
            self._unheard += len(data)
            if self._unheard > _MOST_UNHEARD:
                self.abort()
            return
        self._last_used = self._server.now()
        if self._begun is None:
            if not self._busy and not self._waiting and self._stalled_since is None:
                plain = read_plain(data)
                if plain is not None:
                    self._turns = 0
                    self._begin(plain)
                    return
            self._begun = self._last_used
        incoming = self._incoming
        seen = incoming.head_size + incoming.size
        self._turns = 1
        self._feed(data)
        if self._incoming is not incoming or incoming.head_size + incoming.size != seen:
            self._mute = 0
        elif not self.idle:
            # The parser keeps a header's line until it is whole, however long that becomes.
            self._mute += len(data)
            if self._mute > _LARGEST_HEAD:
                self._refuse(400)

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                data = self._go_on_without_upgrade(data[cast(int, upgrade.args[0]) :])
            except httptools.HttpParserError:
                self._refuse(400)
                return

    def _go_on_without_upgrade(self, rest: bytes) -> bytes:
        """Return what to feed next after a request that wanted another protocol, which is not spoken."""
        incoming = self._incoming
        if self._deaf or self._closing:
            return b""
        if not self._skipped_body:
            return rest
        # The parser takes such a request's body for the other protocol: a new one reads it.
        self._parser = httptools.HttpRequestParser(self)
        framing = b"".join(
            b"%b: %b\r\n" % (name, incoming.headers[name]) for name in _FRAMING if name in incoming.headers
        )
        return b"POST / HTTP/1.1\r\n%b\r\n" % framing + rest

    def eof_received(self) -> bool:
        """Return whether to keep the connection, for replies that are still to come."""
        self._deaf = self._client_ended = True
        self._begun = None
        return (self._busy or bool(self._waiting)) and not self._closing

    def pause_writing(self) -> None:
        self._stalled_since = self._server.now()
        self._regulate()

    def resume_writing(self) -> None:
        self._stalled_since = None
        self._regulate()
        if self._outgoing is not None:
            self._write_on()
        else:
            self._next()

    def _regulate(self) -> None:
        """Read the socket only while what it brings can be answered."""
        if self._closing or self._client_ended:
            return
        full = (
            self._stalled_since is not None
            or len(self._waiting) >= _LONGEST_PIPE
            or self._waiting_bytes >= _LARGEST_PIPE
        )
        if full == self._paused:
            return
        self._paused = full
        if full:
            self._transport.pause_reading()
        else:
            if self._begun is not None:
                # It was not the client who made it wait.
                self._begun = self._server.now()
            self._transport.resume_reading()

    def on_message_begin(self) -> None:
        if self._skipped_body:
            return
        self._incoming = Incoming()
        self._in_head = True
        if self._begun is None:
            self._begun = self._last_used

    def on_url(self, url: bytes) -> None:
        if self._skipped_body:
            return
        incoming = self._incoming
        incoming.url += url
        incoming.head_size += len(url)
        if len(incoming.url) > _LARGEST_URL:
            self._refuse(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._skipped_body:
            return
        incoming = self._incoming
        incoming.head_size += len(name) + len(value) + _HEADER_BYTES
        if self._in_head:
            # After a chunked body come trailers, which nothing here may depend on.
            incoming.add_header(name, value)
        if incoming.head_size > _LARGEST_HEAD or len(incoming.headers) > _MOST_HEADERS:
            self._refuse(400)

    def on_headers_complete(self) -> None:
        if self._skipped_body:
            self._skipped_body = False
            return
        self._in_head = False
        incoming = self._incoming
        incoming.method = self._parser.get_method()
        incoming.keep_alive = self._parser.should_keep_alive()
        version = self._parser.get_http_version()
        if version == "1.0":
            incoming.minor = 0
        elif version != "1.1":
            self._refuse(400)
        headers = incoming.headers
        if self._parser.should_upgrade():
            if incoming.method == b"CONNECT":
                self._refuse(400)
            self._skipped_body = any(name in headers for name in _FRAMING)
        if b"content-length" in headers and int(headers[b"content-length"]) > LARGEST_REQUEST:
            self._refuse(413)
        elif b"expect" in headers and incoming.minor and not self._deaf:
            if headers[b"expect"].lower() != b"100-continue":
                self._refuse(417)
            else:
                self._owes_continue = True
                self._continue()

    def on_body(self, chunk: bytes) -> None:
        incoming = self._incoming
        incoming.size += len(chunk)
        if incoming.size > LARGEST_REQUEST:
            self._refuse(413)
        elif not self._deaf:
            incoming.add_body(chunk)
            if incoming.size > SMALL:
                self._server.room.hold(incoming, self)

    def on_message_complete(self) -> None:
        if self._skipped_body:
            return
        self._begun = None
        self._owes_continue = False
        if self._incoming.size > SMALL:
            self._server.room.complete(self._incoming)
        if not self._deaf and not self._closing:
            self._append(self._incoming)

    def _append(self, incoming: Incoming) -> None:
        self._waiting.append(incoming)
        self._waiting_bytes += incoming.size
        self._next()
        if self._waiting:
            self._regulate()

    def _continue(self) -> None:
        if self._owes_continue and not self._busy and not self._waiting and not self._closing:
            self._owes_continue = False
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _next(self) -> None:
        if not self._waiting or self._busy or self._stalled_since is not None or self._closing:
            return
        if not self._turns:
            # A long pipe takes turns with the other connections.
            if not self._turn_is_due:
                self._turn_is_due = True
                self._server.loop.call_soon(self._take_turn)
            return
        self._turns -= 1
        incoming = self._waiting.popleft()
        self._waiting_bytes -= incoming.size
        if self._paused:
            self._regulate()
        self._begin(incoming)

    def _begin(self, incoming: Incoming) -> None:
        self._busy = True
        answer(self._server, self, incoming)

    def _take_turn(self) -> None:
        self._turn_is_due = False
        self._turns = 1
        self._next()

    @property
    def gone(self) -> bool:
        """Whether no reply can be sent any more."""
        return self._closing

    def send(
        self, incoming: Incoming, status: int, body: Body, content_type: bytes, headers: bytes = b""
    ) -> None:
        """Send the reply to the request that is being answered."""
        if incoming.size > SMALL:
            self._server.room.leave(incoming)
        if self._closing:
            self._busy = False
            return
        keep_alive = incoming.keep_alive and not incoming.refusal and not self._server.stopping
        if not keep_alive:
            headers += b"Connection: close\r\n"
        elif not incoming.minor:
            headers += b"Connection: keep-alive\r\n"
        if self._server.pages.crosses_origins:
            headers += self._server.pages.cors(incoming.headers)
        head = response.head(
            status, body, stamp=self._server.stamp(), content_type=content_type, headers=headers
        )
        self._last_used = self._server.now()
        if incoming.method == b"HEAD":
            self._transport.write(head)
        elif body.size > LARGE:
            self._transport.write(head)
            self._outgoing = Outgoing(body.pieces, partial(self._sent, incoming, keep_alive))
            self._write_on()
            return
        else:
            self._transport.write(head + body.pieces[0] if body.pieces else head)
        self._sent(incoming, keep_alive)

    def _write_on(self) -> None:
        """Write more of a long reply, unless the client has to read first."""
        outgoing = self._outgoing
        if outgoing is None or self._closing or self._stalled_since is not None:
            return
        piece = outgoing.next_piece()
        if piece is None:
            self._outgoing = None
            self._last_used = self._server.now()
            outgoing.done()
            return
        self._transport.write(piece)
        if self._stalled_since is None:
            # Other connections have their turn between two pieces.
            self._server.loop.call_soon(self._write_on)

    def _sent(self, incoming: Incoming, keep_alive: bool) -> None:
        """Go on after a reply."""
        self._busy = False
        if incoming.refusal:
            self._hang_up()
        elif not keep_alive:
            self._deaf = True
            self._forget_waiting()
            self._hang_up()
        elif self._client_ended and not self._waiting:
            self.close()
        elif self._waiting:
            self._next()
        else:
            self._server.idle.touch(self)
            if self._owes_continue:
                self._continue()

    def _refuse(self, status: int) -> None:
        """Answer in its turn what cannot be read any further; nothing after it is read."""
        if not self._deaf and not self._closing:
            self._deaf = True
            self._begun = None
            self._server.room.leave(self._incoming)
            # Not in the request itself: its body is let go, or it was whole and is still answered.
            refused = Incoming()
            refused.refusal = status
            refused.headers = self._incoming.headers
            self._incoming = Incoming()
            self._append(refused)

    def _forget_waiting(self) -> None:
        for incoming in self._waiting:
            self._server.room.leave(incoming)
        self._waiting.clear()
        self._waiting_bytes = 0

    def make_room(self) -> None:
        """Give up the request that is coming in, or would: there is no room for it."""
        self._turns = 1
        self._refuse(503)

    def _hang_up(self) -> None:
        """Say no more, but hear the client out: a reset would take the last reply with it."""
        self._ends_at = self._server.now() + _END_SECONDS
        if self._client_ended:
            self.close()
        else:
            self._transport.write_eof()
            self._regulate()

    @property
    def idle(self) -> bool:
        """Whether nothing is under way on this connection."""
        return not self._busy and not self._waiting and self._begun is None

    @property
    def spare(self) -> bool:
        """Whether no request has come in whole, so that only the client would miss the connection."""
        return not self._busy and not self._waiting and not self._closing

    def retire(self) -> None:
        """End the connection, as there are too many; who has begun a request is told."""
        if self._begun is not None:
            self.make_room()
        self.close()

    def look(self, now: float, *, request_seconds: float, idle_seconds: float) -> None:
        """End what takes too long."""
        if self._ends_at:
            # Who reads the last reply slowly may have it.
            if now > self._ends_at + (request_seconds if self._transport.get_write_buffer_size() else 0):
                self.abort()
        elif self._stalled_since is not None:
            if now - self._stalled_since > request_seconds:
                self.abort()
        elif self._begun is not None and not self._paused:
            if now - self._begun > request_seconds:
                self._turns = 1
                self._refuse(408)
        elif self.idle and now - self._last_used > idle_seconds:
            self.close()

    def close(self) -> None:
        """End the connection once what was written is sent."""
        self._closing = True
        self._ends_at = self._server.now() + _END_SECONDS
        self._transport.close()

    def abort(self) -> None:
        """End the connection now."""
        self._closing = True
        self._transport.abort()
