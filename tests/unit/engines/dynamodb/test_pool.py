"""Our own connections against an endpoint that misbehaves: the right error each time, and no write twice."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from solotable._protocol.engine import Engine
from solotable._protocol.requests import GetItem, PutItem, Request
from solotable.engines.dynamodb import DynamoEngine
from solotable.engines.dynamodb.http import pool
from solotable.engines.dynamodb.http.exchange import HttpSettings
from solotable.engines.dynamodb.transports import EndpointOptions, Transports
from solotable.errors import EngineError, OutcomeUnknown, ServiceError, SolotableError, TransportError
from tests.serving import environment
from tests.waiting import HANG_SECONDS, wait_until

from .conftest import PATIENT
from .evil import GOOD, Act, Evil, chunked, evil, reply

KEY = {"pk": {"S": "a"}}
READ = GetItem(table="Things", key=KEY)
WRITE = PutItem(table="Things", item=KEY)
BODY = b'{"Item":{"pk":{"S":"a"}}}'
IMPATIENT = HttpSettings(connect_seconds=HANG_SECONDS, read_seconds=0.3, response_seconds=0.6)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1_000.0

    def __call__(self) -> float:
        return self.seconds


OpenedAt = Callable[..., Engine]
Kinds = Callable[..., list[Any]]


@pytest.fixture
def kinds(alone_at: OpenedAt) -> Kinds:
    """The classes of what becomes of requests to an endpoint, one after the other."""

    def ask(server: Evil, *requests: Request[Any], settings: HttpSettings = PATIENT) -> list[Any]:
        engine = alone_at(server.url, settings)
        return [type(outcome(engine, request)) for request in requests]

    return ask


def outcome(engine: Engine, request: Request[Any]) -> Any:
    """The error of a request; None when it was answered."""
    try:
        engine.handle(request)
    except SolotableError as error:
        return error
    return None


FINE = type(None)


@pytest.mark.parametrize(
    "whole", [reply(), chunked(b'{"Item":', b'{"pk":{"S":"a"}}}')], ids=["plain", "chunked"]
)
@pytest.mark.parametrize("resets", [False, True])
def test_a_reply_that_is_cut_anywhere_is_an_error(whole: bytes, resets: bool, alone_at: OpenedAt) -> None:
    with evil() as server:
        engine = alone_at(server.url)
        for end in range(len(whole)):
            server.acts = [Act(reply=whole[:end], hangs_up=True, resets=resets)]
            server.requests.clear()
            assert [type(outcome(engine, each)) for each in (READ, WRITE)] == [TransportError, OutcomeUnknown]
            assert len(server.requests) == 2
        server.acts = [Act(reply=whole)]
        assert [outcome(engine, each) for each in (READ, WRITE)] == [None, None]


@pytest.mark.parametrize("resets", [False, True])
def test_on_a_connection_that_was_used_only_a_read_without_any_answer_is_sent_again(
    resets: bool, alone_at: OpenedAt
) -> None:
    whole = reply()
    with evil() as server:
        engine = alone_at(server.url)
        for end in range(len(whole)):
            cut = Act(reply=whole[:end], hangs_up=True, resets=resets)
            server.acts = [GOOD, cut, GOOD]
            server.requests.clear()
            assert [type(outcome(engine, each)) for each in (READ, WRITE)] == [FINE, OutcomeUnknown]
            assert len(server.requests) == 2
            server.acts = [GOOD, cut, GOOD]
            server.requests.clear()
            kinds_ = [type(outcome(engine, each)) for each in (READ, READ)]
            # A reset may take along the bytes that were sent before it, so that there are none.
            assert kinds_ == [FINE, TransportError if len(server.requests) == 2 else FINE]
            assert len(server.requests) == (3 if end == 0 else 2) or resets


def test_a_read_is_sent_again_once_and_no_more(kinds: Kinds) -> None:
    with evil(GOOD, Act(hangs_up=True)) as server:
        assert kinds(server, READ, READ) == [FINE, TransportError]
        assert len(server.requests) == 3


@pytest.mark.parametrize("request_", [READ, WRITE])
def test_a_connection_that_the_server_closed_is_replaced(request_: Request[Any], alone_at: OpenedAt) -> None:
    with evil() as server:
        engine = alone_at(server.url)
        for calls in range(1, 5):
            assert outcome(engine, request_) is None
            assert len(server.requests) == server.connections == calls
            server.hang_up()
            wait_until(lambda: server.open_connections == 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock for the age of idle connections."""
    clock = Clock()
    monkeypatch.setattr(pool, "time", SimpleNamespace(monotonic=clock))
    return clock


def test_an_idle_connection_is_not_used_when_it_is_old_or_has_said_something(
    alone_at: OpenedAt, kinds: Kinds, clock: Clock
) -> None:
    with evil() as server:
        engine = alone_at(server.url, replace(PATIENT, idle_seconds=20))
        for seconds, connections in ((0, 1), (19, 1), (21, 2)):
            clock.seconds += seconds
            assert outcome(engine, WRITE) is None
            assert server.connections == connections
    with evil(Act(reply=reply() + b"HTTP/1.1 408 Late\r\n\r\n"), GOOD) as server:
        assert kinds(server, WRITE, WRITE) == [FINE, FINE]
        assert (server.connections, len(server.requests)) == (2, 2)


def test_a_balancer_that_finds_the_connection_too_old_has_done_nothing(
    alone_at: OpenedAt, kinds: Kinds
) -> None:
    late = Act(reply=reply(b"", status=408, extra="Connection: close\r\n"), hangs_up=True)
    with evil(GOOD, late, GOOD) as server:
        assert kinds(server, WRITE, WRITE) == [FINE, FINE]
        assert server.connections == 2
    with evil(late) as server:
        engine = alone_at(server.url)
        # On a new one it is an answer like any other.
        error = outcome(engine, WRITE)
        assert type(error) is ServiceError
        assert (error.code, len(server.requests)) == ("408", 1)


@pytest.mark.parametrize(
    "act",
    [
        Act(reply=b"\x00\xff\xfe garbage \r\n\r\n" * 10),
        Act(reply=b"SSH-2.0-OpenSSH_9.6\r\n", hangs_up=True),
        Act(reply=b"<html>not HTTP</html>", hangs_up=True),
        Act(reply=b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"),
        Act(reply=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"),
        Act(reply=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"),
        Act(reply=b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
        Act(reply=b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"),
        Act(reply=reply(BODY, length=len(BODY) - 1)),
        Act(reply=reply(BODY, length=len(BODY) + 1), hangs_up=True),
        Act(reply=reply(BODY).replace(b"crc32: ", b"crc32: 1")),
        Act(reply=reply(BODY).replace(b"crc32: ", b"crc32: x")),
        Act(reply=reply(b"<html>no JSON</html>")),
        Act(reply=reply(b"[]")),
        Act(reply=reply(b"")),
        Act(reply=reply(BODY, extra="Content-Encoding: gzip\r\n")),
        Act(reply=chunked(BODY, end=b"zz\r\n\r\n")),
        Act(reply=b"HTTP/1.1 200 OK\r\n\r\n" + BODY[:-1], hangs_up=True),
        Act(reply=b"HTTP/1.1 100 Continue\r\n\r\n", hangs_up=True),
        Act(reply=reply(), drip_seconds=0.02),
        Act(reply=reply(), too_late=True),
        Act(),
    ],
    ids=lambda act: (act.reply[:24] + b".." + act.reply[-8:]).decode("latin-1"),
)
def test_an_incomplete_reply_leaves_the_outcome_of_a_write_unknown(act: Act, kinds: Kinds) -> None:
    with evil(act) as server:
        assert kinds(server, READ, WRITE, settings=IMPATIENT) == [TransportError, OutcomeUnknown]
        wait_until(lambda: len(server.requests) >= 2)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "act",
    [
        GOOD,
        Act(reply=chunked(*(BODY[at : at + 1] for at in range(len(BODY))))),
        Act(reply=b"HTTP/1.1 100 Continue\r\n\r\n" + reply()),
        Act(reply=b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + reply()),
        Act(reply=reply(extra="Connection: close\r\n"), hangs_up=True),
        Act(reply=b"HTTP/1.1 200 OK\r\n\r\n" + BODY, hangs_up=True),
        Act(reply=b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY, hangs_up=True),
        Act(reply=reply(), drip_seconds=0.001),
        Act(reply=reply() + b"and more than was requested"),
    ],
    ids=lambda act: (act.reply[:24] + b".." + act.reply[-8:]).decode("latin-1"),
)
def test_unusual_answers_are_understood(act: Act, alone_at: OpenedAt) -> None:
    with evil(act) as server:
        engine = alone_at(server.url)
        for calls in range(1, 4):
            assert engine.handle(READ).item == KEY
            assert outcome(engine, WRITE) is None
            assert len(server.requests) == 2 * calls


def test_an_answer_of_many_pieces_is_put_together(alone_at: OpenedAt) -> None:
    body = b'{"Item":{"pk":{"S":"%b"}}}' % (b"x" * 3_000_000)
    with evil(Act(reply=reply(body))) as server:
        engine = alone_at(server.url)
        item: Any = engine.handle(READ).item
        assert len(item["pk"]["S"]) == 3_000_000


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(alone_at: OpenedAt) -> None:
    late = Act(reply=reply(b'{"Item":{"pk":{"S":"of the first"}}}'), too_late=True)
    with evil(late, GOOD) as server:
        engine = alone_at(server.url, IMPATIENT)
        assert type(outcome(engine, WRITE)) is OutcomeUnknown

        def item() -> Any:
            try:
                return engine.handle(READ).item
            except TransportError:
                return None  # on a loaded machine even a good answer may take longer than IMPATIENT waits

        assert wait_until(item) == KEY
        assert server.connections >= 2


@pytest.mark.parametrize("status", [301, 307, 308, 400, 403, 413, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("request_", [READ, WRITE])
def test_pages_of_others_are_refusals_with_their_status(
    status: int, request_: Request[Any], alone_at: OpenedAt
) -> None:
    with evil() as elsewhere:
        page = reply(b"<html>page</html>", status=status, extra=f"Location: {elsewhere.url}\r\n")
        with evil(Act(reply=page)) as server:
            engine = alone_at(server.url)
            error = outcome(engine, request_)
            assert type(error) is ServiceError
            assert (error.code, error.status, error.retryable) == (str(status), status, status >= 500)
            assert error.message
            assert (len(server.requests), server.connections) == (1, 1)
            outcome(engine, request_)
            # Such an answer is whole, so the connection is still good.
            assert (len(server.requests), server.connections) == (2, 1)
        assert elsewhere.requests == []


def test_a_request_that_was_never_whole_was_not_carried_out(alone_at: OpenedAt) -> None:
    large = PutItem(table="Things", item={**KEY, "b": {"S": "x" * 8_000_000}})
    with evil(Act(), reads_bytes=1000) as server:
        engine = alone_at(server.url)
        error = outcome(engine, large)
        assert type(error) is TransportError
        assert error.retryable
        assert "it was not executed" in str(error)
        assert server.requests == []


def test_a_refusal_before_the_request_was_whole_is_heard(alone_at: OpenedAt) -> None:
    large = PutItem(table="Things", item={**KEY, "b": {"S": "x" * 8_000_000}})
    page = reply(b"<html>too large</html>", status=413, extra="Connection: close\r\n")
    with evil(Act(reply=page, hangs_up=True), reads_bytes=1000) as server:
        error = outcome(alone_at(server.url), large)
        assert type(error) is ServiceError
        assert (error.code, error.retryable) == ("413", False)
        assert server.connections == 1


def test_a_server_that_stops_reading_leaves_a_write_unknown(alone_at: OpenedAt) -> None:
    large = PutItem(table="Things", item={**KEY, "b": {"S": "x" * 8_000_000}})
    given_up = threading.Event()
    with evil(Act(then=lambda _: given_up.wait(HANG_SECONDS)), reads_bytes=1000) as server:
        assert type(outcome(alone_at(server.url, IMPATIENT), large)) is OutcomeUnknown
        given_up.set()
        assert server.connections == 1


def test_without_a_listener_nothing_was_sent(kinds: Kinds) -> None:
    with evil() as server:
        pass
    assert kinds(server, READ, WRITE) == [TransportError, TransportError]


def test_whatever_happens_no_write_is_there_twice(alone_at: OpenedAt) -> None:
    dice = random.Random(7)
    whole = reply()
    acts = []
    for _ in range(400):
        end = dice.choice([0, 1, 20, len(whole) - 1, *[len(whole)] * 8])
        hangs_up = end < len(whole) or dice.random() < 0.3
        acts.append(Act(reply=whole[:end], hangs_up=hangs_up, resets=hangs_up and dice.random() < 0.5))
    with evil(*acts, GOOD) as server:
        engine = alone_at(server.url)
        outcomes: dict[str, Any] = {}

        def write(number: int) -> None:
            name = f"write-{number}"
            outcomes[name] = type(outcome(engine, PutItem(table="Things", item={"pk": {"S": name}})))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, range(400)))
    arrived = Counter(
        found[0].decode() for each in server.requests if (found := re.findall(rb"write-\d+", each))
    )
    assert max(arrived.values()) == 1
    assert set(outcomes.values()) == {FINE, OutcomeUnknown}
    # A connection may have been closed as a write was sent on it: whether it was read is unknown.
    assert {outcomes[name] for name in set(outcomes) - set(arrived)} <= {OutcomeUnknown}


def test_no_more_connections_are_kept_than_allowed_and_none_when_closed() -> None:
    together = threading.Barrier(6)
    act = Act(reply=reply(), then=lambda _: together.wait(HANG_SECONDS))
    with evil(act) as server:
        engine = DynamoEngine(
            Transports(EndpointOptions(endpoint_url=server.url, http=HttpSettings(idle_connections=2)))
        )
        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(lambda _: outcome(engine, READ), range(6))) == [None] * 6
        assert server.connections == 6
        wait_until(lambda: server.open_connections == 2)
        engine.close()
        wait_until(lambda: server.open_connections == 0)
        with pytest.raises(EngineError, match="open it again"):
            engine.handle(READ)
        engine.close()


def test_connections_that_are_not_needed_any_more_are_closed(alone_at: OpenedAt, clock: Clock) -> None:
    together = threading.Barrier(3)
    first = [Act(reply=reply(), then=lambda _: together.wait(HANG_SECONDS))] * 3
    with evil(*first, GOOD) as server:
        engine = alone_at(server.url, replace(PATIENT, idle_seconds=20))
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda _: outcome(engine, READ), range(3)))
        assert server.open_connections == 3
        for _ in range(2):
            clock.seconds += 15
            assert outcome(engine, READ) is None
        wait_until(lambda: server.open_connections == 1)


def test_a_child_process_has_its_own_connections() -> None:
    program = f"""
import os, sys
from solotable.engines import dynamodb
from solotable._protocol.requests import GetItem
read = GetItem(table="Things", key={KEY!r})
engine = dynamodb.open(endpoint_url=sys.argv[1])
engine.handle(read)
child = os.fork()
# One after the other: at once, two on one connection would also notice each other.
failed = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if child else 0
for _ in range(20):
    assert engine.handle(read).item == {KEY!r}
if child:
    sys.exit(failed)
os._exit(0)
"""
    with evil() as server:
        command = [sys.executable, "-c", program, server.url]
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, check=False, env=environment(), timeout=HANG_SECONDS
        )
        assert done.returncode == 0, done.stderr
        assert (server.connections, len(server.requests)) == (2, 41)
