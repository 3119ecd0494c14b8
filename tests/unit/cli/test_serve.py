"""`solotable serve`: its banner, its signals, its files and its arguments."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
from pathlib import Path

import botocore.session
import click
import pytest
from botocore import UNSIGNED
from botocore.config import Config

from solotable._protocol.error_texts import LATEST, YEARS
from solotable.cli.server.serve import command as serve
from tests.serving import Served, command, environment, served
from tests.unit.server.running import TABLE, Client, get, put, request
from tests.waiting import HANG_SECONDS, wait_until

OPEN = ("--host", "0.0.0.0")  # noqa: S104 - the banner of it is tested


def prepared(running: Served) -> Client:
    client = Client(running.port)
    client.call("CreateTable", TABLE)
    return client


# Shutdown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_0(kind: signal.Signals, tmp_path: Path) -> None:
    with served(str(tmp_path / "x.db")) as running:
        idle = Client(running.port)
        running.process.send_signal(kind)
        assert running.process.wait(timeout=HANG_SECONDS) == 0
        assert idle.ended()
        idle.close()
    assert not (tmp_path / "x.db-wal").exists()


@pytest.mark.parametrize("where", ["--memory", "x.db"])
def test_a_request_in_progress_is_answered_before_exit(where: str, tmp_path: Path) -> None:
    with served(where, cwd=tmp_path) as running, prepared(running) as client:
        whole = put("last", v={"S": "x" * 1000})
        client.send(whole[:-10])
        with Client(running.port) as other:
            # The server reads in the order in which bytes come: after two answers it has read the above.
            for _ in range(2):
                other.call("ListTables")
        running.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(running.port))
        client.send(whole[-10:])
        reply = client.reply()
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert client.ended()
        assert running.process.wait(timeout=HANG_SECONDS) == 0


def refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS).close()
    except OSError:
        return True
    return False


def test_writes_in_progress_are_answered_and_durable(tmp_path: Path) -> None:
    with served("x.db", cwd=tmp_path) as running:
        prepared(running).close()
        clients = [Client(running.port) for _ in range(20)]
        for number, client in enumerate(clients):
            client.send(put(f"k{number}"))
        running.process.send_signal(signal.SIGTERM)
        answered = []
        for number, client in enumerate(clients):
            try:
                assert client.reply().status == 200
            except ConnectionError:
                continue  # its request had not been read yet
            answered.append(number)
        assert running.process.wait(timeout=HANG_SECONDS) == 0
        for client in clients:
            client.close()
    with served("x.db", cwd=tmp_path) as running, Client(running.port) as client:
        assert [number for number in answered if not client.ask(get(f"k{number}")).json()] == []


# Storage -----------------------------------------------------------------------------------


def test_data_survives_a_restart(tmp_path: Path) -> None:
    with served(cwd=tmp_path) as running, prepared(running) as client:
        client.ask(put("kept"))
        assert "solotable.db" in running.banner
    with served(cwd=tmp_path) as running, Client(running.port) as client:
        assert client.ask(get("kept")).json()["Item"]["pk"] == {"S": "kept"}


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_are_private_to_their_owner(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with served("x.db", cwd=tmp_path) as running, prepared(running) as client:
            client.ask(put("private"))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


def test_memory_leaves_nothing_behind(tmp_path: Path) -> None:
    with served("--memory", cwd=tmp_path) as running:
        assert "in memory: data is lost when the server stops" in running.banner
    assert list(tmp_path.iterdir()) == []


def test_the_banner_mentions_relaxed_durability(tmp_path: Path) -> None:
    with served("--relaxed", "x.db", cwd=tmp_path) as running:
        assert "relaxed" in running.banner


@pytest.mark.parametrize(
    ("arguments", "url", "reach"),
    [
        ((), "http://127.0.0.1:", "only this machine can reach it"),
        (OPEN, "http://127.0.0.1:", "all clients (--keys requires signatures) can"),
        (
            (*OPEN, "--access-key", "k", "--secret-key", "s"),
            "http://127.0.0.1:",
            "clients with a key can",
        ),
    ],
    ids=["here", "open", "signed"],
)
def test_the_banner_says_who_can_reach_it(arguments: tuple[str, ...], url: str, reach: str) -> None:
    with served("--memory", *arguments) as running:
        assert url in running.banner
        assert running.process.stdout is not None
        rest = [running.process.stdout.readline() for _ in range(2)]
        assert url in rest[0]
        assert reach in rest[1]


def test_the_banner_says_that_a_file_is_new(tmp_path: Path) -> None:
    with served("x.db", cwd=tmp_path) as running:
        assert "x.db (new file)" in running.banner
    with served("x.db", cwd=tmp_path) as running:
        assert "x.db" in running.banner
        assert "new file" not in running.banner
    with served("--memory", cwd=tmp_path) as running:
        assert "new file" not in running.banner


def suggested_command(running: Served) -> str:
    assert running.process.stdout is not None
    line = running.process.stdout.readline()
    assert line.startswith("  try:  ")
    return line.removeprefix("  try:  ").rstrip("\n")


def test_the_suggested_command_names_a_region_and_sends_no_signature() -> None:
    with served("--memory") as running:
        url = f"--endpoint-url {running.url}"
        expected = f"aws dynamodb list-tables {url} --region us-east-1 --no-sign-request"
        assert suggested_command(running) == expected
    with served("--memory", "--access-key", "k", "--secret-key", "s") as running:
        url = f"--endpoint-url {running.url}"
        assert suggested_command(running) == f"aws dynamodb list-tables {url} --region us-east-1"


def test_the_suggested_request_works_without_an_aws_configuration() -> None:
    """The request of the AWS CLI, sent by botocore: a region, and no credentials."""
    session = botocore.session.Session()
    unsigned = Config(signature_version=UNSIGNED)
    with served("--memory") as running:
        client = session.create_client(
            "dynamodb", endpoint_url=running.url, region_name="us-east-1", config=unsigned
        )
        assert client.list_tables()["TableNames"] == []
        client.close()


@pytest.mark.skipif(shutil.which("aws") is None, reason="the AWS CLI is not installed")
def test_the_suggested_command_works_as_printed(tmp_path: Path) -> None:
    with served("--memory") as running:
        done = subprocess.run(  # noqa: S602 - as a user pastes it
            suggested_command(running),
            shell=True,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
            env=environment(HOME=str(tmp_path), AWS_EC2_METADATA_DISABLED="true"),
        )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"TableNames": []}


def test_the_years_of_error_texts_are_those_of_the_protocol() -> None:
    (option,) = (each for each in serve.params if each.name == "error_texts")
    assert isinstance(option.type, click.Choice)
    assert (tuple(option.type.choices), option.default) == (YEARS, LATEST)


def test_a_name_with_several_addresses_gets_one_port() -> None:
    with served("--memory", "--host", "localhost") as running, Client(running.port) as client:
        assert client.ask(request()).status == 200


# Bad arguments ----------------------------------------------------------------------------------


def error_of(done: subprocess.CompletedProcess[str], code: int) -> str:
    assert done.returncode == code, done
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert done.stderr.strip()
    return done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--port", "eight"),
        ("--port", "65536"),
        ("--port", "-1"),
        ("--nothing",),
        ("one.db", "two.db"),
        ("--memory", "one.db"),
        ("--access-key", "key"),
        ("--secret-key", "secret"),
        ("--access-key", "", "--secret-key", ""),
        ("--access-key", "a/b", "--secret-key", "x"),
        ("--keys", "absent.txt"),
        ("--keys", "."),
        ("--keys", "binary"),
        ("--sweep", "-1"),
        ("--sweep", "nan"),
        ("--sweep", "inf"),
        ("--sweep", "often"),
        ("--allowed-host", "http://a"),
        ("--allowed-host", "a:8000"),
        ("--allowed-host", ""),
        ("--cors", "no origin"),
        ("--cors", "http://a\nX: y"),
        ("--cors", "→"),
        ("--host", ""),
        (".",),
    ],
)
def test_bad_arguments_exit_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    error_of(command("serve", *arguments, cwd=tmp_path), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["binary"]


def test_a_port_in_use_is_explained(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        text = error_of(command("serve", "--memory", "--port", str(port)), 1)
    assert f"Port {port} on 127.0.0.1 is already in use" in text
    assert "--port 0" in text


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a..b", "x" * 300, "256.256.256.256"])
def test_an_unknown_host_is_explained(host: str) -> None:
    assert "host" in error_of(command("serve", "--memory", "--port", "0", "--host", host), 1)


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("text.db", b"This is not a database.\n" * 100, "not a solotable database"),
        ("absent/x.db", None, "cannot be created"),
    ],
)
def test_an_unusable_file_is_explained(tmp_path: Path, name: str, content: bytes | None, word: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert word in error_of(command("serve", "--port", "0", name, cwd=tmp_path), 1)
    if content is not None:
        assert (tmp_path / name).read_bytes() == content
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_help_of_a_key_can_be_read_alone() -> None:
    text = serve.get_help(click.Context(serve))
    assert "..." not in text.partition("--access-key")[2].partition("--keys")[0]


def test_an_invalid_keys_file_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("AKID s3cr3t more words\n")
    text = error_of(command("serve", "--memory", "--port", "0", "--keys", str(tmp_path / "keys")), 1)
    assert "line 1" in text
    assert "s3cr3t" not in text


def test_versions_are_printed() -> None:
    done = command("--version")
    assert done.returncode == 0
    assert "solotable" in done.stdout


# The request log ---------------------------------------------------------------------------------


def test_log_prints_a_line_for_each_request(tmp_path: Path) -> None:
    with served("--memory", "--log", cwd=tmp_path) as running, prepared(running) as client:
        client.ask(put("1"))
        client.ask(get("1"))
        running.process.send_signal(signal.SIGTERM)
        lines = running.process.communicate(timeout=HANG_SECONDS)[0].splitlines()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ 127\.0\.0\.1"
    shown = [line for line in lines if re.match(stamp, line)]
    assert len(shown) == 3
    for line, operation in zip(shown, ("CreateTable", "PutItem", "GetItem"), strict=True):
        assert re.fullmatch(rf"{stamp} {operation} 200 \d+\.\d ms", line)
