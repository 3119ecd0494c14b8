"""Answer one prepared botocore request with the response that a socket would have returned.

A DynamoDB error is a response too. Other errors of an engine propagate to the caller, without a log entry.
"""

from __future__ import annotations

import secrets
from base64 import b32hexencode
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any, Final
from zlib import crc32

from solotable._protocol import errors
from solotable._protocol.constraints.operations import ITEMS
from solotable._protocol.constraints.tables import STREAMS, TABLES
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.encode.json_replies import encode_body
from solotable._protocol.engine import Engine
from solotable._protocol.json_codec import dumps, loads
from solotable.errors import ServiceError

_SERVICES: Final = {
    "DynamoDB_20120810": frozenset((*ITEMS, *TABLES)),
    "DynamoDBStreams_20120810": frozenset(STREAMS),
}


def is_dynamodb(request: Any) -> bool:
    """Return whether an engine answers a request, prepared or not."""
    service, dot, _ = _target(request).partition(".")
    return bool(dot) and service in _SERVICES


def respond(engine: Engine, request: Any) -> Any:
    """Answer a prepared request."""
    from botocore.awsrequest import AWSResponse

    sent = request.body or b""
    status, body = _answer(engine, _target(request), sent.encode() if isinstance(sent, str) else bytes(sent))
    headers = {
        "Server": "solotable",
        "Date": formatdate(usegmt=True),
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": str(len(body)),
        # DynamoDB: 52 characters; 32 bytes give as many, and then padding.
        "x-amzn-RequestId": b32hexencode(secrets.token_bytes(32))[:52].decode(),
        # botocore compares it with the body, and retries when they differ.
        "x-amz-crc32": str(crc32(body)),
    }
    return AWSResponse(request.url, status, headers, _Body(body))


def _answer(engine: Engine, target: str, body: bytes) -> tuple[int, bytes]:
    # Not `wire.answer`: botocore would retry its status 500 for half a minute, and hide the cause.
    service, _, operation = target.partition(".")
    try:
        try:
            payload = loads(body)
        except ValueError:
            raise errors.unreadable("") from None
        if operation not in _SERVICES.get(service, ()):
            raise errors.unknown_operation(operation)
        reply = engine.handle(decode_request(operation, payload, engine.capabilities.error_texts))
        return 200, encode_body(operation, reply)
    except ServiceError as refused:
        return refused.status, dumps(refused.body())


def _target(request: Any) -> str:
    # Headers are text until a request is prepared, and bytes afterwards.
    target = request.headers.get("X-Amz-Target", "")
    return target.decode("latin-1") if isinstance(target, bytes) else str(target)


class _Body:
    """The raw body of a botocore response."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content
