"""A real server on a free port, in a thread, and a client that sends raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from solotable.engines import sqlite
from solotable.server import Server, Settings
from solotable.server.run import run
from tests.waiting import HANG_SECONDS, wait_until

JSON = "application/x-amz-json-1.0"
#: gzip without the time of day, so that what a test is named after stays the same.
gzipped = partial(gzip.compress, mtime=0)
TABLE = {
    "TableName": "Things",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply, its header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def request(
    operation: str = "ListTables",
    payload: Any = None,
    *,
    body: bytes | None = None,
    method: str = "POST",
    url: str = "/",
    version: str = "1.1",
    target: str | None = None,
    without: tuple[str, ...] = (),
    **headers: str,
) -> bytes:
    """A request's bytes; `content_type="x"` sets a header, `without` leaves some out."""
    raw = body if body is not None else json.dumps({} if payload is None else payload).encode()
    lines = {
        "Host": "localhost",
        "Content-Type": JSON,
        "X-Amz-Target": target or f"DynamoDB_20120810.{operation}",
        "Content-Length": str(len(raw)),
    }
    lines |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if name not in without)
    return f"{method} {url} HTTP/{version}\r\n{head}\r\n".encode("latin-1") + raw


def put(key: str, **attributes: Any) -> bytes:
    return request("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}, **attributes}})


def get(key: str) -> bytes:
    payload = {"TableName": "Things", "Key": {"pk": {"S": key}}, "ConsistentRead": True}
    return request("GetItem", payload)


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS)
        self._buffer = b""

    def send(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def ask(self, data: bytes) -> Reply:
        return self.send(data).reply()

    def call(self, operation: str, payload: Any = None) -> Any:
        reply = self.ask(request(operation, payload))
        assert reply.status == 200, reply
        return reply.json()

    def reply(self, *, bodiless: bool = False) -> Reply:
        """Read one reply, and check what every reply must have."""
        head = self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        if status == 100:
            return Reply(status=status, headers=headers, body=b"")
        length = 0 if bodiless else int(headers["content-length"])
        body = self._exactly(length)
        assert len(headers["x-amzn-requestid"]) == 52
        assert headers["x-amzn-requestid"].isalnum()
        assert "date" in headers
        if not bodiless:
            assert int(headers["x-amz-crc32"]) == crc32(body)
        return Reply(status=status, headers=headers, body=body)

    def ended(self) -> bool:
        """Whether the server has closed the connection, with nothing more to say."""
        try:
            return self._buffer == b"" and self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def silent(self, seconds: float = 0.05) -> bool:
        """Whether nothing comes for this long; a loaded machine can only make it seem so."""
        before = self.socket.gettimeout()
        self.socket.settimeout(seconds)
        try:
            self._buffer += self.socket.recv(65536)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)
        return False

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            self._fill()
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def _exactly(self, length: int) -> bytes:
        pieces = [self._buffer]
        missing = length - len(self._buffer)
        while missing > 0:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise ConnectionError("the server ended the connection within a reply")
            pieces.append(piece)
            missing -= len(piece)
        whole = b"".join(pieces)
        self._buffer = whole[length:]
        return whole[:length]

    def _fill(self) -> None:
        piece = self.socket.recv(65536)
        if not piece:
            raise ConnectionError("the server ended the connection")
        self._buffer += piece

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Clock:
    """A server's clock: the system's, ahead by what a test has let pass."""

    def __init__(self) -> None:
        self.ahead_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_seconds


class Running:
    """A server that takes requests."""

    def __init__(self, server: Server, port: int, clock: Clock) -> None:
        self.server = server
        self.port = port
        self.clock = clock

    def client(self) -> Client:
        return Client(self.port)

    def let_pass(self, seconds: float, client: Client) -> None:
        """Move the server's clock by so much, until a client hears of it.

        More than once, because the server may just have been reading the clock after a reply.
        """

        def heard() -> bool:
            self.clock.ahead_seconds += seconds
            return not client.silent()

        wait_until(heard)

    def wait_for_connections(self, count: int) -> None:
        """Wait until the server has so many connections."""
        wait_until(lambda: len(self.server.connections) == count, seen=lambda: len(self.server.connections))

    def wait_for_a_begun_request(self) -> None:
        """Wait until the server has read a part of a request."""
        wait_until(
            lambda: any(each._request_started_at is not None for each in tuple(self.server.connections))
        )

    def wait_for_a_stalled_client(self) -> None:
        """Wait until the server has noticed that a client does not read its replies."""
        wait_until(lambda: any(each._stalled_since is not None for each in tuple(self.server.connections)))

    def wait_for_held_bytes(self, count: int) -> None:
        """Wait until the bodies that are coming in, or are not answered yet, have so many bytes."""
        wait_until(lambda: self.server.body_budget._used == count, seen=lambda: self.server.body_budget._used)

    def ask(self, data: bytes) -> Reply:
        with self.client() as client:
            return client.ask(data)

    def is_well(self) -> None:
        """Assert that another client gets its replies now."""
        with self.client() as client:
            assert client.call("ListTables")["TableNames"] == ["Things"]
            assert client.ask(put("health", n={"N": "1"})).status == 200
            assert client.ask(get("health")).json()["Item"]["n"] == {"N": "1"}


@contextlib.contextmanager
def running(path: str = ":memory:", **settings: Any) -> Iterator[Running]:
    """Serve a database with the table Things for as long as the block lasts."""
    ready: list[Running] = []
    faults: list[dict[str, Any]] = []
    started = threading.Event()
    ended: list[asyncio.Event] = []
    with sqlite.open(path, durability="relaxed") as engine:
        engine.call("CreateTable", TABLE)

        async def serve() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _loop, context: faults.append(context))
            # A slow machine reaches no limit of time; a test that wants one moves the clock.
            patient = {"request_seconds": HANG_SECONDS, "idle_seconds": HANG_SECONDS}
            server = Server(engine, Settings(port=0, sweep_seconds=0, **(patient | settings)))
            port = await server.start()
            clock = Clock()
            server.now = clock
            ended.append(asyncio.Event())
            ready.append(Running(server, port, clock))
            started.set()
            await ended[0].wait()
            await server.stop()

        thread = threading.Thread(target=lambda: run(serve()), daemon=True)
        thread.start()
        assert started.wait(HANG_SECONDS)
        try:
            yield ready[0]
        finally:
            ready[0].server.loop.call_soon_threadsafe(ended[0].set)
            thread.join(HANG_SECONDS)
            assert not thread.is_alive()
    assert faults == []
