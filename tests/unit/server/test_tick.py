"""Requests of one tick are answered in stages; replies are sent together, in order, and none is lost."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from solotable.engines.sqlite.engine import SqliteEngine
from solotable.server.dispatch import Client, operate
from solotable.server.http.connection import Connection
from solotable.server.http.request import HttpRequest
from solotable.server.http.response import JSON_TYPE, Body
from solotable.server.run import Server
from solotable.server.scheduling import tick as ticks
from solotable.server.scheduling.tick import Tick
from solotable.server.scheduling.time_slices import GatedLoop
from solotable.server.settings import Settings

LOOPS = [GatedLoop, asyncio.SelectorEventLoop]


class Call:
    """Notes its stages, and sends a reply on a transport that is also this object."""

    def __init__(self, tick: Tick, name: str, notes: list[str], *, fails: str = "", size: int = 1) -> None:
        self._tick, self._name, self._notes, self._fails = tick, name, notes, fails
        self.size = size

    def decode(self) -> None:
        self._note("decode")

    def answer(self) -> None:
        self._note("answer")
        self._tick.send(self, b"")

    def abort(self) -> None:
        self._notes.append(f"abort {self._name}")

    def _note(self, stage: str) -> None:
        self._notes.append(f"{stage} {self._name}")
        if stage == self._fails:
            raise ZeroDivisionError

    def write(self, _data: bytes) -> None:
        self._note("send")


class Clock:
    """Each reading is so many seconds later."""

    def __init__(self, step: float = 0.0) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def play(loop: Callable[[], asyncio.AbstractEventLoop], steps: Callable[[Tick], None], clock: Clock) -> None:
    """Run the steps in one tick of a loop, and another tick after it."""

    async def main() -> None:
        steps(Tick(asyncio.get_running_loop(), clock))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def add_two(notes: list[str]) -> Callable[[Tick], None]:
    def steps(tick: Tick) -> None:
        tick.add(Call(tick, "a", notes))
        tick.add(Call(tick, "b", notes))

    return steps


@pytest.mark.parametrize("loop", LOOPS)
def test_a_batch_is_decoded_then_answered_then_sent(loop: type[asyncio.AbstractEventLoop]) -> None:
    notes: list[str] = []
    play(loop, add_two(notes), Clock())
    assert notes == ["decode a", "decode b", "answer a", "answer b", "send a", "send b"]


def test_a_full_batch_does_not_wait_for_the_end_of_the_tick() -> None:
    notes: list[str] = []

    def steps(tick: Tick) -> None:
        for number in range(ticks._MOST_CALLS):
            assert not notes
            tick.add(Call(tick, str(number), notes))
        assert len(notes) == 3 * ticks._MOST_CALLS

    play(GatedLoop, steps, Clock())


def test_a_reply_does_not_wait_for_slow_requests_of_its_batch() -> None:
    notes: list[str] = []
    slow = Clock(step=2 * ticks._HOLD_SECONDS)
    play(GatedLoop, add_two(notes), slow)
    assert notes == ["decode a", "decode b", "answer a", "send a", "answer b", "send b"]


def test_a_small_request_does_not_wait_for_many_large_bodies() -> None:
    notes: list[str] = []

    def steps(tick: Tick) -> None:
        tick.add(Call(tick, "small", notes, size=100))
        tick.add(Call(tick, "large", notes, size=ticks._MOST_BYTES))
        assert notes[-2:] == ["send small", "send large"]
        tick.add(Call(tick, "next", notes, size=100))
        assert notes[-1] == "send large"

    play(GatedLoop, steps, Clock())
    assert notes[-1] == "send next"


@pytest.mark.parametrize("stage", ["decode", "answer", "send"])
def test_a_request_that_fails_ends_no_other(stage: str, caplog: pytest.LogCaptureFixture) -> None:
    notes: list[str] = []

    def steps(tick: Tick) -> None:
        tick.add(Call(tick, "a", notes, fails=stage))
        tick.add(Call(tick, "b", notes))

    with caplog.at_level(logging.ERROR):
        play(GatedLoop, steps, Clock())
    assert "abort a" in notes
    assert "send b" in notes
    assert ("was not sent" if stage == "send" else "failed without a reply") in caplog.text


def test_flush_sends_what_waits_and_nothing_twice() -> None:
    notes: list[str] = []

    def steps(tick: Tick) -> None:
        tick.send(Call(tick, "a", notes), b"x")
        tick.flush()
        assert notes == ["send a"]

    play(GatedLoop, steps, Clock())
    assert notes == ["send a"]


def test_a_callback_scheduled_before_the_wait_does_not_wait() -> None:
    """The loop chose its timeout before: without a second look, it would sleep for an hour."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GatedLoop)
        soon, later = asyncio.Event(), asyncio.Event()

        def before_wait() -> None:
            loop.call_soon(soon.set)
            loop.call_later(0.001, later.set)

        loop.call_before_wait(before_wait)
        async with asyncio.timeout(60):
            await soon.wait()
            await later.wait()

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(main())


def test_a_request_that_an_answer_releases_does_not_wait() -> None:
    """A pipelined request enters the tick while the hook answers the one before it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GatedLoop)
        found = asyncio.Event()
        loop.call_before_wait(partial(loop.call_before_wait, found.set))
        async with asyncio.timeout(60):
            await found.wait()

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(main())


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with SqliteEngine(":memory:") as opened:
        opened.call(
            "CreateTable",
            {
                "TableName": "Things",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            },
        )
        yield opened


def message(operation: str, body: dict[str, Any], headers: str = "") -> bytes:
    text = json.dumps(body)
    return (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\n{headers}"
        f"X-Amz-Target: DynamoDB_20120810.{operation}\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    ).encode()


def put(key: str) -> bytes:
    return message("PutItem", {"TableName": "Things", "Item": {"pk": {"S": key}}})


def get(key: str, headers: str = "") -> bytes:
    return message("GetItem", {"TableName": "Things", "Key": {"pk": {"S": key}}}, headers)


def replies_of(engine: SqliteEngine, sent: list[bytes], *, ends: bool) -> list[bytes]:
    """Send bytes on so many connections, all before the server looks at them; return what each received."""

    async def main() -> list[bytes]:
        server = Server(engine, Settings(port=0))
        port = await server.start()
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in sent]
        for client, data in zip(clients, sent, strict=True):
            client.sendall(data)
            if ends:
                client.shutdown(socket.SHUT_WR)

        def receive(client: socket.socket) -> bytes:
            found = b""
            with client:
                while piece := client.recv(65536):
                    found += piece
            return found

        loop = asyncio.get_running_loop()
        try:
            return await asyncio.gather(*(loop.run_in_executor(None, receive, each) for each in clients))
        finally:
            await server.stop()

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        return runner.run(main())


@pytest.mark.parametrize("connections", [1, 2, 5, 40])
@pytest.mark.parametrize("ends", [True, False])
def test_every_reply_arrives_in_order_before_the_connection_closes(
    engine: SqliteEngine, connections: int, ends: bool
) -> None:
    """Pipelined requests, of which the last asks for the end, on connections that are ready together."""
    last = "" if ends else "Connection: close\r\n"
    sent = [put(f"k{n}") + get(f"k{n}") + get("missing", last) for n in range(connections)]
    for number, found in enumerate(replies_of(engine, sent, ends=ends)):
        bodies = [part.partition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 ")[1:]]
        expected = [b"{}", b'{"Item":{"pk":{"S":"k%d"}}}' % number, b"{}"]
        assert bodies == expected


class Transport(asyncio.Transport):
    """Notes what is written, and its end."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[bytes] = []

    def write(self, data: Any) -> None:
        self.notes.append(bytes(data).partition(b"\r\n")[0])

    def close(self) -> None:
        self.notes.append(b"close")


HELD = b"HTTP/1.1 200 OK"
#: Without the end of its body.
EXPECTING = get("x", "Expect: 100-continue\r\n")[:-30]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (lambda each: each.data_received(EXPECTING), b"HTTP/1.1 100 Continue"),
        (lambda each: each.close(), b"close"),
        (lambda each: each.eof_received(), None),
    ],
    ids=["continue", "close", "eof"],
)
def test_a_waiting_reply_is_sent_before_other_writes_and_the_end(
    engine: SqliteEngine, step: Callable[[Connection], object], expected: bytes | None
) -> None:
    """After the end of input, asyncio closes the connection, unless a reply is pending."""

    async def main() -> None:
        server = Server(engine, Settings(port=0))
        await server.start()
        transport = Transport()
        connection = Connection(server)
        connection.connection_made(transport)
        connection.send(HttpRequest(), 200, Body([b"{}"]), b"application/json")
        before = list(transport.notes)
        step(connection)
        after = list(transport.notes)
        connection.connection_lost(None)
        await server.stop()
        assert before == []
        assert after == ([HELD] if expected is None else [HELD, expected])

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(main())


def readable(loop: GatedLoop, sockets: int, callback: Callable[[], None]) -> Callable[[], None]:
    """Call back for each of so many sockets that are ready in one tick; return what closes them."""

    def receive(ours: socket.socket) -> None:
        ours.recv(1)
        callback()

    pairs = [socket.socketpair() for _ in range(sockets)]
    for ours, theirs in pairs:
        ours.setblocking(False)
        loop.add_reader(ours, receive, ours)
        theirs.send(b"x")

    def close() -> None:
        for ours, theirs in pairs:
            loop.remove_reader(ours)
            ours.close()
            theirs.close()

    return close


@pytest.mark.parametrize("sockets", [1, 3])
def test_only_a_request_without_others_is_answered_at_once(sockets: int) -> None:
    notes: list[str] = []
    seen: list[list[str]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GatedLoop)
        tick = Tick(loop, Clock())

        def received() -> None:
            assert loop.ready_sockets == sockets
            tick.add(Call(tick, "a", notes))
            seen.append(list(notes))

        close = readable(loop, sockets, received)
        # One tick to receive, one for what waits for its end.
        for _ in range(3):
            await asyncio.sleep(0)
        close()

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(main())
    assert seen[0] == (["decode a", "answer a", "send a"] if sockets == 1 else [])
    assert len(notes) == 3 * sockets


def test_a_request_does_not_overtake_a_reply_that_waits() -> None:
    notes: list[str] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, GatedLoop)
        tick = Tick(loop, Clock())

        def received() -> None:
            tick.send(Call(tick, "earlier", notes), b"")
            tick.add(Call(tick, "a", notes))

        close = readable(loop, 1, received)
        for _ in range(3):
            await asyncio.sleep(0)
        close()

    with asyncio.Runner(loop_factory=GatedLoop) as runner:
        runner.run(main())
    assert notes == ["decode a", "answer a", "send earlier", "send a"]


def test_a_batch_knows_the_bytes_of_a_body() -> None:
    request = HttpRequest()
    request.add_body(b"{}")
    request.size = 2
    calls: list[ticks.Call] = []
    server = cast(Server, SimpleNamespace(forwarder=None, tick=SimpleNamespace(add=calls.append)))
    operate(server, cast(Client, None), request, JSON_TYPE)
    assert [call.size for call in calls] == [2]
