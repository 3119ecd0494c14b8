"""The process around the protocol: the socket, the signals, the clock, and a clean end.

On SIGTERM or SIGINT the server takes no more connections, answers what it has begun, and closes. It
opens and closes no database: its engine is handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import signal
import socket
import sys
import time
from base64 import b32encode
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from itertools import count
from os import urandom
from typing import Any, Protocol

from solotable._protocol.constraints.error_texts import texts_of
from solotable.errors import EngineError, SolotableError

from .auth.allowed_hosts import Hosts
from .auth.sigv4 import Verifier
from .health import Pages
from .http.body_budget import Room
from .http.connection import Connection
from .http.idle_connections import Idle
from .open_files import most_files, want_files
from .scheduler import GroupingEngine, Lanes
from .time_slices import Loop

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
#: How long the loop waits for a thread that computes; Python's own 5 ms are ten GetItems.
_SWITCH_SECONDS = 0.0002


class ServedEngine(GroupingEngine, Protocol):
    """An engine that also has something to sweep."""

    def sweep(self) -> int:
        """Remove what has expired."""


class PortTaken(SolotableError):
    """Something else listens on the port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server listens and what it demands of its clients."""

    host: str = "127.0.0.1"
    #: 0 picks a free one.
    port: int = 8000
    #: Access key ids and their secrets; None takes any signature, or none.
    keys: Mapping[str, str] | None = field(default=None, repr=False)
    #: Names that a server without keys answers to, beside loopback names and addresses; "*" are all.
    allowed_hosts: tuple[str, ...] = ()
    #: The origin whose pages may call from a browser, or "*"; None: none.
    cors_origin: str | None = None
    #: A request must be whole within this time of its first byte.
    request_seconds: float = 30.0
    #: A connection without requests is closed after this time.
    idle_seconds: float = 120.0
    #: How many connections there may be, as far as the system has files for them.
    connections: int = 4096
    #: What the bodies of requests that are still coming in may take together, in bytes.
    room: int = 256 * 1024 * 1024
    #: How often expired items are removed; 0: never.
    sweep_seconds: float = 60.0
    #: How long a shutdown waits for what is under way.
    grace_seconds: float = 10.0


class Server:
    """A server on one event loop."""

    def __init__(
        self, engine: ServedEngine, settings: Settings, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._engine = engine
        self.error_texts = texts_of(engine)
        self._settings = settings
        self._clock = clock
        self.room = Room(settings.room)
        self.pages = Pages(settings.cors_origin)
        self.verifier = None if settings.keys is None else Verifier(settings.keys, clock=clock)
        self.hosts = Hosts(self._names())
        self.connections: set[Connection] = set()
        self.idle: Idle[Connection] = Idle()
        #: Those that were too many, and are being closed.
        self._leaving: set[Connection] = set()
        self.stopping = False
        self._most_connections = settings.connections
        self.lanes: Lanes
        self.loop: asyncio.AbstractEventLoop
        self.now: Callable[[], float]
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: asyncio.Server

        self._id_prefix = b32encode(urandom(25))[:40]
        self._ids = count()
        self._second = -1
        self._stamp_start = b""

    def stamp(self) -> bytes:
        """Return the date, and an id that no other reply has in the form of Amazon's, as header lines."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            date = formatdate(second, usegmt=True).encode()
            self._stamp_start = b"Date: %b\r\nx-amzn-RequestId: %b" % (date, self._id_prefix)
        return b"%b%012d\r\n" % (self._stamp_start, next(self._ids))

    def admit(self, connection: Connection) -> None:
        """Take a connection in; when there are too many, the one that has been idle for the longest goes.

        When every other one has a request, the new one is refused. The work does not grow with their number.
        """
        self.connections.add(connection)
        if len(self.connections) - len(self._leaving) <= self._most_connections:
            self.idle.add(connection)
        elif (oldest := self.idle.take_oldest()) is not None:
            self._leaving.add(oldest)
            oldest.retire()
            self.idle.add(connection)
        elif len(self._leaving) < self._most_connections:
            self._leaving.add(connection)
            connection.make_room()
        else:
            # Too many refusals are in progress to send one more.
            connection.abort()

    def forget(self, connection: Connection) -> None:
        """Let go of a connection that is closed."""
        self.connections.discard(connection)
        self._leaving.discard(connection)
        self.idle.remove(connection)

    def _names(self) -> set[str] | None:
        """Return the names that the server answers to; None are all."""
        if self._settings.keys is not None:
            return None
        return {self._settings.host, *self._settings.allowed_hosts}

    async def start(self) -> int:
        """Listen, and return the port."""
        # Half of the files: a burst is accepted whole before anybody can be sent away.
        self._most_connections = min(self._settings.connections, max(1, most_files() // 2))
        loop = self.loop = asyncio.get_running_loop()
        self.now = time.monotonic
        self.lanes = Lanes(self._engine, loop)
        try:
            self._listener = await self._listen(self._settings.port)
            port: int = self._listener.sockets[0].getsockname()[1]
            if not self._settings.port and len(self._listener.sockets) > 1:
                # A name with several addresses got a port for each; clients are told of one.
                self._listener.close()
                self._listener = await self._listen(port)
        except (OSError, UnicodeError) as fault:
            self.lanes.close()
            raise self._explained(fault) from fault
        self._tasks.append(loop.create_task(self._look_after_connections()))
        if self._settings.sweep_seconds:
            self._tasks.append(loop.create_task(self._sweep_now_and_then()))
        return port

    async def _listen(self, port: int) -> asyncio.Server:
        return await self.loop.create_server(
            lambda: Connection(self), self._settings.host, port, backlog=1024
        )

    async def stop(self) -> None:
        """Take no more, answer what was begun, close."""
        self.stopping = True
        self._listener.close()
        deadline = self.now() + self._settings.grace_seconds
        while self.connections and self.now() < deadline:
            for connection in tuple(self.connections):
                if connection.idle:
                    connection.close()
            await asyncio.sleep(0.01)
        for connection in tuple(self.connections):
            connection.abort()
        for task in self._tasks:
            task.cancel()
        await self.loop.run_in_executor(None, self.lanes.close)

    def _explained(self, fault: OSError | UnicodeError) -> SolotableError:
        if isinstance(fault, UnicodeError | socket.gaierror):
            return EngineError(f"There is no address for the host {self._settings.host!r}.")
        where = f"{self._settings.host}:{self._settings.port}"
        if fault.errno == errno.EADDRINUSE:
            return PortTaken(
                f"Port {self._settings.port} is taken on {self._settings.host} "
                "(often by DynamoDB Local, or another server of ours). --port 0 picks a free one."
            )
        return EngineError(f"Cannot listen on {where}: {fault.strerror or fault}.")

    async def _look_after_connections(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self.now()
            for connection in tuple(self.connections):
                connection.look(
                    now,
                    request_seconds=self._settings.request_seconds,
                    idle_seconds=self._settings.idle_seconds,
                )

    async def _sweep_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(self._settings.sweep_seconds)
            try:
                await self.loop.run_in_executor(None, self._engine.sweep)
            except Exception:  # noqa: BLE001  # the edge: what one sweep meets must not end all of them
                # The next sweep may find the disk less full; requests tell their callers themselves.
                _LOG.exception("sweeping failed")


def serve(
    engine: ServedEngine, settings: Settings, *, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the port once requests are taken."""
    want_files(4 * settings.connections)
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        run(_serve(engine, settings, ready))
    finally:
        sys.setswitchinterval(before)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a server's coroutine on a loop that long requests can yield to."""
    # asyncio's own loop: uvloop was measured, and answered no more requests. On Windows, one that waits in
    # a selector takes 512 connections, so there long requests yield to the loop less well.
    factory = None if sys.platform == "win32" else Loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


async def _serve(engine: ServedEngine, settings: Settings, ready: Callable[[int], None]) -> None:
    server = Server(engine, settings)
    port = await server.start()
    # What is there now stays: the collector need not look through it again and again.
    gc.collect()
    gc.freeze()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        # Windows' loops take no signal handlers; there, KeyboardInterrupt ends the loop.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(name, ended.set)
    ready(port)
    try:
        await ended.wait()
    finally:
        await server.stop()
