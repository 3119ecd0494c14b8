"""Errors in the form that the client reads: an envelope for programs, a page for browsers.

Errors leave an app as problems (RFC 9457). `ErrorFormat` rewrites them, so each error has one status and
one text, wherever it was raised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_PROBLEM = b"application/problem+json"
_PREFIX = "urn:problem:solotable:"
_STANDARD = frozenset({"type", "title", "status", "detail", "instance", "request_id"})

#: From a problem to the bytes of an envelope.
EncodeProblem = Callable[[Mapping[str, Any]], bytes]
#: From a scope and a problem to a page: its HTML and its headers.
RenderProblem = Callable[[Scope, Mapping[str, Any]], tuple[bytes, Mapping[str, str]]]


class ErrorFormat:
    """Middleware around an app; `is_program` says for which requests a problem becomes an envelope.

    Without `encode`, programs get the problem as it is.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        encode: EncodeProblem | None,
        render: RenderProblem,
        is_program: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._encode = encode
        self._render = render
        self._is_program = is_program

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        unchanged = self._encode is None and self._is_program(scope)
        start: Message | None = None
        body = bytearray()

        async def send_formatted(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_problem(message) and not unchanged:
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
        if self._encode is not None and self._is_program(scope):
            content, headers = self._encode(problem), {"content-type": "application/json"}
        else:
            content, given = self._render(scope, problem)
            headers = {"content-type": "text/html; charset=utf-8", **given}
        replaced = {name.lower().encode() for name in headers} | {b"content-length"}
        kept = [each for each in start["headers"] if each[0].lower() not in replaced]
        added = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        length = (b"content-length", str(len(content)).encode())
        await send({**start, "headers": [*kept, *added, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})


def code_of(problem: Mapping[str, Any]) -> str:
    """Return the code of a problem, the end of its type.

    >>> code_of({"type": "urn:problem:solotable:not-found"})
    'not-found'
    """
    code: str = problem["type"].removeprefix(_PREFIX)
    return code


def members_of(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extension members of a problem."""
    return {name: value for name, value in problem.items() if name not in _STANDARD}


def _is_problem(start: Message) -> bool:
    return any(name.lower() == b"content-type" and value == _PROBLEM for name, value in start["headers"])


def document_errors(document: dict[str, Any], envelope: type[BaseModel], encode: EncodeProblem) -> None:
    """Describe the errors of an OpenAPI document as envelopes instead of problems."""
    components = document["components"]
    # The document is made once, and this runs each time that it is asked for.
    if components["schemas"].pop("Problem", None) is None:
        return
    name = envelope.__name__
    components["schemas"][name] = _inlined(envelope)
    for response in components["responses"].values():
        [(_, content)] = response["content"].items()
        example = json.loads(encode(content["example"]))
        schema = {"$ref": f"#/components/schemas/{name}"}
        response["content"] = {"application/json": {"schema": schema, "example": example}}


def _inlined(envelope: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model with its parts in place of references."""
    schema = envelope.model_json_schema()
    parts = schema.pop("$defs", {})
    properties = {
        name: parts[each["$ref"].rpartition("/")[2]] if "$ref" in each else each
        for name, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}
