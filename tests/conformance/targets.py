"""The engines that cases are played on: ours in process, and DynamoDB Local over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.waiting import HANG_SECONDS

from .harness import Json, Refused

STREAMS = {"ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"}


class InProcess:
    """solotable's embedded engine, called without a socket."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def call(self, operation: str, request: Any) -> Json:
        from solotable.errors import ServiceError

        try:
            # The request goes through JSON, so that a case cannot share objects with the engine.
            reply: Json = self._engine.call(operation, json.loads(json.dumps(request)))
        except ServiceError as error:
            raise Refused(error.code, error.message, error.body()) from error
        return reply


class Http:
    """Any endpoint that speaks DynamoDB's protocol and does not check signatures."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=HANG_SECONDS)

    def call(self, operation: str, request: Any) -> Json:
        prefix = "DynamoDBStreams_20120810" if operation in STREAMS else "DynamoDB_20120810"
        status, text = self._send(
            request if isinstance(request, bytes) else json.dumps(request).encode(),
            {
                "X-Amz-Target": f"{prefix}.{operation}",
                "Content-Type": "application/x-amz-json-1.0",
                "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/"
                "aws4_request, SignedHeaders=host, Signature=none",
            },
        )
        answer: Json = json.loads(text or b"{}")
        if status != 200:
            code = answer.get("__type", "").rpartition("#")[2]
            raise Refused(code, answer.get("message") or answer.get("Message") or "", answer)
        return answer

    def _send(self, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            self._connection.request("POST", "/", body=body, headers=headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            # A connection that failed half-way takes no further request until it is closed.
            self._connection.close()
            raise

    def close(self) -> None:
        self._connection.close()
