"""What an answer that is no success says: DynamoDB's JSON, or the page of somebody on the way."""

from __future__ import annotations

from http.client import responses
from typing import Any

from solotable._protocol.json_codec import loads


class Refused(Exception):
    """An answer with a status that is no success."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.body = body


def code_and_message(status: int, body: bytes) -> tuple[str, str]:
    """Return the error's name and text; the status and its phrase where there is no JSON."""
    members = _object(body)
    code = members.get("__type")
    if not isinstance(code, str) or not code:
        code = str(status)
    # DynamoDB: some of its errors spell the member otherwise.
    message = members.get("message") or members.get("Message") or ("" if members else responses.get(status))
    return code.partition(":")[0].rpartition("#")[2], str(message or "")


def further_members(body: bytes) -> dict[str, Any]:
    """Return what an error's body has beside its name and text."""
    return {name: one for name, one in _object(body).items() if name not in ("__type", "message", "Message")}


def _object(body: bytes) -> dict[str, Any]:
    try:
        members = loads(body)
    except ValueError:
        # A proxy's page: its status is all there is to tell.
        return {}
    return members if isinstance(members, dict) else {}
