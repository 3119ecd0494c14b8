"""Many clients of one server, each over its own socket; no SDK, so that the load is the server's."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from tests.waiting import HANG_SECONDS


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, target: str, body: bytes, *, kind: str = "application/x-amz-json-1.0") -> tuple[int, bytes]:
        """Send a request and return the status and body of its answer."""
        head = (
            f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: {target}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return self.send(head.encode("latin-1") + body)

    def send(self, raw: bytes) -> tuple[int, bytes]:
        """Send bytes and return the status and body that come back; (0, b"") when none do."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=HANG_SECONDS)
        # Who is refused while he sends has his answer all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(raw)
        try:
            return self._receive(self._socket)
        except (BrokenPipeError, ConnectionResetError):
            self.close()
            return 0, b""

    def _receive(self, connection: socket.socket) -> tuple[int, bytes]:
        buffer = b""
        while b"\r\n\r\n" not in buffer:
            piece = connection.recv(65536)
            if not piece:
                self.close()
                return 0, b""
            buffer += piece
        head, _, body = buffer.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
        length = int(headers.get(b"content-length", b"0"))
        while len(body) < length:
            piece = connection.recv(65536)
            if not piece:
                self.close()
                return 0, b""
            body += piece
        if headers.get(b"connection") == b"close" or len(body) > length:
            # More than one answer: the bytes were more than one request, and the last of them refused.
            self.close()
        return int(lines[0].split()[1]), body[:length]

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def memory_bytes(process: int) -> int:
    """Return the memory that a process has in use, or 0 where the system does not tell."""
    status = Path(f"/proc/{process}/statm")
    return int(status.read_text().split()[1]) * 4096 if status.exists() else 0
