"""Keep-alive connections to one endpoint, for many threads: request bytes go out, one answer comes back.

The most recently used connection goes first, so that those over the need grow old and are closed. One
that the other side has closed meanwhile is found before it is used. The rest of the window, when that
happens as the request is sent, is told by the class of the error: `Unsent` is sure to be harmless and
is sent again by itself; after `Lost` the request may have been carried out, and only who asks knows
whether it can be repeated. Nothing else is ever sent twice.

No locks: a deque's ends are safe for threads, so a fork can leave nothing locked. A child process
drops what it has inherited, as the parent is using it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from solotable.errors import EngineError

from .answers import Answer, Unreadable

_CHUNK: Final = 64 * 1024
#: How long an answer may be under way to a request that was refused before it was read to its end.
_REFUSAL_SECONDS: Final = 1.0
#: Balancers say this to a connection that they close as idle; by RFC 9110 there was no whole request.
_GREW_OLD: Final = 408


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long is waited for what."""

    connect_seconds: float = 3
    #: For the next byte.
    read_seconds: float = 15
    #: For the last byte.
    answer_seconds: float = 60
    #: Older ones are not used again: their other end is likely to be about to close them.
    idle_seconds: float = 20
    #: Connections that are kept; more are made when more threads ask at once, and closed afterwards.
    idle_connections: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where connections go; `tls` is None for plain HTTP."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None


class Unreachable(Exception):
    """There is no connection, so nothing was sent; `cause` is the operating system's or OpenSSL's."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Unsent(Exception):
    """The end of the request never left, so no server can have carried it out."""


class Lost(Exception):
    """The request was sent and no whole answer came; `stale` if the connection may have been dead."""

    def __init__(self, reason: str, *, stale: bool = False) -> None:
        super().__init__(reason)
        self.stale = stale


class Connection:
    """One connection, used by one thread at a time."""

    __slots__ = ("_socket", "used_at")

    def __init__(self, address: Address, patience: Patience) -> None:
        try:
            self._socket = _connected(address, patience.connect_seconds)
        except OSError as fault:
            raise Unreachable(fault) from fault
        self._socket.settimeout(patience.read_seconds)
        self.used_at = 0.0

    def is_alive(self) -> bool:
        """Whether the other end has neither closed it nor said anything unasked."""
        return not _readable(self._socket)

    def exchange(self, request: bytes, patience: Patience) -> Answer:
        """Send a request and return its whole answer, or raise Unsent, Lost or Unreadable."""
        reused = self.used_at > 0
        try:
            self._socket.sendall(request)
        except OSError as fault:
            answer = self._refusal(patience)
            if answer is None:
                raise Unsent(_reason(fault)) from fault
            return answer
        answer = Answer()
        try:
            self._read(answer, patience)
            answer.judge()
        except OSError as fault:
            silent = not answer.begun and not isinstance(fault, TimeoutError)
            raise Lost(_reason(fault), stale=reused and silent) from fault
        except Unreadable as fault:
            if answer.begun:
                raise
            raise Lost("the connection was closed", stale=reused) from fault
        if reused and answer.status == _GREW_OLD:
            raise Unsent("the server closed the connection for its age")
        self.used_at = time.monotonic()
        return answer

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _read(self, answer: Answer, patience: Patience) -> None:
        receive = self._socket.recv
        data = receive(_CHUNK)
        if data:
            answer.feed(data)
            if answer.whole:
                return
        # Only what comes in pieces needs a clock: the first wait has its own.
        latest = time.monotonic() + patience.answer_seconds
        while data and not answer.whole:
            data = receive(_CHUNK)
            if data:
                answer.feed(data)
            if time.monotonic() > latest:
                raise TimeoutError("its end did not come in time")
        if not data:
            answer.end()

    def _refusal(self, patience: Patience) -> Answer | None:
        # A server may refuse a request for its size before it has read it, and close.
        answer = Answer()
        try:
            self._socket.settimeout(min(_REFUSAL_SECONDS, patience.read_seconds))
            self._read(answer, patience)
            answer.judge()
        except (OSError, Unreadable):
            return None
        answer.reusable = False
        return answer if answer.status >= 400 and answer.status != _GREW_OLD else None


class Pool:
    """The connections of one engine to one endpoint."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.patience = patience
        self._address = address
        self._idle: deque[Connection] = deque()
        self._process = os.getpid()
        self._closed = False

    def exchange(self, request: bytes, *, fresh: bool = False) -> Answer:
        """Send a request on an idle connection or a new one, which `fresh` demands."""
        connection = None if fresh else self._take()
        if connection is not None:
            try:
                return self._run(connection, request)
            except Unsent:
                # The connection had died unnoticed; a new one says whether the server is there.
                pass
        if self._closed:
            raise EngineError("The engine was closed; open it again.")
        return self._run(Connection(self._address, self.patience), request)

    def close(self) -> None:
        """Close the connections; those in use close when they are done."""
        self._closed = True
        self._drop()

    def _run(self, connection: Connection, request: bytes) -> Answer:
        answer: Answer | None = None
        try:
            answer = connection.exchange(request, self.patience)
        finally:
            # Whatever was raised, by a signal's handler too: what comes next on it would be misread.
            if answer is None or not answer.reusable or len(self._idle) >= self.patience.idle_connections:
                connection.close()
            else:
                self._idle.append(connection)
                self._retire(connection.used_at - self.patience.idle_seconds)
        return answer

    def _retire(self, earliest: float) -> None:
        if self._closed:
            self._drop()
            return
        # Those at the left are not needed any more, and nobody would come across them.
        with contextlib.suppress(IndexError, ValueError):
            while (oldest := self._idle[0]).used_at < earliest:
                self._idle.remove(oldest)
                oldest.close()

    def _take(self) -> Connection | None:
        if self._process != os.getpid():
            inherited, self._idle = self._idle, deque()
            self._process = os.getpid()
            for connection in inherited:
                connection.close()
        earliest = time.monotonic() - self.patience.idle_seconds
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.used_at >= earliest and connection.is_alive():
                return connection
            connection.close()

    def _drop(self) -> None:
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return


def _connected(address: Address, seconds: float) -> socket.socket:
    plain = socket.create_connection((address.host, address.port), timeout=seconds)
    try:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if address.tls is None:
            return plain
        return address.tls.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise


def _readable(sock: socket.socket) -> bool:
    # select() alone takes no more than 1024 files, and Windows has no poll().
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([sock], [], [], 0)[0])


def _reason(fault: OSError) -> str:
    return fault.strerror or str(fault) or type(fault).__name__
