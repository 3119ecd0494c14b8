"""Each reply has one record in the request log, and a log that fails is turned off."""

from __future__ import annotations

import logging

import pytest

from solotable.server import RequestRecord
from solotable.server.http.request import HttpRequest
from solotable.server.request_log import access_key_id, operation_name
from tests.waiting import wait_until

from .running import get, put, request, running


def test_each_reply_has_one_record() -> None:
    records: list[RequestRecord] = []
    with running(log=records.append) as server, server.client() as client:
        body = put("1")
        client.ask(body)
        client.ask(get("1"))
        client.ask(b"GET /health?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.ask(request("GetItem", {"TableName": "Missing", "Key": {"pk": {"S": "1"}}}))
    assert [(each.operation, each.table, each.status) for each in records] == [
        ("PutItem", "Things", 200),
        ("GetItem", "Things", 200),
        ("GET /health", None, 200),
        ("GetItem", "Missing", 400),
    ]
    first = records[0]
    assert first.client == "127.0.0.1"
    assert first.bytes_in == len(body.partition(b"\r\n\r\n")[2])
    assert first.bytes_out == len(b"{}")
    assert first.seconds >= 0
    assert first.time > 0


def test_a_request_that_is_not_http_is_recorded() -> None:
    records: list[RequestRecord] = []
    with running(log=records.append) as server, server.client() as client:
        assert client.ask(b"nonsense\r\n\r\n").status == 400
    assert [(each.operation, each.table, each.status) for each in records] == [("-", None, 400)]


def test_a_control_operation_names_its_table() -> None:
    records: list[RequestRecord] = []
    with running(log=records.append) as server, server.client() as client:
        client.call("DescribeTable", {"TableName": "Things"})
        client.call("ListTables")
    assert [(each.operation, each.table) for each in records] == [
        ("DescribeTable", "Things"),
        ("ListTables", None),
    ]


def test_a_log_that_fails_is_turned_off(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: RequestRecord) -> None:
        raise BrokenPipeError

    with caplog.at_level(logging.ERROR), running(log=fail) as server, server.client() as client:
        assert client.ask(put("1")).status == 200
        assert client.ask(get("1")).status == 200
        wait_until(lambda: server.server.log is None)
    assert [each.message for each in caplog.records] == ["the request log failed and is off"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (b"DynamoDB_20120810.PutItem", "PutItem"),
        (b"x.Put\x1b[31m\r\n Item", "Put?[31m???Item"),
        (b"x." + b"a" * 500, "a" * 100),
        (b"x.", "-"),
    ],
)
def test_what_a_client_sends_cannot_break_a_line(target: bytes, expected: str) -> None:
    sent = HttpRequest()
    sent.headers[b"x-amz-target"] = target
    assert operation_name(sent) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, Signature=1", "AKID"),
        (b"AWS4-HMAC-SHA256 Credential=a b/20260101", None),
        (b"Bearer x", None),
        (b"", None),
    ],
)
def test_the_access_key_id_is_the_one_that_the_request_states(header: bytes, expected: str | None) -> None:
    sent = HttpRequest()
    sent.headers[b"authorization"] = header
    assert access_key_id(sent) == expected
