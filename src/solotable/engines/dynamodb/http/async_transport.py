"""The lean way on an event loop: the same requests, connections and errors, and no threads between.

Sockets are read and written by the loop's own `sock_` calls, as those say whether a request left whole;
TLS is turned into bytes here. A store may be used by one event loop after another; each has connections
of its own. What only botocore can do, and blocks (credentials that are fetched over the network, tools
that have taken hold of its methods), is waited for in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any

from solotable.engines.dynamodb.idempotency import only_reads
from solotable.engines.dynamodb.select_transport import is_untouched

from .exchange import Address, Lost, Patience, Unreachable, Unsent, exchange
from .idle import Idle
from .pool import CHUNK, tuned
from .response import Answer
from .transport import Direct


class AwaitedConnection:
    """One connection, used by one task at a time."""

    __slots__ = ("_tunnel", "socket", "used_at")

    def __init__(self, connected: socket.socket, tunnel: Tunnel | None) -> None:
        self.socket = connected
        self._tunnel = tunnel
        self.used_at = 0.0

    @classmethod
    async def open(cls, address: Address, patience: Patience) -> AwaitedConnection:
        """Connect, or raise Unreachable."""
        made: socket.socket | None = None
        try:
            async with asyncio.timeout(patience.connect_seconds):
                made = await _connected(address)
                tunnel = None
                if address.tls is not None:
                    tunnel = Tunnel(address.tls, address.host)
                    await tunnel.shake_hands(made)
                return cls(made, tunnel)
        except BaseException as fault:
            if made is not None:
                made.close()
            if isinstance(fault, OSError):
                raise Unreachable(fault) from fault
            raise

    async def exchange(self, request: bytes, patience: Patience) -> Answer:
        """Send a request and return its answer; see `exchange.exchange`."""
        steps = exchange(request, patience, reused=self.used_at > 0)
        try:
            step = next(steps)
            while True:
                seconds = step if isinstance(step, float | int) else patience.read_seconds
                try:
                    async with asyncio.timeout(seconds):
                        got = await self._take(step)
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

    async def _take(self, step: bytes | float) -> bytes:
        if self._tunnel is not None:
            if isinstance(step, bytes):
                await self._tunnel.send(self.socket, step)
                return b""
            return await self._tunnel.receive(self.socket)
        loop = asyncio.get_running_loop()
        if isinstance(step, bytes):
            await loop.sock_sendall(self.socket, step)
            return b""
        return await loop.sock_recv(self.socket, CHUNK)


class Tunnel:
    """TLS between bytes in the clear and a socket."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    async def shake_hands(self, sock: socket.socket) -> None:
        """Agree on keys, and judge the other side's certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush(sock)
                if not await self._fill(sock):
                    raise ssl.SSLEOFError("closed while it was agreed how to encrypt") from None
            except ssl.SSLError:
                # The other side is told why.
                with contextlib.suppress(OSError):
                    await self._flush(sock)
                raise
            else:
                await self._flush(sock)
                return

    async def send(self, sock: socket.socket, data: bytes) -> None:
        """Send all of it, or raise."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        await self._flush(sock)

    async def receive(self, sock: socket.socket) -> bytes:
        """Return what comes next; nothing at the end."""
        while True:
            try:
                return self._tls.read(CHUNK)
            except ssl.SSLWantReadError:
                # A change of keys may want to be answered.
                await self._flush(sock)
                if not await self._fill(sock):
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def _flush(self, sock: socket.socket) -> None:
        if self._outgoing.pending:
            await asyncio.get_running_loop().sock_sendall(sock, self._outgoing.read())

    async def _fill(self, sock: socket.socket) -> bool:
        data = await asyncio.get_running_loop().sock_recv(sock, CHUNK)
        self._incoming.write(data)
        return bool(data)


class AwaitedDirect:
    """A channel of our own to await, beside the blocking one that it was made from."""

    def __init__(self, direct: Direct) -> None:
        self._direct = direct
        self._idle: Idle[AwaitedConnection] = Idle(direct.pool.patience)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Semaphore()

    async def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the answer."""
        if not is_untouched():
            return await asyncio.to_thread(self._direct.aside.send, operation, members)
        wording = self._direct.wording
        slow = wording.signers.would_wait()
        signer = await asyncio.to_thread(wording.signers.current) if slow else wording.signers.current()
        talk = wording.talk(operation, members, signer)
        try:
            step = next(talk)
            while True:
                if not isinstance(step, bytes):
                    step = talk.send(await asyncio.to_thread(step))
                    continue
                async with self._room_here():
                    try:
                        answer = await self._exchange(step)
                    except Lost as lost:
                        if not lost.stale or not only_reads(operation, members):
                            raise
                        answer = await self._exchange(step, fresh=True)
                step = talk.send(answer)
        except StopIteration as done:
            found: dict[str, Any] = done.value
            return found

    def close(self) -> None:
        """Close the connections; those in use close when they are done."""
        self._idle.close()

    def _room_here(self) -> asyncio.Semaphore:
        # A semaphore belongs to a loop once somebody has waited for it; on Windows sockets do too.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._idle.drop()
            self._room = asyncio.Semaphore(self._direct.pool.patience.idle_connections)
        return self._room

    async def _exchange(self, request: bytes, *, fresh: bool = False) -> Answer:
        connection = None if fresh else self._idle.take()
        if connection is not None:
            with contextlib.suppress(Unsent):
                return await self._run(connection, request)
        self._idle.check_open()
        pool = self._direct.pool
        return await self._run(await AwaitedConnection.open(pool.address, pool.patience), request)

    async def _run(self, connection: AwaitedConnection, request: bytes) -> Answer:
        answer: Answer | None = None
        try:
            answer = await connection.exchange(request, self._direct.pool.patience)
        finally:
            # Cancelled or failed: what comes next on it would be misread.
            self._idle.done(connection, answer)
        return answer


async def _connected(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    fault: OSError = OSError("the name has no address")
    for family, kind, protocol, _, place in found:
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, place)
            return tuned(made)
        except OSError as refused:
            made.close()
            fault = refused
        except BaseException:
            made.close()
            raise
    raise fault
