"""The envelope of every response: `data` or an `error`, and the `request_id`.

Errors are envelopes under /v1 and /storage, and pages elsewhere (`solotable.systems.http.error_format`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Scope

from solotable.systems.http.error_format import code_of, document_errors, members_of
from solotable.web import request_id

T = TypeVar("T")

API = "/v1"
#: The local storage: programs send bytes to it.
STORAGE_PATH = "/storage"


class Envelope(BaseModel, Generic[T]):
    """A successful response."""

    data: T
    request_id: Annotated[str, Field(description="The id of the request in the server's log.")]

    @classmethod
    def of(cls, request: Request, data: T) -> Envelope[T]:
        """Return the envelope of a result, which is valid already."""
        return cls.model_construct(data=data, request_id=request_id(request))


class ErrorBody(BaseModel):
    """What went wrong: compare `code`, show `message`."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class ErrorEnvelope(BaseModel):
    """A failed request."""

    error: ErrorBody
    request_id: str


def error_bytes(problem: Mapping[str, Any]) -> bytes:
    """Return a problem as an envelope; its extension members become members of the error.

    >>> error_bytes({"type": "urn:problem:solotable:not-found", "detail": "Gone.", "request_id": "r1"})
    b'{"error": {"code": "not-found", "message": "Gone."}, "request_id": "r1"}'
    """
    error = {"code": code_of(problem), "message": problem["detail"], **members_of(problem)}
    return json.dumps({"error": error, "request_id": problem["request_id"]}, ensure_ascii=False).encode()


def is_program(scope: Scope) -> bool:
    """Return whether programs, not browsers, ask for this path."""
    path: str = scope["path"]
    return path.startswith((f"{API}/", f"{STORAGE_PATH}/"))


def document_envelopes(document: dict[str, Any]) -> None:
    """Describe the errors of an OpenAPI document as envelopes."""
    document_errors(document, ErrorEnvelope, error_bytes)
