"""An endpoint that does what no good one does: cuts, drips, babbles, lies, and answers too late.

It counts whole requests, so that a test can say how often a write was there to be carried out.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from zlib import crc32

from tests.waiting import HANG_SECONDS

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


def reply(
    body: bytes = b'{"Item":{"pk":{"S":"a"}}}',
    *,
    status: int = 200,
    length: int | None = None,
    extra: str = "",
) -> bytes:
    """A good answer that keeps the connection, or one whose length lies."""
    head = (
        f"HTTP/1.1 {status} Words\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"Content-Length: {len(body) if length is None else length}\r\n"
        f"x-amz-crc32: {crc32(body)}\r\n{extra}\r\n"
    )
    return head.encode() + body


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    """An answer in chunks."""
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nx-amz-crc32: {crc32(b''.join(pieces))}\r\n\r\n"
    return head.encode() + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What becomes of one whole request."""

    reply: bytes = b""
    #: Between each two bytes of the reply.
    drip_seconds: float = 0
    #: Whether the reply comes when the client has given up and ended the connection.
    too_late: bool = False
    #: Whether the connection ends behind the reply, and whether by a reset.
    hangs_up: bool = False
    resets: bool = False
    #: Called with the request before the reply is sent.
    then: Callable[[bytes], object] | None = None


GOOD = Act(reply=reply())


class Evil:
    """Plays one act for each whole request, the last one again and again."""

    def __init__(self, acts: list[Act], *, tls: ssl.SSLContext | None = None, reads_bytes: int | None = None):
        self.acts = acts
        self.requests: list[bytes] = []
        self.connections = 0
        self._reads_bytes = reads_bytes
        self._tls = tls
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def open_connections(self) -> int:
        with self._lock:
            return len(self._open)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in list(self._threads):
            thread.join(HANG_SECONDS)

    def hang_up(self) -> None:
        """End every connection that is open."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, plain: socket.socket) -> None:
        connection = plain
        try:
            connection = plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True)
            with self._lock:
                self.connections += 1
                self._open.add(connection)
            self._talk(connection)
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _talk(self, connection: socket.socket) -> None:
        if self._reads_bytes is not None:
            # The rest is never read.
            self._play(connection, self.acts[0], connection.recv(self._reads_bytes))
            _reset(connection)
            return
        while True:
            request = whole_request(connection)
            if request is None:
                return
            with self._lock:
                self.requests.append(request)
                act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
            self._play(connection, act, request)
            if act.resets:
                _reset(connection)
            if act.hangs_up or act.resets:
                return

    def _play(self, connection: socket.socket, act: Act, request: bytes) -> None:
        if act.then is not None:
            act.then(request)
        if act.too_late:
            # A client that continues instead, with its next request, gets the reply to the one before.
            connection.recv(1)
        if act.drip_seconds:
            for byte in act.reply:
                time.sleep(act.drip_seconds)
                connection.sendall(bytes((byte,)))
        else:
            connection.sendall(act.reply)


@contextlib.contextmanager
def evil(*acts: Act, tls: ssl.SSLContext | None = None, reads_bytes: int | None = None) -> Iterator[Evil]:
    """Run such an endpoint for as long as the block lasts."""
    server = Evil(list(acts) or [GOOD], tls=tls, reads_bytes=reads_bytes)
    try:
        yield server
    finally:
        server.close()


def whole_request(connection: socket.socket) -> bytes | None:
    """A request to its last byte; None when it does not come."""
    got = b""
    while b"\r\n\r\n" not in got:
        piece = connection.recv(65536)
        if not piece:
            return None
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    found = LENGTH.search(head)
    assert found is not None
    missing = int(found[1]) - len(body)
    while missing > 0:
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
        missing -= len(piece)
    return head + b"\r\n\r\n" + body


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
