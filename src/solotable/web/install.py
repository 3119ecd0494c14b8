"""`install`: add problems, middleware, authentication, host names and OpenAPI texts to an app.

Every feature is off until an argument turns it on: without `cors_origins` CORS is off, without
`trusted_hosts` forwarded headers are ignored, without `auth` every route that needs a credential answers 401.
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
from .auth.current_roles import CurrentRoles, ResolveRoles
from .http.docs_pages import serve_docs
from .http.middleware import BODY_LIMITS, MiddlewareSettings, WebMiddleware
from .http.openapi import document_problems
from .http.problems import (
    ProblemType,
    detail_of,
    extensions_of,
    problem,
    problem_type_of,
    problem_type_of_status,
)
from .tenancy.host_tenants import HostTenants, ResolveHost
from .tenancy.proxies import TrustedProxies

log = logging.getLogger("solotable.web")

_MAX_ERRORS = 20
_CORS_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_CORS_HEADERS = (
    "authorization",
    "content-type",
    "if-match",
    "x-api-key",
    "x-replicache-requestid",
    "x-request-id",
    "x-tenant-id",
)
_CORS_EXPOSED = ("etag", "location", "retry-after", "x-request-id")


def install(  # noqa: PLR0913  # one call with a keyword for each feature; each has a safe default
    app: FastAPI,
    *,
    auth: Auth | None = None,
    resolve_host: ResolveHost | None = None,
    host_ttl_seconds: float = 300.0,
    unknown_host_ttl_seconds: float = 30.0,
    max_hosts: int = 1024,
    trusted_hosts: Iterable[str] = (),
    max_body_bytes: int = 1_000_000,
    body_limits: Mapping[str, int] = BODY_LIMITS,
    security_headers: Mapping[str, str] | None = None,
    hsts_seconds: int = 0,
    cors_origins: Iterable[str] = (),
    problems: Mapping[type[Exception], ProblemType] | None = None,
    resolve_roles: ResolveRoles | None = None,
    roles_ttl_seconds: float = 30.0,
) -> None:
    """Set up an app, before it serves its first request.

    `resolve_host(database, host)` returns the tenant of a host name for `HostTenantId` and `HostStore`.
    `trusted_hosts` are the addresses of proxies; X-Forwarded-Host, -Proto and -For count from them only.
    `body_limits` are the limits of some routes, by the ends of their paths.
    `problems` adds problem types for your errors, or replaces those of solotable's errors.
    `resolve_roles(database, principal, tenant)` returns the current roles of the user behind a token.
    """
    if isinstance(cors_origins, str) or isinstance(trusted_hosts, str):
        raise DeclarationError("cors_origins and trusted_hosts take a list of strings, got one string.")
    app.state.auth = auth
    app.state.current_roles = None
    if resolve_roles is not None:
        app.state.current_roles = CurrentRoles(resolve_roles, ttl_seconds=roles_ttl_seconds)
    app.state.hosts = None
    proxies = TrustedProxies(trusted_hosts)
    if resolve_host is not None:
        app.state.hosts = HostTenants(
            resolve_host,
            proxies=proxies,
            ttl_seconds=host_ttl_seconds,
            unknown_ttl_seconds=unknown_host_ttl_seconds,
            max_size=max_hosts,
        )
    settings = MiddlewareSettings(
        max_body_bytes=max_body_bytes,
        body_limits=dict(body_limits),
        hsts_seconds=hsts_seconds,
        proxies=proxies,
        **({} if security_headers is None else {"security_headers": security_headers}),
    )
    app.add_middleware(WebMiddleware, settings=settings)
    origins = list(cors_origins)
    if origins:
        # Outside of WebMiddleware, so that a browser can read its error responses as well.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=_CORS_METHODS,
            allow_headers=_CORS_HEADERS,
            expose_headers=_CORS_EXPOSED,
        )
    _add_exception_handlers(app, dict(problems or {}))
    serve_docs(app)
    document_problems(app)


def _add_exception_handlers(app: FastAPI, more: Mapping[type[Exception], ProblemType]) -> None:
    async def respond(request: Request, error: Exception) -> Response:
        problem_type = problem_type_of(error, conditional="if-match" in request.headers, more=more)
        if problem_type.status >= 500:
            log.error("request %s failed", request.state.request_id, exc_info=error)
        return problem(request, problem_type, detail=detail_of(error, problem_type), **extensions_of(error))

    app.add_exception_handler(SolotableError, respond)
    for each in more:
        app.add_exception_handler(each, respond)
    handlers: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
        RequestValidationError: _respond_invalid,
        ValidationError: _respond_invalid,
        HTTPException: _respond_http,
    }
    for cause, handler in handlers.items():
        app.add_exception_handler(cause, handler)


async def _respond_http(request: Request, error: HTTPException) -> Response:
    problem_type = problem_type_of_status(error.status_code)
    if error.status_code < 200 or error.status_code in (204, 205, 304):
        return Response(status_code=error.status_code, headers=error.headers)
    # FastAPI accepts any JSON value as the detail.
    detail: object = error.detail
    shown = detail if isinstance(detail, str) and detail else None
    return problem(request, problem_type, detail=shown, headers=error.headers)


async def _respond_invalid(request: Request, error: RequestValidationError | ValidationError) -> Response:
    """Say where the input is wrong and why; the input itself is not repeated."""
    errors = [_describe(each) for each in error.errors()[:_MAX_ERRORS]]
    first = errors[0] if errors else None
    detail = "The request is not valid." if first is None else f"{'.'.join(first['where'])}: {first['why']}"
    problem_type = ProblemType(status=422, slug="invalid", title="Invalid data", detail=detail)
    return problem(request, problem_type, errors=errors)


def _describe(error: Mapping[str, Any]) -> dict[str, Any]:
    if error["type"] == "json_invalid":
        # FastAPI gives the offset as a part of the location, and the reason in the context only.
        where, offset = error["loc"]
        return {"where": [where], "why": f"not valid JSON: {error['ctx']['error']} (character {offset})"}
    return {"where": [str(part) for part in error["loc"]], "why": error["msg"]}
