"""The envelope of every response: `data` or an `error`, and the `request_id`.

Errors leave the app as problems (RFC 9457). `ErrorFormat` writes them in the form that the client reads: an
envelope under /v1 and /storage, a page elsewhere. So each error has one status and one text, wherever it was
raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solotable.web import request_id

T = TypeVar("T")

API = "/v1"
#: The local storage: programs send bytes to it.
STORAGE_PATH = "/storage"
_FOR_PROGRAMS = (f"{API}/", f"{STORAGE_PATH}/")
_PROBLEM = b"application/problem+json"
_PREFIX = "urn:problem:solotable:"
_STANDARD = frozenset({"type", "title", "status", "detail", "instance", "request_id"})

#: From a scope and a problem to a page: its HTML and its headers.
RenderProblem = Callable[[Scope, Mapping[str, Any]], tuple[bytes, Mapping[str, str]]]


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


class ErrorFormat:
    """Middleware around the app that writes problems as envelopes or as pages."""

    def __init__(self, app: ASGIApp, render: RenderProblem) -> None:
        self._app = app
        self._render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = bytearray()

        async def send_formatted(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
            elif start is not None and message["type"] == "http.response.body":
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await self._send(scope, start, bytes(body), send)
            else:
                await send(message)

        await self._app(scope, receive, send_formatted)

    async def _send(self, scope: Scope, start: Message, body: bytes, send: Send) -> None:
        problem = json.loads(body)
        if scope["path"].startswith(_FOR_PROGRAMS):
            content, headers = error_bytes(problem), {"content-type": "application/json"}
        else:
            content, given = self._render(scope, problem)
            headers = {"content-type": "text/html; charset=utf-8", **given}
        replaced = {name.lower().encode() for name in headers} | {b"content-length"}
        kept = [each for each in start["headers"] if each[0].lower() not in replaced]
        added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        length = (b"content-length", str(len(content)).encode())
        await send({**start, "headers": [*kept, *added, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})


def error_bytes(problem: Mapping[str, Any]) -> bytes:
    """Return a problem as an envelope; its extension members become members of the error.

    >>> error_bytes({"type": "urn:problem:solotable:not-found", "detail": "Gone.", "request_id": "r1"})
    b'{"error": {"code": "not-found", "message": "Gone."}, "request_id": "r1"}'
    """
    more = {name: value for name, value in problem.items() if name not in _STANDARD}
    error = {"code": problem["type"].removeprefix(_PREFIX), "message": problem["detail"], **more}
    return json.dumps({"error": error, "request_id": problem["request_id"]}, ensure_ascii=False).encode()


def _is_problem(start: Message) -> bool:
    return any(name.lower() == b"content-type" and value == _PROBLEM for name, value in start["headers"])


def document_envelopes(document: dict[str, Any]) -> None:
    """Describe the errors of an OpenAPI document as envelopes instead of problems."""
    components = document["components"]
    # The document is made once, and this runs each time that it is asked for.
    if components["schemas"].pop("Problem", None) is None:
        return
    components["schemas"]["ErrorEnvelope"] = _schema()
    for response in components["responses"].values():
        [(_, content)] = response["content"].items()
        example = json.loads(error_bytes(content["example"]))
        schema = {"$ref": "#/components/schemas/ErrorEnvelope"}
        response["content"] = {"application/json": {"schema": schema, "example": example}}


def _schema() -> dict[str, Any]:
    schema = ErrorEnvelope.model_json_schema(ref_template="#/components/schemas/{model}")
    body = schema.pop("$defs")["ErrorBody"]
    return {**schema, "properties": {**schema["properties"], "error": body}}
