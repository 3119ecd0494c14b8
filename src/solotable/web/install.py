"""Fitting an app: problems for errors, the edge, authentication, host names and OpenAPI, by one call.

Nothing is on that was not asked for: without `cors_origins` there is no CORS, without `trusted_hosts`
no forwarded header is read, without `auth` nobody gets past `current`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from solotable.errors import DeclarationError, SolotableError

from .auth.auth import Auth
from .auth.current_roles import Standing, Standings
from .http.middleware import Edge, EdgeSettings
from .http.openapi import described
from .http.problems import Kind, detail_of, kind_of, kind_of_status, members_of, problem
from .tenancy.host_tenants import HostTenants, Proxies, ResolveHost

log = logging.getLogger("solotable.web")

_MOST_ERRORS = 20
_CORS_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_CORS_HEADERS = ("authorization", "content-type", "if-match", "x-api-key", "x-request-id", "x-tenant-id")
_CORS_EXPOSED = ("etag", "location", "retry-after", "x-request-id")


def install(  # noqa: PLR0913  # one call with names for everything; each has a safe default
    app: FastAPI,
    *,
    auth: Auth | None = None,
    resolve_host: ResolveHost | None = None,
    host_ttl_seconds: float = 300.0,
    unknown_host_ttl_seconds: float = 30.0,
    most_hosts: int = 1024,
    trusted_hosts: Iterable[str] = (),
    max_body_bytes: int = 1_000_000,
    security_headers: Mapping[str, str] | None = None,
    hsts_seconds: int = 0,
    cors_origins: Iterable[str] = (),
    problems: Mapping[type[Exception], Kind] | None = None,
    standing: Standing | None = None,
    standing_ttl_seconds: float = 30.0,
) -> None:
    """Fit an app with everything of this room, before it serves its first request.

    `resolve_host(database, host)` returns the tenant of a host name for `host_tenant`.
    `trusted_hosts` are the addresses of proxies whose X-Forwarded-Host, -Proto and -For are believed.
    `problems` maps errors of your own, or changes what an error of solotable is.
    `standing(database, principal, tenant)` returns the roles that somebody with a token has by now.
    """
    if isinstance(cors_origins, str) or isinstance(trusted_hosts, str):
        raise DeclarationError("cors_origins and trusted_hosts are lists of texts, not one text.")
    app.state.auth = auth
    app.state.standings = None if standing is None else Standings(standing, ttl_seconds=standing_ttl_seconds)
    app.state.hosts = None
    proxies = Proxies(trusted_hosts)
    if resolve_host is not None:
        app.state.hosts = HostTenants(
            resolve_host,
            proxies=proxies,
            ttl_seconds=host_ttl_seconds,
            unknown_ttl_seconds=unknown_host_ttl_seconds,
            most=most_hosts,
        )
    settings = EdgeSettings(
        max_body_bytes=max_body_bytes,
        hsts_seconds=hsts_seconds,
        proxies=proxies,
        docs=frozenset(path for path in (app.docs_url, app.redoc_url) if path),
        **({} if security_headers is None else {"security_headers": security_headers}),
    )
    app.add_middleware(Edge, settings=settings)
    origins = list(cors_origins)
    if origins:
        # Outside of the edge, so that its refusals can be read by a page as well.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=_CORS_METHODS,
            allow_headers=_CORS_HEADERS,
            expose_headers=_CORS_EXPOSED,
        )
    _handle(app, dict(problems or {}))
    described(app)


def _handle(app: FastAPI, more: Mapping[type[Exception], Kind]) -> None:
    async def failed(request: Request, error: Exception) -> Response:
        kind = kind_of(error, conditional="if-match" in request.headers, more=more)
        if kind.status >= 500:
            log.error("request %s failed", request.state.request_id, exc_info=error)
        return problem(request, kind, detail=detail_of(error, kind), **members_of(error))

    app.add_exception_handler(SolotableError, failed)
    for each in more:
        app.add_exception_handler(each, failed)
    handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        RequestValidationError: _invalid,
        ValidationError: _invalid,
        HTTPException: _refused,
    }
    for cause, handler in handlers.items():
        app.add_exception_handler(cause, handler)


async def _refused(request: Request, error: HTTPException) -> Response:
    kind = kind_of_status(error.status_code)
    if error.status_code < 200 or error.status_code in (204, 205, 304):
        return Response(status_code=error.status_code, headers=error.headers)
    # FastAPI lets the detail be anything that JSON has.
    detail: object = error.detail
    told = detail if isinstance(detail, str) and detail else None
    return problem(request, kind, detail=told, headers=error.headers)


async def _invalid(request: Request, error: RequestValidationError | ValidationError) -> Response:
    """Tell where the input is wrong and why; the input itself is not sent back."""
    wrong = [
        {"where": [str(part) for part in each["loc"]], "why": each["msg"]}
        for each in error.errors()[:_MOST_ERRORS]
    ]
    first = wrong[0] if wrong else None
    detail = "The request is not valid." if first is None else f"{'.'.join(first['where'])}: {first['why']}"
    kind = Kind(status=422, slug="invalid", title="Invalid data", detail=detail)
    return problem(request, kind, errors=wrong)
