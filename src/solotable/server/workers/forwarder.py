"""A worker's connection to the writer; a lost one is opened again.

The supervisor keeps the writer's socket open. So a request that is sent while no writer runs waits for the
next one. A request that a writer received before it died has an unknown outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from typing import cast

from solotable._protocol import wire
from solotable.errors import EngineError, ServiceError

from .frames import CHECK, FrameReader, encode_request

_RETRY_SECONDS = 0.05
#: How long a health check waits for the writer.
_CHECK_SECONDS = 5.0
_LOST = (
    "The process that writes ended before it answered; it is not known whether the request was carried out."
)

#: Called with the status and the body of a reply.
Done = Callable[[int, bytes], None]


class WriterConnection(asyncio.Protocol):
    """Sends requests to the writer and passes on its replies."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._numbers = count()
        self._pending: dict[int, Done] = {}
        #: Health checks that wait for the writer, by the timers that end them.
        self._checks: dict[asyncio.TimerHandle, Callable[[bool], None]] = {}
        self._is_checking = False
        #: Frames that are not sent yet: those of one tick are sent together.
        self._unsent: list[bytes] = []
        self._loop: asyncio.AbstractEventLoop
        self._closed = False
        self._reconnecting: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Connect to the writer."""
        self._loop = asyncio.get_running_loop()
        try:
            await self._loop.create_unix_connection(lambda: self, self._path)
        except OSError as fault:
            raise EngineError(f"Cannot connect to the process that writes: {fault.strerror}.") from fault

    def forward(self, target: str, body: bytes, done: Done, /) -> None:
        """Send a request; call `done` with the reply, or with an error if the writer dies."""
        number = next(self._numbers) & 0xFFFFFFFF
        if not self._unsent and self._transport is not None:
            self._loop.call_soon(self._send)
        self._unsent.append(encode_request(number, target, body))
        self._pending[number] = done

    def check(self, done: Callable[[bool], None], /) -> None:
        """Call `done` with whether the writer answers within five seconds."""

        def give_up() -> None:
            del self._checks[timer]
            done(False)

        timer = self._loop.call_later(_CHECK_SECONDS, give_up)
        self._checks[timer] = done
        # A writer that hangs gets one check, however many clients ask.
        if not self._is_checking:
            self._is_checking = True
            self.forward(CHECK, b"", self._checked)

    def _checked(self, status: int, _body: bytes) -> None:
        self._is_checking = False
        checks, self._checks = self._checks, {}
        for timer, done in checks.items():
            timer.cancel()
            done(status == HTTPStatus.OK)

    def close(self) -> None:
        """Close the connection; no request may be pending."""
        self._closed = True
        if self._reconnecting is not None:
            self._reconnecting.cancel()
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._frames = FrameReader()
        self._send()

    def data_received(self, data: bytes) -> None:
        for number, status, body in self._frames.feed(data):
            self._pending.pop(number)(status, body)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if self._closed:
            return
        # What is not sent yet waits for the next writer.
        unsent = len(self._unsent)
        lost = list(self._pending)[: len(self._pending) - unsent]
        status, pieces = wire.encode_error(ServiceError("InternalServerError", _LOST, status=500))
        for number in lost:
            self._pending.pop(number)(status, b"".join(pieces))
        self._reconnecting = self._loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        while self._transport is None:
            with contextlib.suppress(EngineError):
                await self.connect()
                return
            await asyncio.sleep(_RETRY_SECONDS)

    def _send(self) -> None:
        if self._unsent and self._transport is not None:
            unsent, self._unsent = self._unsent, []
            self._transport.write(b"".join(unsent))
