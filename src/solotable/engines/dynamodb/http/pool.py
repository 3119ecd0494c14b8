"""Connections that stay open between requests: the pool of idle ones, and blocking use of them.

The pool hands out the most recently used connection, so surplus connections age and are closed. It detects
a connection that the server has closed before it hands it out.

The pool has no locks: a deque's ends are thread-safe, so a fork cannot leave a lock held. A child process
drops the connections that it inherits, because the parent uses them.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections import deque
from typing import Final, Generic, Protocol, TypeVar

from solotable.errors import EngineError

from .exchange import Address, ConnectFailed, HttpSettings, RequestNotSent, exchange
from .response import HttpResponse

CHUNK: Final = 64 * 1024


class Poolable(Protocol):
    """A connection that the pool can hold."""

    #: When its last response arrived, by the monotonic clock; 0 before the first.
    used_at: float

    @property
    def socket(self) -> socket.socket:
        """The connected socket."""
        ...

    def close(self) -> None:
        """Close the connection at once."""
        ...


ConnectionT = TypeVar("ConnectionT", bound=Poolable)


class ConnectionPool(Generic[ConnectionT]):
    """The idle connections of one engine to one endpoint."""

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._idle: deque[ConnectionT] = deque()
        self._process = os.getpid()
        self._closed = False

    def acquire(self) -> ConnectionT | None:
        """Return a live idle connection; None if the caller has to open one."""
        if self._process != os.getpid():
            inherited, self._idle = self._idle, deque()
            self._process = os.getpid()
            for connection in inherited:
                connection.close()
        earliest = time.monotonic() - self._settings.idle_seconds
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.used_at >= earliest and not _is_readable(connection.socket):
                return connection
            connection.close()

    def check_open(self) -> None:
        """Raise EngineError after `close`."""
        if self._closed:
            raise EngineError("The store was closed; open it again.")

    def release(self, connection: ConnectionT, response: HttpResponse | None) -> None:
        """Return a connection to the pool, or close it; without a response, it is not reusable."""
        full = len(self._idle) >= self._settings.idle_connections
        if response is None or not response.reusable or full:
            connection.close()
            return
        connection.used_at = now = time.monotonic()
        self._idle.append(connection)
        if self._closed:
            self.drop()
            return
        # `acquire` would never reach surplus connections at the left end.
        with contextlib.suppress(IndexError, ValueError):
            while (oldest := self._idle[0]).used_at < now - self._settings.idle_seconds:
                self._idle.remove(oldest)
                oldest.close()

    def close(self) -> None:
        """Close the idle connections; a connection in use closes when it is released."""
        self._closed = True
        self.drop()

    def drop(self) -> None:
        """Close the connections that are idle now."""
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


class BlockingConnection:
    """One blocking connection, used by one thread at a time."""

    __slots__ = ("_seconds", "socket", "used_at")

    def __init__(self, address: Address, settings: HttpSettings) -> None:
        try:
            self.socket = _connect(address, settings.connect_seconds)
        except OSError as fault:
            raise ConnectFailed(fault) from fault
        self._seconds = settings.read_seconds
        self.socket.settimeout(self._seconds)
        self.used_at = 0.0

    def exchange(self, request: bytes, settings: HttpSettings) -> HttpResponse:
        """Send a request and return its response; see `exchange.exchange`."""
        steps = exchange(request, settings, reused=self.used_at > 0)
        try:
            step = next(steps)
            while True:
                try:
                    received = self._perform(step)
                except OSError as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(received)
        except StopIteration as done:
            response: HttpResponse = done.value
            return response

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self.socket.close()

    def _perform(self, step: bytes | float) -> bytes:
        if isinstance(step, bytes):
            self.socket.sendall(step)
            return b""
        if step != self._seconds:
            # Each change is a system call.
            self._seconds = step
            self.socket.settimeout(step)
        return self.socket.recv(CHUNK)


class BlockingPool:
    """Sends requests to one endpoint over pooled blocking connections; safe for many threads.

    It repeats a request that was not sent whole, once, on a new connection, and nothing else. After
    `ResponseLost`, only the caller knows whether it may repeat the request.
    """

    def __init__(self, address: Address, settings: HttpSettings) -> None:
        self.address = address
        self.settings = settings
        self._idle: ConnectionPool[BlockingConnection] = ConnectionPool(settings)

    def exchange(self, request: bytes, *, new_connection: bool = False) -> HttpResponse:
        """Send a request on an idle connection, or on a new one."""
        connection = None if new_connection else self._idle.acquire()
        if connection is not None:
            # The idle connection was dead; a new one shows whether the server is up.
            with contextlib.suppress(RequestNotSent):
                return self._use(connection, request)
        self._idle.check_open()
        return self._use(BlockingConnection(self.address, self.settings), request)

    def close(self) -> None:
        """Close the connections; a connection in use closes after its response."""
        self._idle.close()

    def _use(self, connection: BlockingConnection, request: bytes) -> HttpResponse:
        response: HttpResponse | None = None
        try:
            response = connection.exchange(request, self.settings)
        finally:
            # After any exception, including one that a signal handler raises.
            self._idle.release(connection, response)
        return response


def configure_socket(connected: socket.socket) -> socket.socket:
    """Return the socket with TCP_NODELAY and SO_KEEPALIVE set."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connected


def _connect(address: Address, seconds: float) -> socket.socket:
    plain = socket.create_connection((address.host, address.port), timeout=seconds)
    try:
        configure_socket(plain)
        if address.tls is None:
            return plain
        return address.tls.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise


def _is_readable(sock: socket.socket) -> bool:
    # No response is due: readable bytes are the end of the connection, or unwanted.
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    # Windows has no poll(); elsewhere select() supports at most 1024 files.
    return bool(select.select([sock], [], [], 0)[0])
