"""Listening, signals, timeouts and shutdown of the server.

On SIGTERM or SIGINT the server stops listening, answers the requests that it has received, and closes. The
caller opens and closes the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import threading
import time
from base64 import b32encode
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from email.utils import formatdate
from itertools import count
from os import urandom
from typing import Any, Protocol

from solotable._protocol.heat import HeatLog

from .auth.allowed_hosts import AllowedHosts
from .auth.sigv4 import Verifier
from .dispatch import Forwarder
from .health import HealthPages
from .http.body_budget import BodyBudget
from .http.connection import Connection
from .http.idle_connections import IdleConnections
from .http.request import HttpRequest
from .listeners import BACKLOG, open_listeners
from .open_files import open_file_limit, raise_open_file_limit
from .request_log import RequestRecord, access_key_id, operation_name
from .scheduling.scheduler import GroupingEngine, Scheduler
from .scheduling.tick import Tick
from .scheduling.time_slices import GatedLoop, SwitchInterval
from .settings import Settings

_LOG = logging.getLogger(__name__)
_TIMEOUT_CHECK_SECONDS = 1.0
#: Threads that compute only while the scheduler knows it; others, such as an engine's, always may.
_OWN_THREADS = ("MainThread", "asyncio_", "solotable-")


class ServedEngine(GroupingEngine, Protocol):
    """An engine that the server can also sweep."""

    def sweep(self) -> int:
        """Remove expired items."""


class Server:
    """A server on one event loop."""

    #: Whether several writes arrive in one tick.
    _defers_writes = False

    def __init__(
        self,
        engine: ServedEngine,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        interval: AbstractContextManager[None] | None = None,
        forwarder: Forwarder | None = None,
    ) -> None:
        """Prepare a server; `interval` is entered while threads compute, if the server owns the process.

        A `forwarder` gets every request but those that read items.
        """
        self._engine = engine
        self.forwarder = forwarder
        self.error_texts = engine.capabilities.error_texts
        self._settings = settings
        self._clock = clock
        self.body_budget = BodyBudget(settings.body_budget_bytes)
        self.health_pages = HealthPages(settings.cors_origin)
        self.verifier = None if settings.keys is None else Verifier(settings.keys, clock=clock)
        self.allowed_hosts = AllowedHosts(self._host_names())
        self.connections: set[Connection] = set()
        self.idle: IdleConnections[Connection] = IdleConnections()
        #: Connections that are closing because there were too many.
        self._evicted: set[Connection] = set()
        self.stopping = False
        #: Whether the threads that answer requests have ended, or are about to.
        self._stopped = False
        self.log = settings.log
        self._most_connections = settings.connections
        #: Entered while a thread computes beside the event loop; reusable.
        self._interval = contextlib.nullcontext() if interval is None else interval
        self.scheduler: Scheduler
        self.tick: Tick
        self.loop: asyncio.AbstractEventLoop
        self.now: Callable[[], float]
        self._tasks: list[asyncio.Task[None]] = []
        self._listeners: list[asyncio.Server] = []
        self._adopting: set[asyncio.Task[None]] = set()

        self._id_prefix = b32encode(urandom(25))[:40]
        self._ids = count()
        self._second = -1
        self._stamp_start = b""

    def read_heat(self, since: float) -> HeatLog | None:
        """Return the heat of the engine since a time; None if it is not recorded."""
        heat = self._engine.capabilities.heat
        return None if heat is None else heat(since)

    def date_and_id(self) -> bytes:
        """Return the Date and x-amzn-RequestId header lines; the id is unique and looks like AWS's."""
        second = int(self._clock())
        if second != self._second:
            self._second = second
            date = formatdate(second, usegmt=True).encode()
            self._stamp_start = b"Date: %b\r\nx-amzn-RequestId: %b" % (date, self._id_prefix)
        return b"%b%012d\r\n" % (self._stamp_start, next(self._ids))

    def log_request(self, request: HttpRequest, status: int, bytes_out: int, client: str) -> None:
        """Call the log with an answered request; turn the log off if it fails."""
        if self.log is None:
            return
        record = RequestRecord(
            time=self._clock(),
            client=client,
            operation=operation_name(request),
            table=request.table,
            status=status,
            seconds=self.now() - request.started_at,
            bytes_in=request.size,
            bytes_out=bytes_out,
            access_key_id=access_key_id(request),
        )
        try:
            self.log(record)
        except Exception:  # noqa: BLE001  # a process edge: a full disk or closed pipe must not end requests
            self.log = None
            _LOG.exception("the request log failed and is off")

    def add_connection(self, connection: Connection) -> None:
        """Add a connection; beyond the limit, close the least recently used one.

        If every other connection has a request, reject the new one. The work takes constant time.
        """
        if self._stopped:
            # It was accepted before the listeners closed.
            connection.abort()
            return
        self.connections.add(connection)
        if len(self.connections) - len(self._evicted) <= self._most_connections:
            self.idle.add(connection)
        elif (evicted := self.idle.pop_evictable()) is not None:
            self._evicted.add(evicted)
            evicted.evict()
            self.idle.add(connection)
        elif len(self._evicted) < self._most_connections:
            self._evicted.add(connection)
            connection.reject_unavailable()
        else:
            # Too many rejections are in progress to send one more.
            connection.abort()

    def remove_connection(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        self._evicted.discard(connection)
        self.idle.remove(connection)

    def _host_names(self) -> set[str] | None:
        """Return the host names that the server accepts; None accepts all."""
        if self._settings.keys is not None:
            return None
        return {self._settings.host, *self._settings.allowed_hosts}

    async def start(self, listeners: Sequence[socket.socket] | None = None) -> int:
        """Listen, on the given sockets or on the address of the settings, and return the port."""
        # Half of the files: the server accepts a whole burst before it can close other connections.
        self._most_connections = min(self._settings.connections, max(1, open_file_limit() // 2))
        if listeners is None:
            listeners = open_listeners(self._settings.host, self._settings.port)
        loop = self.loop = asyncio.get_running_loop()
        self.now = time.monotonic
        self.tick = Tick(loop, self.now)
        self.scheduler = Scheduler(self._engine, loop, self._interval, defers_writes=self._defers_writes)
        for each in listeners:
            self._listeners.append(await loop.create_server(self.accept, sock=each, backlog=BACKLOG))
        self._tasks.append(loop.create_task(self._check_timeouts()))
        if self._settings.sweep_seconds:
            self._tasks.append(loop.create_task(self._sweep_periodically()))
        # Workers do not listen; the address of a Unix socket has no port.
        name = listeners[0].getsockname() if listeners else ""
        return self._settings.port if isinstance(name, str) else int(name[1])

    def accept(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return Connection(self)

    def adopt(self, connection: socket.socket) -> None:
        """Serve a connection that another process has accepted."""
        task = self.loop.create_task(self._adopt(connection))
        self._adopting.add(task)
        task.add_done_callback(self._adopting.discard)

    async def _adopt(self, connection: socket.socket) -> None:
        # The client may have closed it.
        with contextlib.suppress(OSError):
            await self.loop.connect_accepted_socket(self.accept, connection)

    async def stop(self) -> None:
        """Stop listening, answer pending requests, and close."""
        self.stopping = True
        for each in self._listeners:
            each.close()
        await asyncio.gather(*self._adopting)
        deadline = self.now() + self._settings.grace_seconds
        while self.connections and self.now() < deadline:
            for connection in tuple(self.connections):
                if connection.idle:
                    connection.close()
            await asyncio.sleep(0.01)
        self._stopped = True
        for connection in tuple(self.connections):
            connection.abort()
        for task in self._tasks:
            task.cancel()
        await self.loop.run_in_executor(None, self.scheduler.close)

    async def _check_timeouts(self) -> None:
        with contextlib.ExitStack() as computing:
            while True:
                await asyncio.sleep(_TIMEOUT_CHECK_SECONDS)
                self._check_all()
                computing.close()
                if any(not each.name.startswith(_OWN_THREADS) for each in threading.enumerate()):
                    computing.enter_context(self._interval)

    def _check_all(self) -> None:
        now = self.now()
        for connection in tuple(self.connections):
            connection.check_timeouts(
                now,
                request_seconds=self._settings.request_seconds,
                idle_seconds=self._settings.idle_seconds,
            )

    async def _sweep_periodically(self) -> None:
        while True:
            await asyncio.sleep(self._settings.sweep_seconds)
            try:
                with self._interval:
                    await self.loop.run_in_executor(None, self._engine.sweep)
            except Exception:  # noqa: BLE001  # a process edge: one failure must not end all sweeps
                # The next sweep may succeed, for example on a disk that was full.
                _LOG.exception("sweeping failed")


def serve(
    engine: ServedEngine, settings: Settings, *, ready: Callable[[int], None] = lambda port: None
) -> None:
    """Serve until SIGTERM or SIGINT; call `ready` with the port once the server listens."""
    run_process(_serve(engine, settings, ready), settings)


def run_process(main: Coroutine[Any, Any, None], settings: Settings) -> None:
    """Run the coroutine of a server that owns this process."""
    raise_open_file_limit(4 * settings.connections)
    before = sys.getswitchinterval()
    try:
        run(main)
    finally:
        sys.setswitchinterval(before)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a server's coroutine on an event loop that long requests can yield to."""
    # Not uvloop: it answered no more requests when measured. Not on Windows: a selector loop there is
    # limited to 512 connections.
    factory = None if sys.platform == "win32" else GatedLoop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


async def _serve(engine: ServedEngine, settings: Settings, ready: Callable[[int], None]) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        # Windows' loops have no signal handlers; there, KeyboardInterrupt ends the loop.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(name, ended.set)
    await serve_until(ended, Server(engine, settings, interval=SwitchInterval()), ready=ready)


async def serve_until(
    ended: asyncio.Event,
    server: Server,
    listeners: Sequence[socket.socket] | None = None,
    *,
    ready: Callable[[int], None],
) -> None:
    """Serve until an event is set; call `ready` with the port once the server listens."""
    port = await server.start(listeners)
    # The objects that exist now are permanent: keep the garbage collector from visiting them again.
    gc.collect()
    gc.freeze()
    ready(port)
    try:
        await ended.wait()
    finally:
        await server.stop()
