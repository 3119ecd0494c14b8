"""Rate limits of an app's routes: tokens from the limiter in `app.state.limiter`.

While the limiter is unavailable, requests are accepted: the limits protect the app from one busy client, and
the credential protects the data.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from solotable.systems.limiter import AsyncLimiter, LimitStatus
from solotable.systems.limiter.http.identity import entity_of
from solotable.systems.limiter.http.limit_responses import headers_of

RESOURCE = "api"


async def take(request: Request, name: str, subject: str) -> dict[str, str]:
    """Take a token of a subject, or raise RateLimitExceeded; return the headers of the request's limits."""
    async with taken(request, name, subject) as headers:
        return headers


@asynccontextmanager
async def taken(request: Request, name: str, subject: str) -> AsyncIterator[dict[str, str]]:
    """Take a token for as long as a block lasts, and give it back if the block raises an error.

    It provides the headers of all limits that the request took from.
    """
    limiter = cast(AsyncLimiter | None, request.app.state.limiter)
    if limiter is None:
        yield {}
        return
    # Addresses and ids have characters that names of entities do not have.
    entity = entity_of(subject)
    lease = limiter.acquire(entity, RESOURCE, {name: 1}, on_unavailable="allow", unknown_limits="ignore")
    async with lease:
        statuses: list[LimitStatus] = request.scope["state"].setdefault("limits", [])
        statuses += [each for each in lease.statuses if each.limit.name == name]
        yield headers_of(statuses)


class LimitHeaders:
    """Middleware inside of `install`'s: adds the headers of limits to every response, errors too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""

        async def send_with_headers(message: Message) -> None:
            statuses = scope["state"].get("limits") if message["type"] == "http.response.start" else None
            if statuses:
                known = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in headers_of(statuses).items()]
                headers = [*message["headers"], *(each for each in added if each[0] not in known)]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
