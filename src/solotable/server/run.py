"""The process around the protocol: the socket, the signals, the clock, and a clean end.

On SIGTERM or SIGINT the server takes no more connections, answers what it has begun, and closes. It
opens and closes no database: its engine is handed in.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
import time
from base64 import b32encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from os import urandom
from typing import Protocol

from solotable.errors import EngineError, SolotableError

from .auth import Verifier
from .connection import Connection
from .lanes import GroupingEngine, Lanes
from .pages import Pages

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0


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
    #: The origin whose pages may call from a browser, or "*"; None: none.
    cors_origin: str | None = None
    #: A request must be whole within this time of its first byte.
    request_seconds: float = 30.0
    #: A connection without requests is closed after this time.
    idle_seconds: float = 120.0
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
        self._settings = settings
        self.pages = Pages(settings.cors_origin)
        self.verifier = None if settings.keys is None else Verifier(settings.keys, clock=clock)
        self.connections: set[Connection] = set()
        self.stopping = False
        self.lanes: Lanes
        self.now: Callable[[], float]
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: asyncio.Server

        self._id_prefix = b32encode(urandom(25))[:40]
        self._ids = count()

    def request_id(self) -> bytes:
        """Return an id that no other reply has, in the form of Amazon's."""
        return b"%b%012d" % (self._id_prefix, next(self._ids))

    async def start(self) -> int:
        """Listen, and return the port."""
        loop = asyncio.get_running_loop()
        self.now = loop.time
        self.lanes = Lanes(self._engine, loop)
        try:
            self._listener = await loop.create_server(
                lambda: Connection(self), self._settings.host, self._settings.port, backlog=1024
            )
        except OSError as fault:
            self.lanes.close()
            raise self._explained(fault) from fault
        self._tasks.append(loop.create_task(self._look_after_connections()))
        if self._settings.sweep_seconds:
            self._tasks.append(loop.create_task(self._sweep_now_and_then()))
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

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
            connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.get_running_loop().run_in_executor(None, self.lanes.close)

    def _explained(self, fault: OSError) -> SolotableError:
        where = f"{self._settings.host}:{self._settings.port}"
        if fault.errno == errno.EADDRINUSE:
            return PortTaken(
                f"Port {self._settings.port} is taken on {self._settings.host} "
                "(often by DynamoDB Local, or another server of ours). --port 0 picks a free one."
            )
        if isinstance(fault, socket.gaierror):
            return EngineError(f"There is no address for the host {self._settings.host!r}.")
        return EngineError(f"Cannot listen on {where}: {fault.strerror or fault}.")

    async def _look_after_connections(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self.now()
            for connection in tuple(self.connections):
                if connection.begun is not None and now - connection.begun > self._settings.request_seconds:
                    connection.refuse(408)
                elif connection.idle and now - connection.last_used > self._settings.idle_seconds:
                    connection.close()

    async def _sweep_now_and_then(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._settings.sweep_seconds)
            try:
                await loop.run_in_executor(None, self._engine.sweep)
            except SolotableError:
                # The next sweep may find the disk less full; requests tell their callers themselves.
                _LOG.exception("sweeping failed")


def serve(
    engine: ServedEngine, settings: Settings, *, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the port once requests are taken."""
    asyncio.run(_serve(engine, settings, ready))


async def _serve(engine: ServedEngine, settings: Settings, ready: Callable[[int], None]) -> None:
    server = Server(engine, settings)
    port = await server.start()
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
