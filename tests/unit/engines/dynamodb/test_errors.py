"""Errors of the transports, and whether a write may have been executed."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.requests import (
    Control,
    DeleteItem,
    ExecuteStatement,
    GetItem,
    PutItem,
    Request,
    Statement,
    TransactWriteItems,
)
from solotable.engines import dynamodb
from solotable.engines.dynamodb.http.exchange import HttpSettings
from solotable.errors import NotConfigured, OutcomeUnknown, ServiceError, Throttled, TransportError
from tests.waiting import HANG_SECONDS, wait_until

from .scripted import answer, scripted

KEY = {"pk": {"S": "a"}}
READ = GetItem(table="Things", key=KEY)
WRITE = PutItem(table="Things", item=KEY)
LIES = [
    answer({}, length=9999)[:-1],
    answer({"Item": KEY}, checksum=1),
    answer(b"<html>not JSON</html>"),
]


FaultOf = Callable[..., Exception]


@pytest.fixture
def fault_of(either_at: Callable[[str, HttpSettings], dynamodb.DynamoEngine]) -> FaultOf:
    """What an engine raises, after one attempt and no more."""

    def ask(request: Request[Any], reply: bytes | None, *, silent: bool = False) -> Exception:
        settings = HttpSettings(read_seconds=0.5 if silent else HANG_SECONDS)
        with scripted(reply, silent=silent) as server, either_at(server.url, settings) as engine:
            with pytest.raises((TransportError, ServiceError, NotConfigured)) as raised:
                engine.handle(request)
            wait_until(lambda: server.requests)
            assert len(server.requests) == 1
            assert raised.value.__cause__ is not None
            return raised.value

    return ask


@pytest.mark.parametrize(
    "write",
    [
        WRITE,
        DeleteItem(table="Things", key=KEY),
        TransactWriteItems(actions=(WRITE,)),
        ExecuteStatement(statement=Statement(text="DELETE FROM Things WHERE pk = 'a'")),
        Control(operation="DeleteTable", members={"TableName": "Things"}),
    ],
)
def test_the_outcome_of_a_write_without_an_answer_is_unknown(write: Request[Any], fault_of: FaultOf) -> None:
    fault = fault_of(write, None)
    assert type(fault) is OutcomeUnknown
    assert not fault.retryable
    assert "read the stored item" in str(fault)


def test_a_transaction_under_a_token_may_be_sent_again(fault_of: FaultOf) -> None:
    fault = fault_of(TransactWriteItems(actions=(WRITE,), token="once"), None)
    assert type(fault) is OutcomeUnknown
    assert fault.retryable


@pytest.mark.parametrize(
    "read",
    [
        READ,
        ExecuteStatement(statement=Statement(text=" select * FROM Things")),
        Control(operation="DescribeTable", members={"TableName": "Things"}),
    ],
)
def test_a_read_without_an_answer_may_be_sent_again(read: Request[Any], fault_of: FaultOf) -> None:
    fault = fault_of(read, None)
    assert type(fault) is TransportError
    assert fault.retryable


@pytest.mark.parametrize("reply", LIES)
def test_an_incomplete_reply_is_a_transport_error(reply: bytes, fault_of: FaultOf) -> None:
    assert type(fault_of(READ, reply)) is TransportError
    assert type(fault_of(WRITE, reply)) is OutcomeUnknown


def test_a_server_that_says_nothing_is_given_up(fault_of: FaultOf) -> None:
    assert type(fault_of(WRITE, None, silent=True)) is OutcomeUnknown


@pytest.mark.parametrize("request_", [READ, WRITE])
def test_without_a_listener_nothing_was_sent(request_: Request[Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        dynamodb.open(endpoint_url=f"http://127.0.0.1:{port}") as engine,
        pytest.raises(TransportError) as raised,
    ):
        engine.handle(request_)
    assert type(raised.value) is TransportError
    assert str(raised.value) == (
        f"Nothing answers at http://127.0.0.1:{port}. Start it: solotable serve --port {port}"
    )


def test_the_error_names_the_variable_of_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
    with dynamodb.open() as engine, pytest.raises(TransportError, match="from AWS_ENDPOINT_URL_DYNAMODB"):
        engine.handle(READ)


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]
)
def test_throttling_has_its_own_class(code: str, fault_of: FaultOf) -> None:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "Slow down", "reasons": ["x"]}
    fault = fault_of(WRITE, answer(body, status=400))
    assert type(fault) is Throttled
    assert (fault.code, fault.message, fault.retryable) == (code, "Slow down", True)
    assert fault.members == {"reasons": ["x"]}


def test_other_refusals_keep_their_code_and_status(fault_of: FaultOf) -> None:
    body = {"__type": "com.amazon.coral.service#AccessDeniedException", "Message": "Not you", "code": "odd"}
    fault = fault_of(READ, answer(body, status=403))
    assert type(fault) is ServiceError
    assert (fault.code, fault.message, fault.status) == ("AccessDeniedException", "Not you", 403)
    assert not fault.retryable


def test_expired_credentials_are_not_retryable(fault_of: FaultOf) -> None:
    body = {"__type": "com.amazon.coral.service#ExpiredTokenException", "message": "expired"}
    fault = fault_of(WRITE, answer(body, status=400))
    assert type(fault) is NotConfigured
    assert "aws sso login" in str(fault)


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b""])
def test_a_page_of_a_proxy_is_a_refusal_that_passes(body: bytes, fault_of: FaultOf) -> None:
    fault = fault_of(READ, answer(body, status=502))
    assert type(fault) is ServiceError
    assert (fault.code, fault.status, fault.retryable) == ("502", 502, True)
    assert fault.message in ("Bad Gateway", "")


def test_the_error_for_a_missing_region_names_its_sources() -> None:
    with pytest.raises(NotConfigured) as raised:
        dynamodb.open()
    assert str(raised.value) == (
        "No AWS region. Looked in: the region= argument, AWS_DEFAULT_REGION, "
        'profile "default", AWS_REGION. Try: region=eu-west-1, or sqlite:///file.db to stay local.'
    )


def test_the_error_for_a_missing_region_names_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[profile dev]\noutput = json\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "dev")
    with pytest.raises(NotConfigured, match='profile "dev"'):
        dynamodb.open()


def test_the_error_for_missing_credentials_names_their_sources() -> None:
    # Nothing is sent without a signature, so no network is needed.
    with dynamodb.open(region="eu-west-1") as engine, pytest.raises(NotConfigured, match="AWS_ACCESS_KEY_ID"):
        engine.handle(READ)


def test_the_error_names_a_missing_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(NotConfigured, match="elsewhere"):
        dynamodb.open(profile="elsewhere")


def test_other_errors_than_network_errors_are_raised_unchanged() -> None:
    with (
        dynamodb.open(endpoint_url="http://127.0.0.1:1") as engine,
        pytest.raises(KeyError, match="NoSuchOperation"),
    ):
        engine.handle(Control(operation="NoSuchOperation", members={}))
