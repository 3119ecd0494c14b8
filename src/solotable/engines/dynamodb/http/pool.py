"""Keep-alive connections to one endpoint, for many threads: request bytes go out, one answer comes back.

A request that certainly never left whole is sent again on a new connection, once; nothing else is sent
twice here. Whether a request may be repeated after `Lost` only who asks can know.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Final

from .exchange import Address, Patience, Unreachable, Unsent, exchange
from .idle import Idle
from .response import Answer

CHUNK: Final = 64 * 1024


class Connection:
    """One connection, used by one thread at a time."""

    __slots__ = ("_seconds", "socket", "used_at")

    def __init__(self, address: Address, patience: Patience) -> None:
        try:
            self.socket = _connected(address, patience.connect_seconds)
        except OSError as fault:
            raise Unreachable(fault) from fault
        self._seconds = patience.read_seconds
        self.socket.settimeout(self._seconds)
        self.used_at = 0.0

    def exchange(self, request: bytes, patience: Patience) -> Answer:
        """Send a request and return its answer; see `exchange.exchange`."""
        steps = exchange(request, patience, reused=self.used_at > 0)
        try:
            step = next(steps)
            while True:
                try:
                    got = self._take(step)
                except OSError as fault:
                    step = steps.throw(fault)
                else:
                    step = steps.send(got)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self.socket.close()

    def _take(self, step: bytes | float) -> bytes:
        if isinstance(step, bytes):
            self.socket.sendall(step)
            return b""
        if step != self._seconds:
            # Each change is a system call.
            self._seconds = step
            self.socket.settimeout(step)
        return self.socket.recv(CHUNK)


class Pool:
    """The connections of one engine to one endpoint."""

    def __init__(self, address: Address, patience: Patience) -> None:
        self.address = address
        self.patience = patience
        self._idle: Idle[Connection] = Idle(patience)

    def exchange(self, request: bytes, *, fresh: bool = False) -> Answer:
        """Send a request on an idle connection or a new one, which `fresh` demands."""
        connection = None if fresh else self._idle.take()
        if connection is not None:
            # Unsent: the connection had died unnoticed; a new one says whether the server is there.
            with contextlib.suppress(Unsent):
                return self._run(connection, request)
        self._idle.check_open()
        return self._run(Connection(self.address, self.patience), request)

    def close(self) -> None:
        """Close the connections; those in use close when they are done."""
        self._idle.close()

    def _run(self, connection: Connection, request: bytes) -> Answer:
        answer: Answer | None = None
        try:
            answer = connection.exchange(request, self.patience)
        finally:
            # Whatever was raised, by a signal's handler too.
            self._idle.done(connection, answer)
        return answer


def tuned(made: socket.socket) -> socket.socket:
    """Return a socket that sends small requests at once, and finds out when its other end has gone."""
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return made


def _connected(address: Address, seconds: float) -> socket.socket:
    plain = socket.create_connection((address.host, address.port), timeout=seconds)
    try:
        tuned(plain)
        if address.tls is None:
            return plain
        return address.tls.wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise
