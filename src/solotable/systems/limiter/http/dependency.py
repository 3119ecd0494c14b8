"""Rate limits of single FastAPI routes: `lease: Annotated[AsyncLease, Depends(rate_limited(...))]`.

Tokens are taken before the route runs and settled after it. An error of the application gives everything
back. An error of the client (an HTTPException or a solotable error below 500, or a disconnect) does not, or
requests for what does not exist would be free.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from fastapi import FastAPI, HTTPException, Request, Response
from starlette.requests import ClientDisconnect

from solotable.errors import SolotableError
from solotable.systems.limiter.admin.entities import OnUnavailable
from solotable.systems.limiter.admin.limits import Amount
from solotable.systems.limiter.buckets.targets import UnknownLimits
from solotable.systems.limiter.lease import AsyncLease
from solotable.systems.limiter.rate_limiter import AsyncLimiter
from solotable.web import authenticate
from solotable.web.http.problems import problem_type_of

from .identity import by_address, entity_of
from .limit_responses import (
    LIMIT_ERRORS,
    MEDIA_TYPE,
    HeaderStyle,
    check_header_style,
    headers_of,
    problem_response,
)

Dependency = Callable[[Request, Response], AsyncIterator[AsyncLease]]
#: Prefixes of names that are not a principal's.
_PREFIXES = ("id:", "ip:", "key:")


async def by_principal(request: Request) -> str:
    """Identify a client by the principal of its verified credential; without one by its address."""
    principal = await authenticate(request)
    if principal.kind == "anonymous":
        return by_address(request.scope)
    return f"id:{principal.id}" if principal.id.startswith(_PREFIXES) else principal.id


def rate_limited(
    limiter: AsyncLimiter | Callable[[Request], AsyncLimiter | Awaitable[AsyncLimiter]],
    *,
    entity: Callable[[Request], str | Awaitable[str]] = by_principal,
    resource: str | Callable[[Request], str] = "http",
    consume: Mapping[str, Amount] | Callable[[Request], Mapping[str, Amount]] | None = None,
    on_unavailable: OnUnavailable | None = None,
    unknown_limits: UnknownLimits = "ignore",
    headers: HeaderStyle = "both",
) -> Dependency:
    """Return a dependency that takes tokens for a route and provides the lease.

    Call `limit_problems(app)` once, so that the app responds to refusals. `unknown_limits` "ignore" admits a
    client whose limits lack a name of `consume`, without a charge for it. `headers` are those of limits.
    """
    check_header_style(headers)
    wanted = {"rpm": 1} if consume is None else consume

    async def limited(request: Request, response: Response) -> AsyncIterator[AsyncLease]:
        """Take tokens, or respond with 429, 422, 403 or 503."""
        found = limiter if isinstance(limiter, AsyncLimiter) else limiter(request)
        name = entity(request)
        lease = (await found if inspect.isawaitable(found) else found).acquire(
            entity_of(await name if inspect.isawaitable(name) else name),
            resource if isinstance(resource, str) else resource(request),
            wanted if isinstance(wanted, Mapping) else wanted(request),
            on_unavailable=on_unavailable,
            unknown_limits=unknown_limits,
        )
        clients_error: Exception | None = None
        async with lease:
            response.headers.update(headers_of(lease.statuses, headers))
            try:
                yield lease
            except (HTTPException, SolotableError, ClientDisconnect) as error:
                if not isinstance(error, ClientDisconnect) and _status(error) >= 500:
                    raise
                clients_error = error
        if clients_error is not None:
            raise clients_error

    return limited


def limit_problems(app: FastAPI, *, headers: HeaderStyle = "both") -> None:
    """Let an app respond to the limiter's errors as problems, with the headers of limits."""
    check_header_style(headers)

    async def respond(request: Request, error: Exception) -> Response:
        problem = problem_response(error, headers)
        body = problem.body(request.url.path, request.scope.get("state", {}).get("request_id"))
        return Response(body, problem.status, problem.headers, MEDIA_TYPE)

    for each in LIMIT_ERRORS:
        app.add_exception_handler(each, respond)


def _status(error: HTTPException | SolotableError) -> int:
    if isinstance(error, HTTPException):
        return error.status_code
    return (
        problem_response(error).status if isinstance(error, LIMIT_ERRORS) else problem_type_of(error).status
    )
