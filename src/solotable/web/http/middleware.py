"""The edge of an app, before routes and after them: request ids, the size of bodies, headers, and
the answer to what nobody foresaw. It is ASGI only, so that streams pass through unbuffered.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fastapi import HTTPException, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solotable.ids import new_id
from solotable.web.tenancy.host_tenants import PEER, Proxies

from .problems import INTERNAL, kind_of_status, problem

log = logging.getLogger("solotable.web")

_REQUEST_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_LENGTH = re.compile(r"[0-9]{1,18}")

#: For answers that are data: nothing in them is run, framed or guessed at.
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
#: FastAPI's pages of documentation load their scripts from a CDN, with one line of their own.
_DOCS_POLICY = (
    "default-src 'none'; connect-src 'self'; img-src 'self' data: https://fastapi.tiangolo.com "
    "https://cdn.redoc.ly; font-src https://fonts.gstatic.com; worker-src blob:; "
    "script-src 'unsafe-inline' https://cdn.jsdelivr.net; frame-ancestors 'none'; base-uri 'none'; "
    "style-src 'unsafe-inline' https://cdn.jsdelivr.net https://fonts.googleapis.com"
)


def request_id(request: Request) -> str:
    """Return the id of a request, as it is in the answer, the log and the audit."""
    known: str = request.scope["state"]["request_id"]
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeSettings:
    """What the edge of an app does."""

    max_body_bytes: int = 1_000_000
    security_headers: Mapping[str, str] = field(default_factory=lambda: dict(SECURITY_HEADERS))
    hsts_seconds: int = 0
    #: Paths whose pages are FastAPI's own documentation.
    docs: frozenset[str] = frozenset()
    proxies: Proxies = field(default_factory=Proxies)


class Edge:
    """The outermost middleware of our own."""

    def __init__(self, app: ASGIApp, settings: EdgeSettings) -> None:
        self._app = app
        self._settings = settings
        headers = dict(settings.security_headers)
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identity = _identity(scope)
        # A copy: a server that hands the same state to two requests must not hand on who asked first.
        scope["state"] = {**scope.get("state", {}), "request_id": identity, PEER: scope.get("client")}
        scope["state"].pop("principal", None)
        scope["scheme"] = self._settings.proxies.scheme_of(scope) or scope["scheme"]
        scope["client"] = self._settings.proxies.client_of(scope)
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._dress(scope, message, identity)
            await send(message)

        refused = self._refuse_length(scope)
        if refused is not None:
            await problem(Request(scope), kind_of_status(refused.status_code), detail=refused.detail)(
                scope, receive, sending
            )
            return
        try:
            await self._app(scope, self._counting(receive), sending)
        except (
            Exception
        ):  # the edge of the process: whatever it is, the caller gets a problem, the log the trace
            log.exception("request %s: %s %s failed", identity, scope["method"], scope["path"])
            if started:
                raise
            await problem(Request(scope), INTERNAL)(scope, receive, sending)

    def _refuse_length(self, scope: Scope) -> HTTPException | None:
        lengths = [value for name, value in scope["headers"] if name == b"content-length"]
        if not lengths:
            return None
        text = lengths[0].decode("latin-1")
        if len(set(lengths)) > 1 or not _LENGTH.fullmatch(text):
            return HTTPException(400, "Content-Length is one number.")
        return self._too_large() if int(text) > self._settings.max_body_bytes else None

    def _counting(self, receive: Receive) -> Receive:
        """Return a `receive` that refuses what goes over the limit: Content-Length may be absent or lie."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._settings.max_body_bytes:
                    raise self._too_large()
            return message

        return counted

    def _too_large(self) -> HTTPException:
        return HTTPException(413, f"A body has at most {self._settings.max_body_bytes} bytes here.")

    def _dress(self, scope: Scope, message: Message, identity: str) -> None:
        own = list(message.get("headers", ()))
        present = {name for name, _ in own}
        own.extend(each for each in self._headers if each[0] not in present)
        own.append((b"x-request-id", identity.encode()))
        if self._settings.hsts_seconds and scope.get("scheme") == "https":
            own.append((b"strict-transport-security", f"max-age={self._settings.hsts_seconds}".encode()))
        if scope["path"] in self._settings.docs:
            own = [each for each in own if each[0] != b"content-security-policy"]
            own.append((b"content-security-policy", _DOCS_POLICY.encode()))
        message["headers"] = own


def _identity(scope: Scope) -> str:
    """Return the caller's request id when it is one that a log can hold, else a new one."""
    given = [value for name, value in scope["headers"] if name == b"x-request-id"]
    if len(given) == 1:
        text: str = given[0].decode("latin-1")
        if _REQUEST_ID.fullmatch(text):
            return text
    return new_id()
