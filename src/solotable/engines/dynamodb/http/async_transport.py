"""asyncio transport: signing and pooling without botocore or threads.

It uses the loop's `sock_` calls, which say whether a request was sent whole, and encrypts TLS itself. A
store may move from one event loop to another; each loop has its own connections. Blocking work of botocore
(fetching credentials over the network, patched methods) runs in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any

from solotable.engines.dynamodb.idempotency import is_read_only
from solotable.engines.dynamodb.select_transport import is_botocore_unpatched

from .exchange import Address, ConnectFailed, HttpSettings, RequestNotSent, ResponseLost, exchange
from .pool import CHUNK, ConnectionPool, configure_socket
from .response import HttpResponse
from .transport import HttpTransport


class AsyncConnection:
    """One asynchronous connection, used by one task at a time."""

    __slots__ = ("_tunnel", "socket", "used_at")

    def __init__(self, connected: socket.socket, tunnel: TlsStream | None) -> None:
        self.socket = connected
        self._tunnel = tunnel
        self.used_at = 0.0

    @classmethod
    async def open(cls, address: Address, settings: HttpSettings) -> AsyncConnection:
        """Connect, or raise ConnectFailed."""
        made: socket.socket | None = None
        try:
            async with asyncio.timeout(settings.connect_seconds):
                made = await _connect(address)
                tunnel = None
                if address.tls is not None:
                    tunnel = TlsStream(address.tls, address.host)
                    await tunnel.handshake(made)
                return cls(made, tunnel)
        except BaseException as fault:
            if made is not None:
                made.close()
            if isinstance(fault, OSError):
                raise ConnectFailed(fault) from fault
            raise

    async def exchange(self, request: bytes, settings: HttpSettings) -> HttpResponse:
        """Send a request and return its response; see `exchange.exchange`."""
        steps = exchange(request, settings, reused=self.used_at > 0)
        try:
            step = next(steps)
            while True:
                try:
                    if isinstance(step, bytes):
                        received = await self._send(step, settings.read_seconds)
                    else:
                        async with asyncio.timeout(step):
                            received = await self._receive()
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

    async def _send(self, data: bytes, seconds: float) -> bytes:
        """Send all bytes; at once if the socket takes them, which needs neither a timeout nor the loop."""
        sent = 0
        if self._tunnel is None:
            with contextlib.suppress(BlockingIOError, InterruptedError):
                sent = self.socket.send(data)
            if sent == len(data):
                return b""
        async with asyncio.timeout(seconds):
            if self._tunnel is not None:
                await self._tunnel.send(self.socket, data)
            else:
                await asyncio.get_running_loop().sock_sendall(self.socket, data[sent:])
        return b""

    async def _receive(self) -> bytes:
        if self._tunnel is not None:
            return await self._tunnel.receive(self.socket)
        return await asyncio.get_running_loop().sock_recv(self.socket, CHUNK)


class TlsStream:
    """TLS over a non-blocking socket."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    async def handshake(self, sock: socket.socket) -> None:
        """Perform the TLS handshake and verify the server's certificate."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush(sock)
                if not await self._fill(sock):
                    raise ssl.SSLEOFError("closed during the TLS handshake") from None
            except ssl.SSLError:
                # Send the TLS alert to the server.
                with contextlib.suppress(OSError):
                    await self._flush(sock)
                raise
            else:
                await self._flush(sock)
                return

    async def send(self, sock: socket.socket, data: bytes) -> None:
        """Send all bytes, or raise OSError."""
        left = memoryview(data)
        while left:
            left = left[self._tls.write(left) :]
        await self._flush(sock)

    async def receive(self, sock: socket.socket) -> bytes:
        """Return the next bytes; b"" at the end."""
        while True:
            try:
                return self._tls.read(CHUNK)
            except ssl.SSLWantReadError:
                # A key update may require a reply.
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


class AsyncHttpTransport:
    """The asyncio counterpart of an HttpTransport."""

    def __init__(self, blocking: HttpTransport) -> None:
        self._blocking = blocking
        self._idle: ConnectionPool[AsyncConnection] = ConnectionPool(blocking.pool.settings)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore()

    async def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the reply."""
        if not is_botocore_unpatched():
            return await asyncio.to_thread(self._blocking.fallback.send, operation, members)
        protocol = self._blocking.protocol
        signers = protocol.signers
        signer = await asyncio.to_thread(signers.current) if signers.would_block() else signers.current()
        steps = protocol.call_steps(operation, members, signer)
        try:
            step = next(steps)
            while True:
                if not isinstance(step, bytes):
                    step = steps.send(await asyncio.to_thread(step))
                    continue
                async with self._request_slots():
                    try:
                        response = await self._exchange(step)
                    except ResponseLost as lost:
                        if not lost.stale or not is_read_only(operation, members):
                            raise
                        response = await self._exchange(step, new_connection=True)
                step = steps.send(response)
        except StopIteration as done:
            reply: dict[str, Any] = done.value
            return reply

    def close(self) -> None:
        """Close the connections; a connection in use closes after its response."""
        self._idle.close()

    def _request_slots(self) -> asyncio.Semaphore:
        # A semaphore belongs to one loop after its first wait; on Windows, sockets do too.
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._idle.drop()
            self._slots = asyncio.Semaphore(self._blocking.pool.settings.idle_connections)
        return self._slots

    async def _exchange(self, request: bytes, *, new_connection: bool = False) -> HttpResponse:
        connection = None if new_connection else self._idle.acquire()
        if connection is not None:
            with contextlib.suppress(RequestNotSent):
                return await self._use(connection, request)
        self._idle.check_open()
        pool = self._blocking.pool
        return await self._use(await AsyncConnection.open(pool.address, pool.settings), request)

    async def _use(self, connection: AsyncConnection, request: bytes) -> HttpResponse:
        response: HttpResponse | None = None
        try:
            response = await connection.exchange(request, self._blocking.pool.settings)
        finally:
            # After a cancellation or an error, a late response would answer the next request.
            self._idle.release(connection, response)
        return response


async def _connect(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    fault: OSError = OSError("the host name has no address")
    for family, kind, protocol, _, sockaddr in found:
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            await loop.sock_connect(made, sockaddr)
            return configure_socket(made)
        except OSError as refused:
            made.close()
            fault = refused
        except BaseException:
            made.close()
            raise
    raise fault
