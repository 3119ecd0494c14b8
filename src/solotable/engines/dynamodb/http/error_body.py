"""Parse the body of an error response: DynamoDB's JSON, or the page of a proxy."""

from __future__ import annotations

from http.client import responses
from typing import Any

from solotable._protocol.json_codec import loads


class ErrorResponse(Exception):
    """A response with an error status."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


def code_and_message(status: int, body: bytes) -> tuple[str, str]:
    """Return the error's code and message; the status and its phrase if the body is not JSON."""
    members = _object(body)
    code = members.get("__type")
    if not isinstance(code, str) or not code:
        code = str(status)
    # DynamoDB: some errors spell the member with a capital.
    message = members.get("message") or members.get("Message") or ("" if members else responses.get(status))
    return code.partition(":")[0].rpartition("#")[2], str(message or "")


def further_members(body: bytes) -> dict[str, Any]:
    """Return the members of an error's body besides its code and message."""
    return {
        name: value for name, value in _object(body).items() if name not in ("__type", "message", "Message")
    }


def _object(body: bytes) -> dict[str, Any]:
    try:
        members = loads(body)
    except ValueError:
        # A proxy's page: only its status is useful.
        return {}
    return members if isinstance(members, dict) else {}
