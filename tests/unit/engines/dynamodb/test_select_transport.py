"""When requests go our own way, and when they go through botocore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import boto3
import botocore.handlers
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.httpsession import URLLib3Session

from solotable._connect import open_engine
from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable.boto3 import routed
from solotable.engines import dynamodb
from solotable.engines.dynamodb.http.botocore_transport import BotocoreTransport
from solotable.engines.dynamodb.http.transport import HttpTransport
from solotable.engines.dynamodb.select_transport import is_botocore_unpatched
from solotable.engines.dynamodb.transports import EndpointOptions, Transports
from solotable.errors import DeclarationError, TransportError
from solotable.urls import Url
from tests.unit.server.running import TABLE

from .evil import evil

URL = "http://127.0.0.1:1"
LIST = Control(operation="ListTables", members={})


def way(**wanted: Any) -> type[Any]:
    clients = Transports(EndpointOptions(**{"endpoint_url": URL, **wanted}))
    try:
        streams = clients.get("ListStreams")
        assert type(streams) is type(clients.items)
        return type(clients.items)
    finally:
        clients.close()


def test_nothing_special_goes_our_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    assert way() is HttpTransport
    assert way(endpoint_url=URL + "/") is HttpTransport
    assert way(endpoint_url=None, region="eu-west-1") is HttpTransport
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    assert way() is HttpTransport


def test_what_the_caller_lends_is_used() -> None:
    assert way(session=boto3.Session(region_name="eu-west-1")) is BotocoreTransport
    assert way(config=Config(read_timeout=1)) is BotocoreTransport
    assert way(botocore=True) is BotocoreTransport


@pytest.mark.parametrize(
    "name, value",
    [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("AWS_ACCOUNT_ID_ENDPOINT_MODE", "required"),
        ("AWS_AUTH_SCHEME_PREFERENCE", "sigv4a"),
        ("AWS_SIGV4A_SIGNING_REGION_SET", "*"),
        ("AWS_DEFAULT_REGION", "local"),
    ],
)
def test_what_botocore_knows_better_goes_through_it(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert way() is BotocoreTransport


def test_a_proxy_that_does_not_apply_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert way() is HttpTransport


@pytest.mark.parametrize("url", [URL + "/base", "http://user@127.0.0.1:1"])
def test_an_endpoint_that_is_more_than_a_host_goes_through_botocore(url: str) -> None:
    assert way(endpoint_url=url) is BotocoreTransport


def test_hooks_for_every_session_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(**_: Any) -> None:
        """As moto has one."""

    hooks = [*botocore.handlers.BUILTIN_HANDLERS, ("before-send", stub)]
    monkeypatch.setattr(botocore.handlers, "BUILTIN_HANDLERS", hooks)
    assert way() is BotocoreTransport


def test_a_block_of_routed_sees_the_calls_of_an_engine_from_before(opened_at: Callable[..., Engine]) -> None:
    with evil() as server:
        engine = opened_at(server.url)
        assert engine.handle(LIST)["Item"]
        with routed(":memory:") as inner:
            inner.call("CreateTable", TABLE)
            assert engine.handle(LIST) == {"TableNames": ["Things"]}
        assert engine.handle(LIST)["Item"]
        assert len(server.requests) == 2


@pytest.mark.parametrize("owner, name", [(BaseClient, "_make_api_call"), (URLLib3Session, "send")])
def test_who_wraps_a_method_of_botocore_sees_every_call(
    owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    plain = getattr(owner, name)

    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return plain(self, *args, **kwargs)

    with dynamodb.open(endpoint_url=URL) as engine:
        assert is_botocore_unpatched()
        monkeypatch.setattr(owner, name, wrapped)
        assert not is_botocore_unpatched()
        with pytest.raises(TransportError):
            engine.handle(LIST)
        assert seen == [name]


def test_a_url_may_ask_for_botocore() -> None:
    for url, expected in ((URL, HttpTransport), (f"{URL}?client=botocore", BotocoreTransport)):
        engine: Any = open_engine(Url.parse(url))
        assert type(engine._transports.items) is expected
        engine.close()
    with pytest.raises(DeclarationError, match="client takes botocore; leave it out"):
        open_engine(Url.parse(f"{URL}?client=curl"))
