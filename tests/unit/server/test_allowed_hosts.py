"""A server without keys answers to names that no web page can own, and says how to allow another."""

from __future__ import annotations

import json

import pytest

from solotable.errors import ServiceError
from solotable.server.auth.allowed_hosts import AllowedHosts, echo_host

from .running import request, running


def _allowed(hosts: AllowedHosts, host: bytes | None) -> bool:
    # The second time, what was found is remembered.
    found = []
    for _ in range(2):
        try:
            hosts.check(host)
        except ServiceError:
            found.append(False)
        else:
            found.append(True)
    assert found[0] is found[1]
    return found[0]


@pytest.mark.parametrize(
    "host",
    [
        None,
        b"localhost",
        b"localhost:8000",
        b"LocalHost:8000",
        b"localhost.",
        b"shop.localhost:8000",
        b"127.0.0.1:8000",
        b"127.5.5.5",
        b"[::1]:8000",
        b"192.168.1.5:8000",
        b"[fe80::1]",
        b"db.internal",
        b"DB.internal.:8000",
        b"localhost:",
        b"localhost:8000 \t",
    ],
)
def test_names_that_no_page_can_own_are_answered(host: bytes | None) -> None:
    assert _allowed(AllowedHosts(["127.0.0.1", "db.internal"]), host)


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"evil.example",
        b"evil.example:8000",
        b"localhost.evil.example",
        b"evillocalhost",
        b"127.0.0.1.evil.example",
        b"1.2.3",
        b"db.internal.evil.example",
        b"sub.db.internal",
        b"localhost evil.example",
        b"localhost:8000:8000",
        b"[::1",
        b"localhost,evil.example",
        b"x" * 300,
        "löcalhost".encode(),
    ],
)
def test_other_names_are_not(host: bytes) -> None:
    hosts = AllowedHosts(["127.0.0.1", "db.internal"])
    assert not _allowed(hosts, host)
    assert _allowed(AllowedHosts(["*"]), host)
    assert _allowed(AllowedHosts(None), host)


@pytest.mark.parametrize("path", [":memory:", "file"])
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_the_error_for_a_foreign_host_says_how_to_allow_it(path: str, method: str, tmp_path: object) -> None:
    place = path if path == ":memory:" else f"{tmp_path}/things.db"
    with running(place) as server, server.client() as client:
        reply = client.ask(request(method=method, host="evil.example:8000"))
        assert reply.status == 400
        error = json.loads(reply.body)
        assert error["__type"] == "com.amazon.coral.service#AccessDeniedException"
        assert "--allowed-host evil.example" in error["message"]
        # The connection stays open, as after any DynamoDB error.
        assert client.ask(request()).status == 200


def test_an_allowed_host_is_answered() -> None:
    with running(allowed_hosts=("db.internal",)) as server:
        assert server.ask(request(host="db.internal:8000")).status == 200
        assert server.ask(request(host="other.internal:8000")).status == 400


def test_with_keys_any_host_may_be_named_as_it_is_signed() -> None:
    with running(keys={"key": "secret"}) as server:
        reply = server.ask(request(host="evil.example"))
        assert reply.json()["__type"].endswith("MissingAuthenticationTokenException")


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1:8000", "[::1]:8000"])
def test_clients_are_sent_back_to_the_host_that_they_asked(host: str) -> None:
    with running() as server:
        reply = server.ask(request("DescribeEndpoints", host=host))
        assert reply.json()["Endpoints"] == [{"Address": host, "CachePeriodInMinutes": 1440}]
        assert server.ask(request(method="GET", body=b"", host=host)).body == f"healthy: {host} ".encode()


@pytest.mark.parametrize("host", [b"a<script>", b"a\r\nX: y", b'a"b', b"a/b", b"a@b", b"x" * 300, None, b""])
def test_what_is_not_a_host_is_not_repeated(host: bytes | None) -> None:
    assert echo_host(host) == "localhost"


def test_a_hostile_host_is_not_repeated_by_a_server_that_takes_any() -> None:
    with running(allowed_hosts=("*",)) as server:
        reply = server.ask(request(method="GET", body=b"", host="<script>alert(1)</script>"))
        assert reply.body == b"healthy: localhost "
        reply = server.ask(request("DescribeEndpoints", host='"},<b>'))
        assert reply.json()["Endpoints"][0]["Address"] == "localhost"
