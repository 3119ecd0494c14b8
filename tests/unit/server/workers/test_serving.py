"""`solotable serve --workers`: one port, workers that read, and one process that writes."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from solotable.engines import sqlite
from solotable.errors import EngineError
from solotable.server import Settings
from solotable.server.workers import serve_with_workers
from solotable.server.workers.process import watch
from solotable.server.workers.supervisor import _Supervisor
from tests.serving import Served, command, environment, served
from tests.unit.server.running import TABLE, Client, get, gzipped, put, request
from tests.unit.server.running import running as serving
from tests.waiting import HANG_SECONDS, wait_until

from .family import children, connect_to_each, is_alive, kill, listening_path, worker_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of the module's own with two workers; what a test kills of it is replaced."""
    with served(str(tmp_path_factory.mktemp("workers") / "x.db"), "--workers", "2") as made:
        with Client(made.port) as client:
            client.call("CreateTable", TABLE)
        yield made


@pytest.fixture
def clients(running: Served) -> Iterator[list[Client]]:
    """One connection to each worker."""
    found = list(connect_to_each(running, 2).values())
    yield found
    for client in found:
        client.close()


def test_connections_are_spread_evenly(running: Served) -> None:
    clients = [Client(running.port) for _ in range(8)]
    workers = Counter(worker_of(client.ask(request())) for client in clients)
    for client in clients:
        client.close()
    assert sorted(workers.values()) == [4, 4]


def test_a_worker_reads_what_was_written_through_another(clients: list[Client]) -> None:
    for number in range(20):
        writes, reads = clients[number % 2], clients[1 - number % 2]
        assert writes.ask(put("shared", n={"N": str(number)})).status == 200
        assert reads.ask(get("shared")).json()["Item"]["n"] == {"N": str(number)}


def test_a_table_that_was_replaced_through_one_worker_is_new_to_the_other(clients: list[Client]) -> None:
    table = {**TABLE, "TableName": "Replaced"}
    item = {"TableName": "Replaced", "Key": {"pk": {"S": "a"}}}
    for _ in range(2):
        clients[0].call("CreateTable", table)
        assert clients[1].call("GetItem", item) == {}
        clients[0].call("PutItem", {"TableName": "Replaced", "Item": {"pk": {"S": "a"}}})
        assert "Item" in clients[1].call("GetItem", item)
        clients[1].call("DeleteTable", {"TableName": "Replaced"})
        assert clients[0].ask(request("GetItem", item)).status == 400


def test_counts_do_not_depend_on_the_worker(clients: list[Client]) -> None:
    table = {**TABLE, "TableName": "Counted"}
    clients[0].call("CreateTable", table)
    for number in range(6):
        item = {"TableName": "Counted", "Item": {"pk": {"S": str(number)}}}
        clients[number % 2].call("PutItem", item)
    described = [each.call("DescribeTable", {"TableName": "Counted"})["Table"] for each in clients]
    assert [each["ItemCount"] for each in described] == [6, 6]


def test_errors_are_those_of_a_single_process(clients: list[Client]) -> None:
    for client in clients:
        assert client.ask(request("PutItem", body=b"{")).json()["__type"].endswith("SerializationException")
        for wrong in (request(target="DynamoDB_20120810.Nothing"), request(without=("X-Amz-Target",))):
            unknown = client.ask(wrong)
            assert unknown.json()["__type"].endswith("UnknownOperationException")
        condition = {
            "TableName": "Things",
            "Item": {"pk": {"S": "x"}},
            "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(pk)",
        }
        failed = client.ask(request("PutItem", condition))
        assert failed.json()["__type"].endswith("ConditionalCheckFailedException")


def test_a_compressed_body_and_a_long_reply_pass_through_a_worker(clients: list[Client]) -> None:
    value = {"S": "x" * 380_000}
    payload = {"TableName": "Things", "Item": {"pk": {"S": "large"}, "v": value}, "ReturnValues": "ALL_OLD"}
    compressed = request(
        "PutItem", body=gzipped(json.dumps(payload).encode()), content_encoding="gzip", accept_encoding="gzip"
    )
    for client in clients:
        client.ask(compressed)
        reply = client.ask(request("PutItem", payload))
        assert reply.json()["Attributes"]["v"] == value


def test_the_replies_to_a_pipeline_come_in_its_order(clients: list[Client]) -> None:
    for client in clients:
        client.send(put("p", n={"N": "1"}) + get("p") + put("p", n={"N": "2"}) + get("p"))
        replies = [client.reply().json() for _ in range(4)]
        assert [each.get("Item", {}).get("n") for each in replies] == [None, {"N": "1"}, None, {"N": "2"}]


# Deaths ------------------------------------------------------------------------------------------


def test_a_killed_worker_is_replaced_and_the_others_go_on(running: Served, clients: list[Client]) -> None:
    family = children(running.process.pid)
    clients[0].ask(put("kept"))
    # The writer was started first.
    kill(family[1])
    # One connection is gone, and the other has not noticed.
    (alive,) = [client for client in clients if not _is_reset(client)]
    wait_until(lambda: len(children(running.process.pid)) == len(family))
    others = connect_to_each(running, 2)
    for client in (alive, *others.values()):
        assert "Item" in client.ask(get("kept")).json()
    for client in others.values():
        client.close()
    assert [each for each in family if is_alive(each)] == [family[0], *family[2:]]


def _is_reset(client: Client) -> bool:
    try:
        client.ask(request())
    except ConnectionError:
        return True
    return False


def test_no_acknowledged_write_is_lost_with_the_writer(running: Served, clients: list[Client]) -> None:
    acknowledged = []
    for number in range(60):
        client = clients[number % 2]
        client.send(put(f"k{number}"))
        if number == 20:
            kill(_writer(running))
        # A write after the death waits for the next writer.
        reply = client.reply()
        # The writer answered before it was killed, or it is not known what it did.
        assert reply.status == 200 or b"it is not known" in reply.body
        if reply.status == 200:
            acknowledged.append(number)
    assert len(acknowledged) >= 58
    missing = [each for each in acknowledged if not clients[0].ask(get(f"k{each}")).json()]
    assert missing == []


def _writer(running: Served) -> int:
    """Return the only process of a server that listens on a Unix socket."""
    (found,) = [each for each in children(running.process.pid) if listening_path(each) is not None]
    return found


def test_the_health_of_a_worker_includes_the_writer(running: Served) -> None:
    check = request(method="GET", url="/health", body=b"")
    writer = _writer(running)
    with Client(running.port) as client:
        assert client.ask(check).json()["status"] == "ok"
        os.kill(writer, signal.SIGSTOP)
        try:
            failed = client.ask(check)
        finally:
            os.kill(writer, signal.SIGCONT)
        assert (failed.status, failed.json()["status"]) == (503, "the process that writes does not answer")
        assert client.ask(get("any")).status == 200
        wait_until(lambda: client.ask(check).status == 200)


def test_processes_that_keep_dying_end_the_server(tmp_path: Path) -> None:
    process = _start("x.db", "--workers", "2", cwd=tmp_path)
    assert process.stdout is not None
    assert "solotable" in process.stdout.readline()
    killed: set[int] = set()

    def kill_all() -> bool:
        if process.poll() is not None:
            return True
        for each in children(process.pid)[-1:]:
            if each not in killed:
                # Python has no name for most real-time signals.
                kill(each, signal.SIGKILL if killed else signal.SIGRTMIN + 1)
                killed.add(each)
        return False

    wait_until(kill_all, seen=lambda: killed)
    errors = process.communicate(timeout=HANG_SECONDS)[1]
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "6 processes of the server ended within 60 s, so it stops." in errors
    assert f"was ended by signal {signal.SIGRTMIN + 1}." in errors
    assert "was ended by SIGKILL." in errors
    assert not any(is_alive(each) for each in killed)


def _start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a server, and do not wait for it."""
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "solotable", "serve", "--port", "0", *arguments],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Shutdown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_stops_them_in_order(kind: signal.Signals, tmp_path: Path) -> None:
    """As Ctrl-C and systemd send it; a write whose end arrives afterwards is still answered."""
    with served("x.db", "--workers", "2", cwd=tmp_path) as running:
        clients = connect_to_each(running, 2).values()
        family = children(running.process.pid)
        whole = put("last")
        for client in clients:
            client.ask(request("CreateTable", TABLE))
            client.send(whole[:-10])
        for each in (*family, running.process.pid):
            os.kill(each, kind)
        for client in clients:
            client.send(whole[-10:])
        replies = [client.reply() for client in clients]
        assert [each.status for each in replies] == [200, 200]
        assert running.process.wait(timeout=HANG_SECONDS) == 0
        assert not any(is_alive(each) for each in family)
        for client in clients:
            client.close()
    assert not (tmp_path / "x.db-wal").exists()


def test_a_signal_while_it_starts_stops_it_with_0(tmp_path: Path) -> None:
    process = _start("x.db", "--workers", "2", cwd=tmp_path)
    # The writer has opened the file, and the workers are starting.
    wait_until(lambda: len(children(process.pid)) == 3)
    for each in (process.pid, *children(process.pid)):
        os.kill(each, signal.SIGINT)
    assert process.communicate(timeout=HANG_SECONDS) == ("", "")
    assert process.returncode == 0


def _end(_channel: socket.socket) -> None:
    """A program that ends at once."""


def test_a_signal_before_all_are_started_starts_no_more() -> None:
    signalled, sender = socket.socketpair()
    with signalled, sender:
        sender.send(b"!")
        supervisor = _Supervisor(signalled, ())
        supervisor.add("writer", _end)
        try:
            assert not supervisor.start()
            assert multiprocessing.active_children() == []
        finally:
            supervisor.stop(0.0)


def test_a_process_ends_quietly_if_the_supervisor_dies_before_it_reads_the_report() -> None:
    async def play() -> None:
        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        channel, supervisors_end = socket.socketpair()
        ended = asyncio.Event()
        with channel:
            watch(channel, ended, socket.socket.close)
            channel.send(b"report")
            supervisors_end.close()
            await asyncio.wait_for(ended.wait(), HANG_SECONDS)
        assert errors == []

    asyncio.run(play())


def test_no_process_outlives_a_killed_supervisor(tmp_path: Path) -> None:
    with served("x.db", "--workers", "2", cwd=tmp_path) as running:
        client = Client(running.port)
        client.call("CreateTable", TABLE)
        family = children(running.process.pid)
        socket_path = listening_path(family[0])
        running.process.kill()
        running.process.wait(timeout=HANG_SECONDS)
        wait_until(lambda: not any(is_alive(each) for each in family))
        assert client.ended()
        client.close()
        assert socket_path is not None
        assert not socket_path.parent.exists()
    assert not (tmp_path / "x.db-wal").exists()


# Maintenance -------------------------------------------------------------------------------------


def test_one_process_sweeps_and_opens_the_file_with_maintenance(tmp_path: Path) -> None:
    log = tmp_path / "sweeps"
    log.touch()
    process = subprocess.Popen(  # noqa: S603 - a program of the tests
        [sys.executable, "-m", "tests.unit.server.workers.sweeping", str(tmp_path / "x.db"), str(log)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        family = children(process.pid)
        wait_until(lambda: log.read_text().count("sweep") >= 5)
        # Each process writes what it does and its own id.
        lines = log.read_text().splitlines()
    finally:
        process.terminate()
        assert process.wait(timeout=HANG_SECONDS) == 0
        process.stdout.close()  # type: ignore[union-attr]  # it was piped above
    writer, *workers = family
    opened = {int(pid): what for what, pid in map(str.split, lines) if what != "sweep"}
    assert opened == {writer: "maintains"} | dict.fromkeys(workers, "reads")
    assert {int(pid) for what, pid in map(str.split, lines) if what == "sweep"} == {writer}


# Arguments ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--memory",), "omit it to use a file, or --workers"),
        (("x.db", "--console"), "omit it or --workers"),
    ],
)
def test_what_processes_cannot_share_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = command("serve", "--workers", "2", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", ["0", "-1", "many", "129", "100000"])
def test_a_bad_number_of_workers_exits_with_2(count: str) -> None:
    assert command("serve", "--workers", count).returncode == 2


def test_a_file_that_cannot_be_opened_is_explained_once(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "x.db-lock").mkdir()
    done = command("serve", "--port", "0", "--workers", "2", "locked/x.db", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("cannot be opened") == 1
    assert "Traceback" not in done.stderr


def test_a_temporary_folder_that_has_too_long_a_path_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(EngineError, match="Set TMPDIR to another folder"):
        serve_with_workers(partial(sqlite.open, "never.db"), Settings(port=0), 2)
    assert list(folder.iterdir()) == []


def test_keys_are_verified_before_a_request_is_forwarded() -> None:
    forwarded: list[str] = []

    class Noting:
        def forward(self, target: str, _body: bytes, done: Callable[[int, bytes], None], /) -> None:
            forwarded.append(target)
            done(200, b"{}")

        def check(self, done: Callable[[bool], None], /) -> None:
            done(True)

    with serving(keys={"k": "s"}) as server, server.client() as client:
        server.server.forwarder = Noting()
        for operation in ("ListTables", "GetItem", "PutItem"):
            assert "MissingAuthenticationToken" in client.ask(request(operation)).json()["__type"]
        assert forwarded == []
        server.server.verifier = None
        for operation in ("ListTables", "GetItem", "DescribeEndpoints", "PutItem", "ExecuteStatement"):
            client.ask(request(operation))
    assert [each.partition(".")[2] for each in forwarded] == ["ListTables", "PutItem", "ExecuteStatement"]
