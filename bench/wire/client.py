"""One plain connection to a server that speaks DynamoDB's protocol, for everything but the load."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any, Protocol

HOST = "127.0.0.1"
TIMEOUT_SECONDS = 60
#: A connection that was idle for longer is opened again: servers close idle ones, some after 5 seconds.
IDLE_SECONDS = 2


class Caller(Protocol):
    """Anything that answers DynamoDB's operations."""

    def call(self, operation: str, request: dict[str, Any], /) -> dict[str, Any]:
        """Return the answer, or raise Refused with DynamoDB's code."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def headers(operation: str) -> dict[str, str]:
    """Return the headers that an SDK would send.

    No contender checks the signature, though some want the date: without it they answer every
    request with an error, and that very fast.
    """
    return {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date;x-amz-target, Signature=" + "0" * 64,
    }


class Client:
    """A connection that stays open."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECONDS)
        self._used = time.monotonic()

    def call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer, or raise Refused with DynamoDB's code."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._connection.close()
        try:
            self._connection.request(
                "POST", "/", body=json.dumps(request).encode(), headers=headers(operation)
            )
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            # A connection that failed half-way takes no further request until it is closed.
            self._connection.close()
            raise
        self._used = time.monotonic()
        answer: dict[str, Any] = json.loads(text or b"{}")
        if response.status != 200:
            code = str(answer.get("__type", response.status)).rpartition("#")[2]
            raise Refused(code, str(answer.get("message") or answer.get("Message") or ""))
        return answer

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
