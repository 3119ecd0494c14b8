"""A server that follows a script: it answers with bytes, with silence, or closes."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any
from zlib import crc32

from tests.waiting import HANG_SECONDS


def answer(body: Any, *, status: int = 200, length: int | None = None, checksum: int | None = None) -> bytes:
    """A whole response, or one whose length or checksum lies."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} Words\r\nContent-Type: application/x-amz-json-1.0\r\nConnection: close\r\n"
        f"Content-Length: {len(raw) if length is None else length}\r\n"
    )
    if status == 200:
        head += f"x-amz-crc32: {crc32(raw) if checksum is None else checksum}\r\n"
    return head.encode() + b"\r\n" + raw


class Scripted:
    """Takes one connection at a time, and gives each its answer; None hangs up without one."""

    def __init__(self, reply: bytes | None, *, silent: bool) -> None:
        self.requests: list[bytes] = []
        self._reply = reply
        self._silent = silent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.requests.append(_whole_request(connection))
                if self._silent:
                    self._ended.wait(HANG_SECONDS)
                elif self._reply is not None:
                    connection.sendall(self._reply)

    def close(self) -> None:
        self._ended.set()
        # Closing alone does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(HANG_SECONDS)


@contextlib.contextmanager
def scripted(reply: bytes | None = None, *, silent: bool = False) -> Iterator[Scripted]:
    """Run such a server for as long as the block lasts."""
    server = Scripted(reply, silent=silent)
    try:
        yield server
    finally:
        server.close()


def _whole_request(connection: socket.socket) -> bytes:
    got = b""
    while b"\r\n\r\n" not in got:
        got += connection.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    found = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    assert found is not None
    while len(body) < int(found[1]):
        body += connection.recv(65536)
    return body
