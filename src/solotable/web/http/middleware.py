"""Middleware around an app: request ids, body size limits, response headers, unexpected errors.

It is plain ASGI, so that streams pass through without a buffer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solotable.ids import new_id
from solotable.web.tenancy.proxies import PEER, TrustedProxies

from .problems import INTERNAL, problem, problem_type_of_status

log = logging.getLogger("solotable.web")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LENGTH = re.compile(r"[0-9]{1,18}")
#: The name of the body size limit in the state of a scope.
_MAX_BODY = "max_body_bytes"

#: A client repeats a push after a 413 for ever, so its route reads larger bodies and uses their beginning.
BODY_LIMITS = {"/replicache/push": 200_000_000}

#: For responses that are data: a browser runs, frames and guesses nothing.
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "cache-control": "no-store",
}


def request_id(request: Request) -> str:
    """Return the id of a request, as in the response header, the log and the audit events."""
    known: str = request.scope["state"]["request_id"]
    return known


def limit_body(request: Request, max_bytes: int) -> None:
    """Lower the body size limit of a request, before its body is read; 413 for a larger body."""
    request.scope["state"][_MAX_BODY] = max_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MiddlewareSettings:
    """The limits and headers of an app."""

    max_body_bytes: int = 1_000_000
    #: Other limits, by the ends of paths.
    body_limits: Mapping[str, int] = field(default_factory=lambda: dict(BODY_LIMITS))
    security_headers: Mapping[str, str] = field(default_factory=lambda: dict(SECURITY_HEADERS))
    hsts_seconds: int = 0
    proxies: TrustedProxies = field(default_factory=TrustedProxies)


class WebMiddleware:
    """The outermost middleware of an app but CORS."""

    def __init__(self, app: ASGIApp, settings: MiddlewareSettings) -> None:
        self._app = app
        self._settings = settings
        headers = dict(settings.security_headers)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        # A copy: a server may share one state between requests, and the principal must not leak.
        state = scope["state"] = {
            **scope.get("state", {}),
            "request_id": request_id,
            PEER: scope.get("client"),
            _MAX_BODY: self._limit_of(scope),
        }
        state.pop("principal", None)
        scope["scheme"] = self._settings.proxies.scheme_of(scope) or scope["scheme"]
        scope["client"] = self._settings.proxies.client_of(scope)
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._add_headers(scope, message, request_id)
            await send(message)

        rejected = self._check_length(scope)
        if rejected is not None:
            problem_type = problem_type_of_status(rejected.status_code)
            await problem(Request(scope), problem_type, detail=rejected.detail)(
                scope, receive, send_with_headers
            )
            return
        try:
            await self._app(scope, _count_body(state, receive), send_with_headers)
        except Exception:  # the edge of the process: the client gets a problem, the log the traceback
            log.exception("request %s: %s %s failed", request_id, scope["method"], scope["path"])
            if started:
                raise
            await problem(Request(scope), INTERNAL)(scope, receive, send_with_headers)

    def _limit_of(self, scope: Scope) -> int:
        """Return the body size limit of a path."""
        path = scope["path"]
        for end, limit in self._settings.body_limits.items():
            if path.endswith(end):
                return limit
        return self._settings.max_body_bytes

    def _check_length(self, scope: Scope) -> HTTPException | None:
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if not lengths:
            return None
        text = lengths[0].decode("latin-1")
        if len(set(lengths)) > 1 or not _LENGTH.fullmatch(text):
            return HTTPException(400, "Content-Length takes one number.")
        limit = self._limit_of(scope)
        return _too_large(limit) if int(text) > limit else None

    def _add_headers(self, scope: Scope, message: Message, request_id: str) -> None:
        headers = list(message.get("headers", ()))
        present = {name for name, _ in headers}
        headers.extend(each for each in self._headers if each[0] not in present)
        headers.append((b"x-request-id", request_id.encode()))
        if self._settings.hsts_seconds and scope.get("scheme") == "https":
            headers.append((b"strict-transport-security", f"max-age={self._settings.hsts_seconds}".encode()))
        message["headers"] = headers


def _count_body(state: dict[str, Any], receive: Receive) -> Receive:
    """Return a `receive` that enforces the limit in the state: Content-Length may be absent or wrong."""
    received = 0

    async def receive_counted() -> Message:
        nonlocal received
        message = await receive()
        if message["type"] == "http.request":
            received += len(message.get("body", b""))
            if received > state[_MAX_BODY]:
                raise _too_large(state[_MAX_BODY])
        return message

    return receive_counted


def _too_large(limit: int) -> HTTPException:
    return HTTPException(413, f"The body is larger than {limit} bytes.")


def _request_id(scope: Scope) -> str:
    """Return the client's request id when a log can hold it, else a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1:
        text: str = given[0].decode("latin-1")
        if _REQUEST_ID.fullmatch(text):
            return text
    return new_id()
