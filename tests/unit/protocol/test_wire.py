"""Bytes in, bytes out: whatever happens, the caller gets a status and a JSON body."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from solotable._protocol.engine import Capabilities
from solotable._protocol.json_codec import dumps
from solotable._protocol.replies import GotItem
from solotable._protocol.requests import Control, GetItem, Request
from solotable._protocol.wire import answer, call
from solotable.errors import ConditionFailed, ServiceError, TableNotFound


class Scripted:
    """An engine that answers with what it was given."""

    capabilities = Capabilities()

    def __init__(self, act: Callable[[Request[Any]], Any]) -> None:
        self.handle = act

    def close(self) -> None:
        """Nothing is held."""


def raising(error: Exception) -> Scripted:
    def act(_request: Request[Any]) -> Any:
        raise error

    return Scripted(act)


GET = b'{"TableName":"abc","Key":{"p":{"S":"x"}}}'


def test_a_reply_is_spliced_into_the_body() -> None:
    engine = Scripted(lambda _request: GotItem(item=b'{"p":{"S":"x"}}'))
    assert answer(engine, "DynamoDB_20120810.GetItem", GET) == (200, b'{"Item":{"p":{"S":"x"}}}')
    assert call(engine, "GetItem", json.loads(GET)) == {"Item": {"p": {"S": "x"}}}


@pytest.mark.parametrize("operation", ["TagResource", "UntagResource"])
def test_an_operation_without_a_reply_has_an_empty_body(operation: str) -> None:
    engine = Scripted(lambda _request: {})
    assert answer(engine, f"DynamoDB_20120810.{operation}", b"{}") == (200, b"")
    assert call(engine, operation, {}) == {}


def test_the_engine_gets_a_record() -> None:
    seen: list[Request[Any]] = []

    def act(request: Request[Any]) -> Any:
        seen.append(request)
        return {} if isinstance(request, Control) else GotItem()

    answer(Scripted(act), "DynamoDB_20120810.GetItem", GET)
    answer(Scripted(act), "DynamoDBStreams_20120810.ListStreams", b"{}")
    assert seen == [
        GetItem(table="abc", key={"p": {"S": "x"}}),
        Control(operation="ListStreams", members={}),
    ]


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (
            TableNotFound(),
            {
                "__type": "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException",
                "message": "Requested resource not found",
            },
        ),
        (
            ConditionFailed(item={"p": {"S": "x"}}),
            {
                "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
                "message": "The conditional request failed",
                "Item": {"p": {"S": "x"}},
            },
        ),
    ],
)
def test_refusals_are_error_bodies(error: Exception, body: dict[str, Any]) -> None:
    status, raw = answer(raising(error), "DynamoDB_20120810.GetItem", GET)
    assert status == 400
    assert json.loads(raw) == body


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b'"\\ud800"', b"[" * 100_000, b"[]", b"3", b"null"])
def test_invalid_requests_are_a_serialization_exception(body: bytes) -> None:
    status, raw = answer(raising(AssertionError()), "DynamoDB_20120810.GetItem", body)
    assert status == 400
    assert json.loads(raw)["__type"] == "com.amazon.coral.service#SerializationException"


@pytest.mark.parametrize(
    "target",
    [
        "",
        "GetItem",
        "DynamoDB_20120810",
        "DynamoDB_20120810.",
        "DynamoDB_20120810.Nope",
        "DynamoDB_20111205.GetItem",
        "DynamoDB_20120810.GetRecords",
        "DynamoDBStreams_20120810.GetItem",
    ],
)
def test_a_target_that_is_not_there_is_an_unknown_operation(target: str) -> None:
    status, raw = answer(raising(AssertionError()), target, b"{}")
    assert status == 400
    assert json.loads(raw)["__type"] == "com.amazon.coral.service#UnknownOperationException"


def test_a_fault_is_logged_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        status, raw = answer(raising(ZeroDivisionError("secret")), "DynamoDB_20120810.GetItem", GET)
    assert status == 500
    assert json.loads(raw)["__type"].endswith("#InternalServerError")
    assert b"secret" not in raw
    assert "GetItem failed" in caplog.text


def test_a_lone_surrogate_from_a_caller_in_process_is_a_serialization_exception() -> None:
    engine = Scripted(lambda request: {"Key": dumps(request.key)} if isinstance(request, GetItem) else {})
    with pytest.raises(ServiceError) as caught:
        call(engine, "GetItem", {"TableName": "abc", "Key": {"p": {"S": "\ud800"}}})
    assert caught.value.code == "SerializationException"


def test_a_fault_of_the_engine_reaches_a_caller_in_process_as_it_is() -> None:
    with pytest.raises(TypeError, match="theirs"):
        call(raising(TypeError("theirs")), "GetItem", json.loads(GET))
