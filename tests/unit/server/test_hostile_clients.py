"""A hostile client is rejected or cut off, costs little, and does not stop replies to other clients."""

from __future__ import annotations

import contextlib
import gc
import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol import wire
from solotable._protocol.error_texts import ErrorTexts
from solotable._values.limits import LARGEST_REQUEST
from solotable.server import run
from solotable.server.http import connection
from tests.waiting import HANG_SECONDS, wait_until

from .running import Client, Running, get, gzipped, put, request, running

MB = 1024 * 1024
#: Attempts at a test whose thread may not run at the right moment on a busy machine.
TRIES = 8
#: Longer than a request may take, and than a connection may be idle.
TOO_LONG_SECONDS = HANG_SECONDS + 1


@pytest.fixture(scope="module", params=["memory", "file"])
def hasty(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that looks after its connections all the time; tests move its clock."""
    folder: Path = tmp_path_factory.mktemp("hasty")
    path = ":memory:" if request.param == "memory" else str(folder / "things.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_TIMEOUT_CHECK_SECONDS", 0.01)
        with running(path) as made:
            yield made


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")


# Sizes ------------------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    return b"{}" + b" " * (size - 2)


@pytest.mark.parametrize(("size", "status"), [(LARGEST_REQUEST - 1, 200), (LARGEST_REQUEST, 200)])
def test_a_body_up_to_16_mb_is_read(client: Client, size: int, status: int) -> None:
    assert client.ask(request(body=padded(size))).status == status


def test_a_longer_body_is_refused_before_it_is_sent(client: Client) -> None:
    head = request(body=b"", content_length=str(LARGEST_REQUEST + 1))
    assert client.ask(head).status == 413
    assert client.ended()


def test_a_client_that_sends_a_longer_body_anyway_sees_the_refusal(client: Client) -> None:
    reply = client.ask(request(body=padded(LARGEST_REQUEST + 1)))
    assert (reply.status, reply.headers["connection"]) == (413, "close")


@pytest.mark.parametrize(("size", "status"), [(0, 200), (1, 413)])
def test_chunked_bodies_have_the_same_limit(client: Client, size: int, status: int) -> None:
    body = padded(LARGEST_REQUEST + size)
    client.send(request(body=b"", without=("Content-Length",), transfer_encoding="chunked"))
    for start in range(0, len(body), MB):
        piece = body[start : start + MB]
        client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    client.send(b"0\r\n\r\n")
    assert client.reply().status == status


def test_chunks_without_end_are_cut_off(client: Client) -> None:
    client.send(request(body=b"", without=("Content-Length",), transfer_encoding="chunked"))
    sent = 0
    with pytest.raises(OSError):  # noqa: PT012 - however many it takes
        while sent < 100 * MB:
            client.send(b"10000\r\n" + b" " * 65536 + b"\r\n")
            sent += 65536
        raise AssertionError("all of it was taken")


@needs_proc
def test_millions_of_tiny_chunks_cost_no_more_than_the_body(client: Client) -> None:
    client.ask(request(body=padded(LARGEST_REQUEST)))
    before = resident_bytes()
    client.send(request(body=b"", without=("Content-Length",), transfer_encoding="chunked"))
    for _ in range(16):
        client.send(b"2\r\n  \r\n" * (2 * MB // 16))
    assert resident_bytes() - before < 64 * MB
    client.send(b"2\r\n{}\r\n0\r\n\r\n")
    assert client.reply().status == 200


@pytest.mark.parametrize(("size", "status"), [(8192, 404), (8193, 414), (500_000, 414)])
def test_urls_have_a_limit(client: Client, size: int, status: int) -> None:
    assert client.ask(request(method="GET", url="/" + "x" * (size - 1), body=b"")).status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-long": "x" * 16_000}, 200),
        ({"x-long": "x" * 17_000}, 400),
        ({"x-long": "x" * 3_000_000}, 400),
        ({"x" * 17_000: "x"}, 400),
        ({f"x-{number}": "x" for number in range(120)}, 200),
        ({f"x-{number}": "x" for number in range(130)}, 400),
        ({f"x-{number}": "x" * 300 for number in range(60)}, 400),
    ],
)
def test_headers_have_a_limit(client: Client, headers: dict[str, str], status: int) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    assert client.ask(request().replace(b"\r\n", b"\r\n" + lines, 1)).status == status


@needs_proc
@pytest.mark.parametrize(
    "start",
    [
        b"POST / HTTP/1.1\r\nX-Endless: ",
        b"POST / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Endless: ",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;",
    ],
    ids=["value", "name", "trailer", "extension"],
)
def test_lines_without_end_are_cut_off(client: Client, start: bytes) -> None:
    before = resident_bytes()
    client.send(start)
    with pytest.raises(OSError):  # noqa: PT012 - however many it takes
        for _ in range(1600):
            client.send(b"x" * 65536)
        raise AssertionError("all of it was taken")
    assert resident_bytes() - before < 32 * MB


def test_the_same_header_a_thousand_times_is_one(client: Client) -> None:
    assert client.ask(request().replace(b"\r\n", b"\r\n" + b"x-a: 1\r\n" * 1000, 1)).status == 200


# Bombs ------------------------------------------------------------------------------------------


@needs_proc
@pytest.mark.parametrize("size", [20 * MB, 1000 * MB])
def test_bombs_are_not_inflated(client: Client, size: int) -> None:
    bomb = gzipped(b"{}" + b" " * (20 * MB - 2)) if size == 20 * MB else gzipped(b" " * MB) * (size // MB)
    client.ask(request(body=gzipped(padded(LARGEST_REQUEST)), content_encoding="gzip"))
    before = resident_bytes()
    reply = client.ask(request(body=bomb, content_encoding="gzip"))
    assert reply.status == 413
    assert resident_bytes() - before < 64 * MB
    assert client.ask(request()).status == 200


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzipped(b"{}") + b"junk", "gzip"),
        (gzipped(gzipped(b"{}")), "gzip"),
        (gzipped(gzipped(b"{}")), "gzip, gzip"),
        (gzipped(b"{}")[:-4], "gzip"),
        (b"{}", "gzip"),
        (b"{}", "br"),
        (b"", "gzip"),
    ],
)
def test_spoiled_compression_is_refused(client: Client, body: bytes, encoding: str) -> None:
    reply = client.ask(request(body=body, content_encoding=encoding))
    assert (reply.status, reply.json()["__type"].rpartition("#")[2]) == (400, "SerializationException")
    assert client.ask(request()).status == 200


@pytest.mark.parametrize("piece", [b"[],", b'"a",'])
def test_sixteen_megabytes_of_tiny_values_cost_little_more_than_to_parse_them(
    client: Client, piece: bytes
) -> None:
    body = b'{"a":[' + piece * ((LARGEST_REQUEST - 20) // len(piece)) + b"0]}"

    def ratio() -> float:
        gc.disable()
        begun = time.process_time()
        json.loads(body)
        parsed = time.process_time()
        gc.enable()
        assert client.ask(request(body=body)).status in (200, 400)
        # CPU time of client and server together, and of whatever else runs in this process.
        return (time.process_time() - parsed) / (parsed - begun)

    # 3 was measured; threads of other tests may disturb one round.
    assert any(ratio() < 10 for _ in range(3))


def test_others_are_answered_while_a_large_body_is_read(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse, go_on = wire.decode_body, threading.Event()

    def slow_parse(target: str, body: bytes, texts: ErrorTexts) -> Any:
        if len(body) > 256 * 1024:
            assert go_on.wait(HANG_SECONDS)
        return parse(target, body, texts)

    monkeypatch.setattr(wire, "decode_body", slow_parse)
    with server.client() as client, server.client() as packed:
        # Both wait for the one reader; what is behind each in its pipe waits for it.
        client.send(request(body=padded(300_000)) + put("behind"))
        packed.send(request(body=gzipped(padded(300_000)), content_encoding="gzip"))
        server.is_well()
        assert client.silent(0.1)
        go_on.set()
        assert packed.reply().status == 200
        assert client.reply().json() == {"TableNames": ["Things"]}
        assert client.reply().json() == {}


@pytest.mark.parametrize("resets", [False, True])
def test_a_client_may_leave_while_its_body_is_read(
    server: Running, monkeypatch: pytest.MonkeyPatch, resets: bool
) -> None:
    parse, reading, go_on = wire.decode_body, threading.Event(), threading.Event()

    def slow_parse(target: str, body: bytes, texts: ErrorTexts) -> Any:
        if len(body) > 256 * 1024:
            reading.set()
            assert go_on.wait(HANG_SECONDS)
        return parse(target, body, texts)

    monkeypatch.setattr(wire, "decode_body", slow_parse)
    server.wait_for_connections(0)
    client = server.client()
    client.send(request(body=padded(300_000)))
    assert reading.wait(HANG_SECONDS)
    (connection,) = server.server.connections
    if resets:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    # A client that only ends its side may still read the reply, so its connection stays until then.
    wait_until(lambda: connection._closing if resets else connection._eof_received)
    server.is_well()
    go_on.set()
    server.wait_for_connections(0)
    server.is_well()


# Memory -----------------------------------------------------------------------------------------------


def half_sent(size: int) -> bytes:
    return request(body=b"", content_length=str(LARGEST_REQUEST)) + padded(size)


def test_bodies_that_never_end_have_to_make_room() -> None:
    with running(body_budget_bytes=4 * MB) as server:
        slow = [server.client() for _ in range(3)]
        for number, client in enumerate(slow, 1):
            client.send(half_sent(MB))
            server.wait_for_held_bytes(number * MB)
        with server.client() as honest:
            assert honest.ask(request(body=padded(3 * MB))).status == 200
        # The oldest are rejected first, with a reply.
        for client in slow[:2]:
            reply = client.reply()
            assert (reply.status, reply.headers["connection"]) == (503, "close")
            assert client.ended()
        assert slow[2].silent()
        slow[2].send(b" " * (LARGEST_REQUEST - MB) + request())
        # Alone it is more than there is room for: the server is set to less than a request may have.
        assert slow[2].reply().status == 503
        for client in slow:
            client.close()
        server.is_well()


def test_memory_is_released_when_a_request_is_answered_rejected_or_its_client_gone(tmp_path: Path) -> None:
    large = padded(900_000)
    with running(str(tmp_path / "things.db"), body_budget_bytes=MB) as server:
        for turn in range(3):
            with server.client() as client:
                # Answered, of another type, not a POST, not JSON, too long, and left behind.
                assert client.ask(request(body=large)).status == 200
                assert client.ask(request(body=large, content_type="text/plain")).status == 404
                assert client.ask(request(body=large, method="PUT")).status == 404
                assert client.ask(request(body=large + b"x")).status == 400
                client.send(put("p") + request(body=large) + request("Scan", {"TableName": "Things"}))
                assert [client.reply().status for _ in range(3)] == [200, 200, 200]
            with server.client() as client:
                client.send(half_sent(900_000) + b"x")
                server.wait_for_held_bytes(900_001)
            with server.client() as client:
                client.send(put(f"q{turn}") + request(body=large) + half_sent(100_000))
            # Before that, the connection may not have been accepted yet.
            wait_until(lambda name=f"q{turn}": "Item" in server.ask(get(name)).json())  # type: ignore[misc]
            # A request that came in whole keeps its memory until it is answered, even without its client.
            server.wait_for_connections(0)
            server.wait_for_held_bytes(0)
        server.is_well()
        assert server.ask(request(body=padded(MB))).status == 200


@needs_proc
def test_many_half_sent_bodies_take_no_more_memory_than_there_is_room() -> None:
    with running(body_budget_bytes=32 * MB) as server:
        before = resident_bytes()
        clients = [server.client() for _ in range(16)]
        for client in clients:
            client.send(half_sent(LARGEST_REQUEST - 1))
        server.is_well()
        # The whole would be 256 MB; a buffer that grows is copied now and then.
        assert resident_bytes() - before < 100 * MB
        for client in clients[:-2]:
            assert client.reply().status == 503
        for client in clients:
            client.close()
        server.is_well()


# Nonsense ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"POST / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/2.0\r\n\r\n",
        b"POST /\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length : 2\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nX: a\0b\r\n\r\n",
        b"POST / HTTP/1.1\r\n: nameless\r\n\r\n",
        b"POST / HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(client: Client, nonsense: bytes) -> None:
    assert client.ask(nonsense).status in (400, 413)
    assert client.ended()


# Time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "start",
    [
        b"POST / HT",
        request()[:40],
        request(body=b"", content_length="100") + b"{",
        request(body=b"", without=("Content-Length",), transfer_encoding="chunked") + b"5\r\nab",
        b"\r\n",
    ],
    ids=["line", "head", "body", "chunk", "nothing"],
)
def test_a_request_that_takes_too_long_is_ended(hasty: Running, start: bytes) -> None:
    with hasty.client() as client:
        client.send(start)
        hasty.wait_for_a_begun_request()
        hasty.let_pass(TOO_LONG_SECONDS, client)
        reply = client.reply()
        assert (reply.status, reply.headers["connection"]) == (408, "close")
        assert client.ended()
    hasty.is_well()


def test_a_request_that_drips_is_ended(hasty: Running) -> None:
    with hasty.client() as client:
        first, *rest = request()[:40]
        client.send(bytes([first]))
        hasty.wait_for_a_begun_request()
        for drop in rest:
            hasty.clock.ahead_seconds += TOO_LONG_SECONDS / 30
            if not client.silent(0.001):
                break
            # The server may end the connection in the same moment.
            with contextlib.suppress(ConnectionError):
                client.send(bytes([drop]))
        assert client.reply().status == 408
    hasty.is_well()


def test_a_slow_second_request_in_the_pipe_is_ended_too(hasty: Running) -> None:
    with hasty.client() as client:
        client.send(put("slow") + get("slow")[:30])
        assert client.reply().status == 200
        hasty.wait_for_a_begun_request()
        hasty.let_pass(TOO_LONG_SECONDS, client)
        assert client.reply().status == 408
        assert client.ended()


def test_a_silent_connection_is_closed(hasty: Running) -> None:
    hasty.wait_for_connections(0)
    for requests in (0, 1):
        with hasty.client() as client:
            hasty.wait_for_connections(1)
            for _ in range(requests):
                assert client.ask(request()).status == 200
            hasty.let_pass(TOO_LONG_SECONDS, client)
            assert client.ended()
        hasty.wait_for_connections(0)


@needs_proc
def test_a_client_that_never_reads_is_not_read_either_and_cut_off(hasty: Running) -> None:
    with hasty.client() as other:
        for number in range(10):
            assert other.ask(put(f"large{number}", v={"S": "x" * 300_000})).status == 200
    before = resident_bytes()
    scan = request("Scan", {"TableName": "Things"})
    with hasty.client() as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.socket.settimeout(0.5)
        with pytest.raises(OSError):  # noqa: PT012 - however many it takes
            for _ in range(100_000):
                client.send(scan * 10)
            raise AssertionError("all of it was taken")
        hasty.wait_for_a_stalled_client()
        hasty.is_well()
        assert resident_bytes() - before < 64 * MB
        hasty.clock.ahead_seconds += TOO_LONG_SECONDS
        hasty.wait_for_connections(0)
    hasty.is_well()


def test_a_client_that_reads_slowly_gets_everything(server: Running) -> None:
    with server.client() as client:
        for number in range(4):
            client.ask(put(f"wide{number}", v={"S": "x" * 300_000}))
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        scans = threading.Thread(
            target=client.send, args=(request("Scan", {"TableName": "Things"}) * 10 + put("after"),)
        )
        scans.start()
        server.wait_for_a_stalled_client()
        server.is_well()
        for _ in range(10):
            assert client.reply().json()["Count"] > 0
        assert client.reply().json() == {}
        scans.join()
        for number in range(4):
            key = {"pk": {"S": f"wide{number}"}}
            client.call("DeleteItem", {"TableName": "Things", "Key": key})
    server.is_well()


def test_a_client_that_reads_its_last_reply_slowly_gets_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_TIMEOUT_CHECK_SECONDS", 0.01)
    looks: list[float] = []

    def check_timeouts(self: connection.Connection, now: float, **limits: float) -> None:
        look_as_ever(self, now, **limits)
        looks.append(now)

    look_as_ever = connection.Connection.check_timeouts
    monkeypatch.setattr(connection.Connection, "check_timeouts", check_timeouts)
    with running() as server, server.client() as client:
        for number in range(30):
            client.ask(put(f"wide{number}", v={"S": "x" * 390_000}))
        keys = [{"pk": {"S": f"wide{number}"}} for number in range(30)]
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.send(request("BatchGetItem", {"RequestItems": {"Things": {"Keys": keys}}}, connection="close"))
        server.wait_for_a_stalled_client()
        # Later than a connection ends that has nothing left to send; looked at more than once since.
        server.clock.ahead_seconds = 2 * connection._DRAIN_SECONDS
        later = time.monotonic() + connection._DRAIN_SECONDS
        wait_until(lambda: sum(now > later for now in looks) > 1)
        assert len(client.reply().json()["Responses"]["Things"]) == 30
        assert client.ended()


def test_a_long_pipe_takes_turns_with_the_others(server: Running) -> None:
    with server.client() as client, server.client() as other:
        for start in range(0, 500, 25):
            puts = [{"PutRequest": {"Item": {"pk": {"S": f"t{start + n}"}}}} for n in range(25)]
            client.call("BatchWriteItem", {"RequestItems": {"Things": puts}})
        scan = request("Scan", {"TableName": "Things", "Select": "COUNT"})

        def waits() -> bool:
            return any(each._pipeline for each in tuple(server.server.connections))

        overtook = False
        for _ in range(TRIES):
            client.send(scan * 500)
            wait_until(lambda: waits() or not client.silent())
            assert other.ask(get("t1")).status == 200
            # Answered although the pipeline came first, and is not done.
            overtook = waits()
            for _ in range(500):
                assert client.reply().json()["Count"] >= 500
            if overtook:
                break
        assert overtook


# Departures -------------------------------------------------------------------------------------


def test_a_client_may_leave_while_its_write_is_under_way(server: Running) -> None:
    for number in range(20):
        client = server.client()
        client.send(put(f"left{number}") + get("x") * 5)
        if number % 2:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
    server.is_well()
    with server.client() as client:
        # A reset may have discarded the request.
        for number in range(0, 20, 2):
            wait_until(lambda key=f"left{number}": client.ask(get(key)).json())  # type: ignore[misc]


def test_connections_that_were_left_are_forgotten(server: Running) -> None:
    clients = [server.client() for _ in range(50)]
    for number, client in enumerate(clients):
        client.send(request()[: number * 3])
        client.close()
    server.wait_for_connections(0)


def test_when_there_are_too_many_connections_the_least_used_goes() -> None:
    with running(connections=8) as server:
        clients = [server.client() for _ in range(8)]
        for client in clients[1:]:
            assert client.ask(request()).status == 200
        # The first has sent nothing, the second half a request; the rest were used after them.
        clients[1].send(b"POST / HT")
        for client in clients[2:]:
            assert client.ask(request()).status == 200
        newcomers = [server.client() for _ in range(2)]
        for client in newcomers:
            assert client.ask(request()).status == 200
        assert clients[0].ended()
        assert clients[1].reply().status == 503
        assert clients[1].ended()
        for client in clients[2:]:
            assert client.ask(request()).status == 200
        for client in clients + newcomers:
            client.close()
        server.is_well()


def test_a_flood_of_connections_keeps_no_client_out() -> None:
    with running(connections=8) as server:
        flood = [server.client() for _ in range(100)]
        for _ in range(20):
            server.is_well()
        for client in flood:
            client.close()


def test_500_connections_at_once_are_answered(server: Running) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1500
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.skip(f"500 connections need {wanted} open files; the limit is {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    clients = [server.client() for _ in range(500)]
    try:
        for turn in range(3):
            for number, client in enumerate(clients):
                client.send(put(f"c{number}", n={"N": str(turn)}) + get(f"c{number}"))
            for client in clients:
                assert client.reply().status == 200
                assert client.reply().json()["Item"]["n"] == {"N": str(turn)}
        server.is_well()
    finally:
        for client in clients:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("start", [b"POST / HT", request("Scan", {"TableName": "Things"}) * 100])
def test_a_client_that_never_ends_does_not_hold_up_the_end(start: bytes) -> None:
    with running(grace_seconds=0.5) as server:
        for number in range(4):
            server.ask(put(f"large{number}", v={"S": "x" * 300_000}))
        client = server.client()
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.send(start)
        wait_until(
            lambda: any(
                each._request_started_at is not None or each._stalled_since is not None
                for each in tuple(server.server.connections)
            )
        )
        # The end of the block would hang.
    client.close()


def test_a_fault_of_ours_is_a_500_and_the_connection_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        """Verifies nothing, and breaks."""

        def verify(self, _request: Any) -> None:
            raise RuntimeError("broken")

    with running() as server, server.client() as client:
        whole, server.server.verifier = server.server.verifier, Broken()  # type: ignore[assignment]  # a fake
        reply = client.ask(request())
        assert (reply.status, reply.json()["__type"].rpartition("#")[2]) == (500, "InternalServerError")
        assert "broken" not in json.dumps(reply.json())
        server.server.verifier = whole
        assert client.ask(request()).status == 200
