"""The envelope of errors (2b): `error` with `code`, `message` and `details`, and `meta`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field
from starlette.types import Scope

from solotable.systems.http.error_format import code_of, document_errors, members_of

_PROGRAM_PATHS = ("/api/", "/admin/", "/auth/", "/health", "/oauth-client-metadata.json")
#: A browser asks for these on the way to and from the identity provider.
_SHARED_PATHS = ("/auth/login", "/auth/callback")


class ErrorBody(BaseModel):
    """What went wrong: compare `code`, show `message`."""

    code: str
    message: str
    details: Annotated[dict[str, Any], Field(description="What the error is about, by name.")]


class ErrorMeta(BaseModel):
    """When a request failed, and its id in the server's log."""

    timestamp: datetime
    request_id: str


class ErrorEnvelope(BaseModel):
    """A failed request."""

    error: ErrorBody
    meta: ErrorMeta


def error_bytes(problem: Mapping[str, Any]) -> bytes:
    """Return a problem as an envelope; its extension members become the details."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    error = {"code": code_of(problem), "message": problem["detail"], "details": members_of(problem)}
    meta = {"timestamp": at, "request_id": problem["request_id"]}
    return json.dumps({"error": error, "meta": meta}, ensure_ascii=False).encode()


def is_program(scope: Scope) -> bool:
    """Return whether a program, not a browser, sent a request."""
    path: str = scope["path"]
    if path in _SHARED_PATHS:
        return not any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])
    return path.startswith(_PROGRAM_PATHS)


def document_envelopes(document: dict[str, Any]) -> None:
    """Describe the errors of an OpenAPI document as envelopes."""
    document_errors(document, ErrorEnvelope, error_bytes)
