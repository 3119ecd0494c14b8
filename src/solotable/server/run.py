"""Listening, signals, timeouts and shutdown of the server.

On SIGTERM or SIGINT the server stops listening, answers the requests that it has received, and closes. The
caller opens and closes the engine.
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
import threading
import time
from base64 import b32encode
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from email.utils import formatdate
from itertools import count
from os import urandom
from typing import Any, Protocol

from solotable.errors import EngineError, SolotableError

from .auth.allowed_hosts import AllowedHosts
from .auth.sigv4 import Verifier
from .health import HealthPages
from .http.body_budget import BodyBudget
from .http.connection import Connection
from .http.idle_connections import IdleConnections
from .http.request import HttpRequest
from .open_files import open_file_limit, raise_open_file_limit
from .request_log import RequestRecord, access_key_id, operation_name
from .scheduler import GroupingEngine, Scheduler
from .settings import Settings
from .time_slices import GatedLoop, SwitchInterval

_LOG = logging.getLogger(__name__)
_TIMEOUT_CHECK_SECONDS = 1.0
#: Threads that compute only while the scheduler knows it; others, such as an engine's, always may.
_OWN_THREADS = ("MainThread", "asyncio_", "solotable-")


class ServedEngine(GroupingEngine, Protocol):
    """An engine that the server can also sweep."""

    def sweep(self) -> int:
        """Remove expired items."""


class PortTaken(SolotableError):
    """Another process listens on the port."""


class Server:
    """A server on one event loop."""

    def __init__(
        self,
        engine: ServedEngine,
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        interval: AbstractContextManager[None] | None = None,
    ) -> None:
        """Prepare a server; `interval` is entered while threads compute, if the server owns the process."""
        self._engine = engine
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
        self.log = settings.log
        self._most_connections = settings.connections
        #: Entered while a thread computes beside the event loop; reusable.
        self._interval = contextlib.nullcontext() if interval is None else interval
        self.scheduler: Scheduler
        self.loop: asyncio.AbstractEventLoop
        self.now: Callable[[], float]
        self._tasks: list[asyncio.Task[None]] = []
        self._listener: asyncio.Server

        self._id_prefix = b32encode(urandom(25))[:40]
        self._ids = count()
        self._second = -1
        self._stamp_start = b""

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

    async def start(self) -> int:
        """Listen, and return the port."""
        # Half of the files: the server accepts a whole burst before it can close other connections.
        self._most_connections = min(self._settings.connections, max(1, open_file_limit() // 2))
        loop = self.loop = asyncio.get_running_loop()
        self.now = time.monotonic
        self.scheduler = Scheduler(self._engine, loop, self._interval)
        try:
            self._listener = await self._listen(self._settings.port)
            port: int = self._listener.sockets[0].getsockname()[1]
            if not self._settings.port and len(self._listener.sockets) > 1:
                # A name with several addresses gets a port for each; clients need the same one.
                self._listener.close()
                self._listener = await self._listen(port)
        except (OSError, UnicodeError) as fault:
            self.scheduler.close()
            raise self._explain(fault) from fault
        self._tasks.append(loop.create_task(self._check_timeouts()))
        if self._settings.sweep_seconds:
            self._tasks.append(loop.create_task(self._sweep_periodically()))
        return port

    async def _listen(self, port: int) -> asyncio.Server:
        return await self.loop.create_server(
            lambda: Connection(self), self._settings.host, port, backlog=1024
        )

    async def stop(self) -> None:
        """Stop listening, answer pending requests, and close."""
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
        await self.loop.run_in_executor(None, self.scheduler.close)

    def _explain(self, fault: OSError | UnicodeError) -> SolotableError:
        if isinstance(fault, UnicodeError | socket.gaierror):
            return EngineError(f"Cannot resolve the host {self._settings.host!r}.")
        where = f"{self._settings.host}:{self._settings.port}"
        if fault.errno == errno.EADDRINUSE:
            return PortTaken(
                f"Port {self._settings.port} on {self._settings.host} is already in use "
                "(by DynamoDB Local or another solotable server?). --port 0 picks a free port."
            )
        return EngineError(f"Cannot listen on {where}: {fault.strerror or fault}.")

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
    raise_open_file_limit(4 * settings.connections)
    before = sys.getswitchinterval()
    try:
        run(_serve(engine, settings, ready))
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
    server = Server(engine, settings, interval=SwitchInterval())
    port = await server.start()
    # The objects that exist now are permanent: keep the garbage collector from visiting them again.
    gc.collect()
    gc.freeze()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        # Windows' loops have no signal handlers; there, KeyboardInterrupt ends the loop.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(name, ended.set)
    ready(port)
    try:
        await ended.wait()
    finally:
        await server.stop()
