"""Signing again: after a refusal for a clock that is wrong, or for credentials that have expired."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solotable import __version__
from solotable._protocol.engine import Engine
from solotable._protocol.requests import GetItem, PutItem
from solotable.engines import dynamodb
from solotable.engines.dynamodb.http.transport import HttpTransport
from solotable.engines.dynamodb.http.wire_protocol import WireProtocol
from solotable.engines.dynamodb.transports import EndpointOptions, Transports
from solotable.errors import NotConfigured, ServiceError
from tests.unit.server.running import running

from .evil import GOOD, Act, evil, reply

KEY = {"pk": {"S": "a"}}
READ = GetItem(table="Things", key=KEY)
WRITE = PutItem(table="Things", item=KEY)


def refusal(code: str, message: str = "no", *, extra: str = "") -> Act:
    body = json.dumps({"__type": f"com.amazon.coral.service#{code}", "message": message}).encode()
    return Act(reply=reply(body, status=400, extra=extra))


def with_clock(engine: dynamodb.DynamoEngine, seconds_ahead: float) -> None:
    """Let the engine's clock be wrong."""
    direct: Any = engine._transports.items
    assert isinstance(direct, HttpTransport)
    protocol: WireProtocol = direct.protocol
    protocol._clock = lambda: time.time() + seconds_ahead


@pytest.mark.parametrize("seconds", [-3600, 3600, 86400 * 3])
def test_a_wrong_clock_is_put_right_by_the_servers(seconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with (
        running(keys={"AKID": "secret"}) as server,
        dynamodb.open(endpoint_url=f"http://127.0.0.1:{server.port}") as engine,
    ):
        with_clock(engine, seconds)
        for _ in range(3):
            engine.handle(WRITE)
            assert engine.handle(READ).item == KEY


def test_a_clock_is_put_right_once_and_remembered(opened_at: Callable[..., Engine]) -> None:
    skewed = refusal("RequestTimeTooSkewed", extra="Date: Sun, 06 Nov 2033 08:49:37 GMT\r\n")
    with evil(skewed, GOOD) as server:
        engine = opened_at(server.url)
        engine.handle(WRITE)
        engine.handle(WRITE)
        assert [b"X-Amz-Date: 20331106T" in each for each in server.requests] == [False, True, True]
    with evil(skewed) as server:
        engine = opened_at(server.url)
        with pytest.raises(ServiceError) as refused:
            engine.handle(WRITE)
        assert refused.value.code == "RequestTimeTooSkewed"
        assert len(server.requests) == 2
        # The clock is right now, so that another refusal says something else.
        with pytest.raises(ServiceError):
            engine.handle(WRITE)
        assert len(server.requests) == 3


@pytest.mark.parametrize("extra", ["", "Date: yesterday\r\n", "Date: \r\n"])
def test_without_the_servers_clock_a_refusal_is_one(extra: str, opened_at: Callable[..., Engine]) -> None:
    skewed = refusal("InvalidSignatureException", "Signature expired: 1 is now earlier than 2", extra=extra)
    with evil(skewed) as server:
        engine = opened_at(server.url)
        with pytest.raises(ServiceError, match="Signature expired"):
            engine.handle(WRITE)
        assert len(server.requests) == 1


def credentials(place: Path, name: str) -> None:
    place.write_text(
        f"[default]\naws_access_key_id = {name}\naws_secret_access_key = s\naws_session_token = t-{name}\n"
    )


def test_expired_credentials_are_looked_for_again_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened_at: Callable[..., Engine]
) -> None:
    place = tmp_path / "credentials"
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(place))
    credentials(place, "first")
    expired = refusal("ExpiredTokenException").reply
    renew = Act(reply=expired, then=lambda _: credentials(place, "second"))
    with evil(renew, GOOD) as server:
        engine = opened_at(server.url)
        engine.handle(WRITE)
        engine.handle(WRITE)
        assert [b"Credential=second/" in each for each in server.requests] == [False, True, True]
        assert b"X-Amz-Security-Token: t-first\r\n" in server.requests[0]
        assert b"X-Amz-Security-Token: t-second\r\n" in server.requests[1]
        # The same once more: there is nothing newer, and nothing is sent again.
        server.acts = [Act(reply=expired)]
        with pytest.raises(NotConfigured, match="have expired"):
            engine.handle(WRITE)
        assert len(server.requests) == 4


def test_credentials_that_no_header_can_carry_are_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "one\r\nX-Evil: two")
    with evil() as server, dynamodb.open(endpoint_url=server.url) as engine:
        with pytest.raises(NotConfigured, match="line breaks"):
            engine.handle(READ)
        assert server.connections == 0


def test_the_request_says_who_sends_it_and_asks_for_no_encoding() -> None:
    with evil() as server, dynamodb.open(endpoint_url=server.url) as engine:
        engine.handle(READ)
    (request,) = server.requests
    head = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")
    assert head[0] == "POST / HTTP/1.1"
    names = [line.partition(":")[0].lower() for line in head[1:]]
    assert sorted(names) == [
        "authorization",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-amz-date",
        "x-amz-target",
    ]
    assert f"User-Agent: solotable/{__version__} lang/python#" in request.decode()


def test_streams_are_asked_by_their_own_target() -> None:
    with evil() as server:
        clients = Transports(EndpointOptions(endpoint_url=server.url))
        clients.get("ListStreams").send("ListStreams", {})
        clients.close()
    assert b"X-Amz-Target: DynamoDBStreams_20120810.ListStreams\r\n" in server.requests[0]
