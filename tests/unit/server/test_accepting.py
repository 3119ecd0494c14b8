"""Accepted connections: small pieces of a reply are sent at once, and a late connection is closed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from solotable.engines.sqlite.engine import SqliteEngine
from solotable.server.listeners import open_listeners
from solotable.server.run import Server, run
from solotable.server.settings import Settings


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with SqliteEngine(":memory:") as opened:
        yield opened


def test_replies_do_not_wait_for_acknowledgements(engine: SqliteEngine) -> None:
    """Nagle's algorithm would hold the second of two pipelined replies for 40 ms."""

    async def main() -> None:
        server = Server(engine, Settings(port=0))
        port = await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n")
        (connection,) = server.connections
        accepted = connection._transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        writer.close()
        await server.stop()

    run(main())


def test_listeners_name_their_protocol() -> None:
    listeners = open_listeners("localhost", 0)
    assert {each.proto for each in listeners} == {socket.IPPROTO_TCP}
    for each in listeners:
        each.close()


class Transport(asyncio.Transport):
    """Notes whether it was aborted."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_a_connection_that_appears_after_the_stop_is_closed(engine: SqliteEngine) -> None:
    """It was accepted before the listeners closed; the threads that would answer it have ended."""

    async def main() -> None:
        server = Server(engine, Settings(port=0))
        await server.start()
        connection, transport = server.accept(), Transport()
        await server.stop()
        connection.connection_made(transport)
        assert transport.aborted
        assert not server.connections
        connection.connection_lost(None)

    run(main())
