"""An S3 server in its own process (moto), and a proxy before it that fails as a test wants."""

from __future__ import annotations

import http.client
import importlib.util
import re
import socket
import subprocess
import sys
import threading
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, cast

import boto3
import pytest
from botocore.config import Config

from .serving import environment
from .waiting import wait_until

Fault = Literal["503", "500", "403", "reset", "cut", "pass"]
_BODIES = {
    "503": b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>",
    "500": b"<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>",
    "403": b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
}


@contextmanager
def moto_server(log: Path) -> Iterator[str]:
    """Serve S3 on a free port, and yield the endpoint; skips where moto is not installed."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("moto is not available. Install the packages of requirements/dev.lock.")
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-p", "0"],
            stdout=out,
            stderr=out,
            env=environment(),
        )
    try:
        found = wait_until(
            lambda: process.poll() is not None or re.search(r"http://127\.0\.0\.1:[0-9]+", log.read_text()),
            seen=log.read_text,
        )
        assert isinstance(found, re.Match), log.read_text()
        yield found[0]
    finally:
        process.kill()
        process.wait()


def s3_client(endpoint: str, *, attempts: int = 1) -> Any:
    """Return a client of boto3 whose retries do not wait long."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": attempts, "mode": "standard"}),
    )


def new_bucket(endpoint: str) -> str:
    """Create a bucket with a name of its own."""
    name = f"b{uuid.uuid4().hex}"
    client = s3_client(endpoint, attempts=5)
    client.create_bucket(Bucket=name)
    client.close()
    return name


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    target: str
    faults: deque[Fault]


class FaultyS3:
    """A proxy before an S3 server; each queued fault answers one request."""

    def __init__(self, target: str) -> None:
        self._server = _Proxy(("127.0.0.1", 0), _Handler)
        self._server.target = target.removeprefix("http://")
        self._server.faults = self.faults = deque[Fault]()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop the proxy."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name in http.server
        """Print nothing."""

    def _serve(self) -> None:
        proxy = cast(_Proxy, self.server)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = proxy.faults.popleft() if proxy.faults else "pass"
        if fault == "reset":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if fault in _BODIES:
            self._answer(int(fault), {"Content-Type": "application/xml"}, _BODIES[fault])
            return
        connection = http.client.HTTPConnection(proxy.target)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        connection.request(self.command, self.path, body, headers)
        reply = connection.getresponse()
        content = reply.read()
        connection.close()
        kept = {
            name: value
            for name, value in reply.getheaders()
            if name.lower() not in {"connection", "content-length", "transfer-encoding", "server", "date"}
        }
        length = reply.getheader("Content-Length") if self.command == "HEAD" else None
        self._answer(reply.status, kept, content, length=length, cut=fault == "cut")

    def _answer(
        self,
        status: int,
        headers: dict[str, str],
        body: bytes,
        *,
        length: str | None = None,
        cut: bool = False,
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _serve  # noqa: N815 - the names in http.server
