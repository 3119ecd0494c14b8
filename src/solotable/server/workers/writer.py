"""The process that writes: a server whose clients are the workers.

It answers every request that a worker does not answer itself, and does all maintenance of the file. A worker
has verified signatures and decompressed bodies.
"""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from typing import cast

from solotable.server.dispatch import operate
from solotable.server.http.request import HttpRequest
from solotable.server.http.response import JSON_TYPE, Body
from solotable.server.run import ServedEngine, Server
from solotable.server.scheduling.time_slices import SwitchInterval
from solotable.server.settings import Settings

from .frames import CHECK, FrameReader, encode_reply

_CHECK = CHECK.encode()


class WriterServer(Server):
    """A server that accepts workers instead of HTTP clients."""

    # A worker sends the requests of several clients together.
    _defers_writes = True

    def __init__(self, engine: ServedEngine, settings: Settings, interval: SwitchInterval) -> None:
        super().__init__(engine, settings, interval=interval)
        self._workers: set[WorkerConnection] = set()
        self._without_workers = asyncio.Event()
        self._grace_seconds = settings.grace_seconds

    def accept(self) -> asyncio.Protocol:
        """Return the protocol of a worker's connection."""
        return WorkerConnection(self)

    def add_worker(self, worker: WorkerConnection) -> None:
        """Add a connected worker."""
        self._workers.add(worker)
        self._without_workers.clear()

    def remove_worker(self, worker: WorkerConnection) -> None:
        """Remove a worker that is gone."""
        self._workers.discard(worker)
        if not self._workers:
            self._without_workers.set()

    async def stop(self) -> None:
        """Stop when every worker has, so that their requests are answered; then close."""
        if self._workers:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._without_workers.wait(), self._grace_seconds)
        for worker in tuple(self._workers):
            worker.abort()
        await super().stop()


class WorkerConnection(asyncio.Protocol):
    """The requests and replies of one worker."""

    def __init__(self, server: WriterServer) -> None:
        self._server = server
        self._frames = FrameReader()
        self._transport: asyncio.Transport
        self._unsent: list[bytes] = []
        self.is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.add_worker(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_closed = True
        self._server.remove_worker(self)

    def data_received(self, data: bytes) -> None:
        for number, length, content in self._frames.feed(data):
            target = content[:length]
            if target == _CHECK:
                self.reply(encode_reply(number, HTTPStatus.OK, []))
                continue
            request = HttpRequest()
            request.headers[b"x-amz-target"] = target
            request.add_body(content[length:])
            request.size = len(content) - length
            operate(self._server, _Forwarded(self, number), request, JSON_TYPE)

    def reply(self, frame: bytes) -> None:
        """Send a reply; those of one tick are sent together."""
        if self.is_closed:
            return
        if not self._unsent:
            self._server.loop.call_soon(self._send)
        self._unsent.append(frame)

    def _send(self) -> None:
        unsent, self._unsent = self._unsent, []
        self._transport.write(b"".join(unsent))

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()


class _Forwarded:
    """The client of one forwarded request."""

    __slots__ = ("_connection", "_number")

    def __init__(self, connection: WorkerConnection, number: int) -> None:
        self._connection = connection
        self._number = number

    @property
    def is_closed(self) -> bool:
        """Whether the worker is gone."""
        return self._connection.is_closed

    def abort(self) -> None:
        """Close the connection of the worker."""
        self._connection.abort()

    def send(
        self, _request: HttpRequest, status: int, body: Body, _content_type: bytes, _headers: bytes = b""
    ) -> None:
        """Send the reply to the worker."""
        self._connection.reply(encode_reply(self._number, status, body.pieces))
