"""Rate limits around a whole application: plain ASGI, for every framework.

    app = RateLimitMiddleware(app, limiter, entity=by_address, consume={"rpm": 1})
    app = RateLimitMiddleware(app, limiter, rules=[RouteRule("/login", resource="login"), ...])

The lease is `scope["state"]["lease"]` (`request.state.lease`) while the application responds; adjustments of
it are written after the response. An exception that leaves the application gives everything back, unless the
client already has a response or has disconnected. A status does so only if it is in `give_back_on`.
Otherwise a client that finds a way to fail would be unlimited.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any

from solotable.systems.limiter.admin.entities import OnUnavailable
from solotable.systems.limiter.buckets.targets import UnknownLimits
from solotable.systems.limiter.errors import LimiterUnavailable
from solotable.systems.limiter.lease import AsyncLease
from solotable.systems.limiter.rate_limiter import AsyncLimiter

from .identity import AsgiScope, Identify, by_address, entity_of
from .limit_responses import (
    LIMIT_ERRORS,
    MEDIA_TYPE,
    HeaderStyle,
    ProblemResponse,
    check_header_style,
    headers_of,
    problem_response,
)
from .route_rules import HEALTH_PATHS, ConsumeOf, ResourceOf, RouteRule, RouteRules

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Any, Any], Awaitable[None]]

log = logging.getLogger("solotable.limiter")


class RateLimitMiddleware:
    """Takes tokens for each HTTP request, or responds with 429, 422, 403 or 503.

    `entity`, `resource` and `consume` may be functions of the ASGI scope; an entity of None is not limited.
    `limiter` may be a function, too, if it is opened later than the middleware is made. `unknown_limits`
    "ignore" admits a client whose limits lack a name of `consume`, without a charge for it.

    `exempt` are paths without limits, and the first of `rules` that matches replaces the values of this
    middleware for its routes. `headers` are those of limits: "ietf" are RateLimit and RateLimit-Policy, "x"
    are X-RateLimit-*.
    """

    def __init__(  # noqa: PLR0913 - each option by name and with a default
        self,
        app: AsgiApp,
        limiter: AsyncLimiter | Callable[[AsgiScope], AsyncLimiter],
        *,
        entity: Identify = by_address,
        resource: ResourceOf = "http",
        consume: ConsumeOf | None = None,
        rules: Iterable[RouteRule] = (),
        exempt: Iterable[str] = HEALTH_PATHS,
        give_back_on: Collection[int] = (),
        on_unavailable: OnUnavailable | None = None,
        unknown_limits: UnknownLimits = "ignore",
        headers: HeaderStyle = "both",
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._entity = entity
        self._resource = resource
        self._consume = {"rpm": 1} if consume is None else consume
        self._rules = RouteRules(rules, exempt)
        self._give_back_on = frozenset(give_back_on)
        self._on_unavailable = on_unavailable
        self._unknown_limits = unknown_limits
        self._headers = check_header_style(headers)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request; other protocols than HTTP pass."""
        rule = self._rules.find(scope) if scope["type"] == "http" else None
        is_limited = scope["type"] == "http" and not (rule is not None and rule.exempt)
        client = await self._client(scope, rule) if is_limited else None
        if client is None:
            await self._app(scope, receive, send)
            return
        monitor = _ResponseMonitor(receive, send, self._acquire(scope, client, rule), self._headers)
        lease = monitor.lease
        charged: BaseException | None = None
        try:
            async with lease:
                scope.setdefault("state", {})["lease"] = lease
                try:
                    await self._app(scope, monitor.receive, monitor.send)
                except BaseException as error:
                    is_refusal = isinstance(error, LIMIT_ERRORS) and not monitor.status
                    if not monitor.is_clients_error or is_refusal:
                        raise
                    charged = error
                if monitor.status in self._give_back_on:
                    lease.release(lease.consumed)
        except LIMIT_ERRORS as error:
            if not monitor.status:
                await _respond(problem_response(error, self._headers), scope, send)
            elif isinstance(error, LimiterUnavailable):
                # The client has the response; what is not settled stays taken.
                log.warning("A request of %s was not settled: %s", client, error)
            else:
                raise
        if charged is not None:
            raise charged

    async def _client(self, scope: AsgiScope, rule: RouteRule | None) -> str | None:
        identify = self._entity if rule is None or rule.entity is None else rule.entity
        found = identify(scope)
        text = await found if inspect.isawaitable(found) else found
        return None if text is None else entity_of(text)

    def _acquire(self, scope: AsgiScope, client: str, rule: RouteRule | None) -> AsyncLease:
        resource = self._resource if rule is None or rule.resource is None else rule.resource
        consume = self._consume if rule is None or rule.consume is None else rule.consume
        limiter = self._limiter if isinstance(self._limiter, AsyncLimiter) else self._limiter(scope)
        return limiter.acquire(
            client,
            resource if isinstance(resource, str) else resource(scope),
            consume if isinstance(consume, Mapping) else consume(scope),
            on_unavailable=self._on_unavailable,
            unknown_limits=self._unknown_limits,
        )


class _ResponseMonitor:
    """Adds headers to the response, and knows its status and whether the client has disconnected."""

    def __init__(self, receive: Receive, send: Send, lease: AsyncLease, headers: HeaderStyle) -> None:
        self._receive = receive
        self._send = send
        self.lease = lease
        self._headers = headers
        #: 0 before the response begins.
        self.status = 0
        self._disconnected = False

    @property
    def is_clients_error(self) -> bool:
        """Whether the client pays for an exception: it has a good response, or has disconnected.

        Frameworks respond with a 500 before they raise the exception again, so a 500 does not count.
        """
        return self._disconnected or 0 < self.status < 500

    async def receive(self) -> Message:
        message = await self._receive()
        self._disconnected = self._disconnected or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = _encode_headers(headers_of(self.lease.statuses, self._headers))
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await self._send(message)


def _encode_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


async def _respond(problem: ProblemResponse, scope: AsgiScope, send: Send) -> None:
    body = problem.body(scope["path"], scope.get("state", {}).get("request_id"))
    headers = {
        **problem.headers,
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "cache-control": "no-store",
    }
    start = {"type": "http.response.start", "status": problem.status, "headers": _encode_headers(headers)}
    await send(start)
    await send({"type": "http.response.body", "body": body})
