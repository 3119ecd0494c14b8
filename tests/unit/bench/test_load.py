"""The load is the same for all, and says what it is; a server that lies does not enter the race."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, cast

import pytest

from bench.wire import client, load, workload
from bench.wire import race as wire
from bench.wire.client import Refused
from bench.wire.generator import read_reply
from bench.wire.peers import Running
from solotable.engines import sqlite
from solotable.errors import ServiceError

ITEMS = 2500


@pytest.mark.parametrize(
    "text, literal",
    [
        ("plain", "[[plain]]"),
        ("a]]b", "[=[a]]b]=]"),
        ("a]]b]=]c", "[==[a]]b]=]c]==]"),
        ("ends]", "[=[ends]]=]"),
        ("\nbreak", "[[\n\nbreak]]"),
        ("", "[[]]"),
    ],
)
def test_a_lua_literal_ends_where_its_text_ends(text: str, literal: str) -> None:
    assert load.lua_text(text) == literal


def test_a_script_holds_every_body_and_header() -> None:
    operation = workload.Operation(
        title="Get", targets=("GetItem", "PutItem"), bodies=({"a": "]]"}, {"b": "%d é"})
    )
    script = load.lua(operation)
    bodies = script.partition("local bodies")[2].partition("local ready")[0]
    assert [json.loads(body) for body in re.findall(r"\[=*\[(\{.*\})\]=*\]", bodies)] == [*operation.bodies]
    # `[[[` would open a long text of its own: an index needs the space.
    for target in operation.targets:
        assert f"[ [[X-Amz-Target]] ] = [[DynamoDB_20120810.{target}]]" in script
    assert "%%" not in script


def test_bodies_take_their_targets_in_turn() -> None:
    mixed = workload.operations(ITEMS)[-1]
    assert mixed.title == workload.PUT_THEN_GET
    sent = load.messages(mixed, "host")
    assert [re.findall(rb"X-Amz-Target: DynamoDB_20120810.(\w+)", each) for each in sent[:4]] == [
        [b"PutItem"], [b"GetItem"], [b"PutItem"], [b"GetItem"]
    ]  # fmt: skip
    for put, get in zip(mixed.bodies[::2], mixed.bodies[1::2], strict=True):
        assert put["Item"].items() >= get["Key"].items()


def test_a_sample_survives_its_line() -> None:
    sample = load.Sample(requests=10, seconds=2.0, errors=0, p50_ms=1, p99_ms=2, worst_ms=3)
    assert load.sample_from(load.line_from(sample)) == sample
    assert sample.rate == 5.0


def test_one_error_voids_a_figure() -> None:
    good = load.Sample(requests=10, seconds=1.0, errors=0, p50_ms=1, p99_ms=2, worst_ms=3)
    slow = load.Sample(requests=6, seconds=1.0, errors=0, p50_ms=2, p99_ms=4, worst_ms=9)
    bad = load.Sample(requests=90, seconds=1.0, errors=1, p50_ms=1, p99_ms=2, worst_ms=3)
    assert wire.figure([good, slow, good])["rate"] == 10.0
    assert wire.figure([good, slow, good])["worst_ms"] == 9
    assert wire.figure([good, bad]) == {"void": "1 of 100 replies were errors"}


def test_requests_in_flight_have_no_key_in_common() -> None:
    for operation in workload.operations(ITEMS):
        if not operation.writes or operation.title == workload.PUT_THEN_GET:
            continue
        keys = [set(re.findall(r"SURVEY#\d+\"}, \"sk\": {\"S\": \"SECTION#\d+", json.dumps(body)))
                for body in operation.bodies]  # fmt: skip
        for first in range(len(keys) - load.CONNECTIONS):
            near = keys[first : first + load.CONNECTIONS]
            assert len(set().union(*near)) == sum(map(len, near))


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nX: y\r\n\r\n{} ",
        b"HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n1;x\r\n \r\n0\r\n\r\n",
    ],
)
def test_the_generator_reads_a_reply_to_its_end(reply: bytes) -> None:
    async def read_twice() -> list[int]:
        reader = asyncio.StreamReader()
        reader.feed_data(reply * 2)
        reader.feed_eof()
        statuses = [await read_reply(reader), await read_reply(reader)]
        assert reader.at_eof()
        return statuses

    assert asyncio.run(read_twice()) == [400, 400]


class Rested:
    """A server of which only the port and the rest between turns are known."""

    def __init__(self, port: int) -> None:
        self.port = port

    def settle(self) -> None:
        """Nothing is left to do."""


class Player:
    """A load generator with one fast server, one slow one, and one that dies after its first turn."""

    def __init__(self) -> None:
        self.turns: list[tuple[int, int]] = []

    def play(self, _: workload.Operation, port: int, seconds: int) -> load.Sample:
        self.turns.append((port, seconds))
        if port == 3 and len(self.turns) > 3:
            raise load.LoadFailed("gone")
        requests = 4 if port == 2 else 1000
        return load.Sample(requests=requests, seconds=seconds, errors=0, p50_ms=1, p99_ms=1, worst_ms=1)


def test_servers_take_turns_and_one_that_dies_is_void() -> None:
    player = Player()
    servers = {name: cast(Running, Rested(port)) for name, port in (("fast", 1), ("slow", 2), ("dying", 3))}
    plan = wire.Plan(rounds=2, seconds=2)
    operation = workload.operations(ITEMS)[0]
    figures = wire.measure(operation, servers, cast(load.Generator, player), plan)
    assert figures["fast"]["rate"] == 500.0
    assert figures["dying"] == {"void": "gone"}
    # A second to warm up each; rounds that begin with another server each time; the slow one last.
    assert player.turns == [(1, 1), (2, 1), (3, 1), (1, 2), (3, 2), (1, 2), (2, 15)]


class Server:
    """The engine in process as a caller, which may lie about one operation."""

    def __init__(self, engine: sqlite.SqliteEngine, lie: str = "") -> None:
        self._engine = engine
        self._lie = lie

    def call(self, operation: str, request: dict[str, Any], /) -> dict[str, Any]:
        if operation == self._lie == "TransactWriteItems":
            raise Refused("UnknownOperationException", "")
        if operation == self._lie == "UpdateItem":
            request = {name: value for name, value in request.items() if name != "ConditionExpression"}
        try:
            answer: dict[str, Any] = self._engine.call(operation, json.loads(json.dumps(request)))
        except ServiceError as error:
            raise Refused(error.code, error.message) from error
        if operation == self._lie == "Query":
            answer["Items"].reverse()
        if operation == self._lie == "GetItem":
            answer["Item"]["price"] = {"N": "1"}
        if operation == self._lie == "Scan":
            answer.pop("LastEvaluatedKey", None)
        if operation == self._lie == "BatchGetItem":
            answer["Responses"][workload.TABLE_NAME].pop()
        if operation == self._lie == "BatchWriteItem":
            answer["UnprocessedItems"] = {workload.TABLE_NAME: [{}]}
        return answer


@pytest.fixture(scope="module")
def engine() -> Iterator[sqlite.SqliteEngine]:
    with sqlite.open(":memory:") as opened:
        wire.fill(Server(opened), ITEMS)
        yield opened


def test_right_answers_enter_the_race_and_leave_the_items_as_they_were(engine: sqlite.SqliteEngine) -> None:
    assert wire.check(Server(engine), ITEMS) == {}
    assert wire.check(Server(engine), ITEMS) == {}


def test_an_operation_that_a_server_lacks_is_named(engine: sqlite.SqliteEngine) -> None:
    assert wire.check(Server(engine, "TransactWriteItems"), ITEMS) == {
        "TransactWriteItems of 2": {"none": "it has no such operation"}
    }


@pytest.mark.parametrize(
    "lie, titles",
    [
        ("Query", ["Query of 50", "GSI query of 50"]),
        ("UpdateItem", ["conditional UpdateItem"]),
        ("BatchGetItem", ["BatchGetItem of 25"]),
        ("BatchWriteItem", ["BatchWriteItem of 25"]),
        ("Scan", ["Scan of 500"]),
    ],
)
def test_a_wrong_answer_keeps_a_server_out_of_its_race(
    engine: sqlite.SqliteEngine, lie: str, titles: list[str]
) -> None:
    unfit = wire.check(Server(engine, lie), ITEMS)
    assert list(unfit) == titles
    assert all(reason["wrong"] for reason in unfit.values())
    # The Scan, which is checked after the writes, finds every item restored.


def test_a_server_with_wrong_reads_enters_no_race_of_them(engine: sqlite.SqliteEngine) -> None:
    unfit = wire.check(Server(engine, "GetItem"), ITEMS)
    assert {"GetItem", "PutItem", workload.PUT_THEN_GET} <= set(unfit)


def test_equal_numbers_and_sets_are_equal() -> None:
    assert wire.plain({"a": {"N": "5.10"}, "s": {"SS": ["b", "a"]}}) == wire.plain(
        {"a": {"N": "5.1"}, "s": {"SS": ["a", "b"]}}
    )
    assert wire.plain([{"N": "1"}]) != wire.plain([{"N": "2"}])


def test_a_connection_that_was_idle_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers close an idle connection without a word; a check between two requests may take long."""

    class ClosesEachConnection(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    monkeypatch.setattr(client, "IDLE_SECONDS", -1)
    with HTTPServer((client.HOST, 0), ClosesEachConnection) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with closing(client.Client(server.server_port)) as connection:
            assert [connection.call("ListTables", {}) for _ in range(3)] == [{}, {}, {}]
        server.shutdown()
