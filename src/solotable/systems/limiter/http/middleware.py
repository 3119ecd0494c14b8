"""Rate limits around a whole application: ASGI alone, so that it fits every framework.

    app = RateLimitMiddleware(app, limiter, entity=by_address, consume={"rpm": 1})

The lease is `scope["state"]["lease"]` (`request.state.lease`) while the application answers; what is
adjusted in it is written once the answer is sent. An exception that leaves the application gives everything
back, unless the caller has had an answer by then, or has hung up. A status does so only if it is in
`give_back_on`. Otherwise whoever finds a way to fail is unlimited.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from solotable.systems.limiter.admin.entities import OnUnavailable
from solotable.systems.limiter.admin.limits import Amount
from solotable.systems.limiter.async_rate_limiter import AsyncLimiter
from solotable.systems.limiter.lease import AsyncLease

from .http_errors import LIMIT_ERRORS, MEDIA_TYPE, ProblemResponse, headers_of, problem_response
from .identity import AsgiScope, Identify, by_address, entity_of

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Any, Any], Awaitable[None]]

log = logging.getLogger("solotable.limiter")


class RateLimitMiddleware:
    """Takes tokens for each HTTP request, or answers it with 429, 422 or 503.

    `entity`, `resource` and `consume` may be functions of the ASGI scope; an entity of None is not limited.
    `limiter` may be one as well, where it is opened later than the middleware is made.
    """

    def __init__(
        self,
        app: AsgiApp,
        limiter: AsyncLimiter | Callable[[AsgiScope], AsyncLimiter],
        *,
        entity: Identify = by_address,
        resource: str | Callable[[AsgiScope], str] = "http",
        consume: Mapping[str, Amount] | Callable[[AsgiScope], Mapping[str, Amount]] | None = None,
        give_back_on: Collection[int] = (),
        on_unavailable: OnUnavailable | None = None,
    ) -> None:
        self._app = app
        self._limiter = limiter
        self._entity = entity
        self._resource = resource
        self._consume = {"rpm": 1} if consume is None else consume
        self._give_back_on = frozenset(give_back_on)
        self._on_unavailable = on_unavailable

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request; anything but HTTP passes."""
        caller = await self._caller(scope) if scope["type"] == "http" else None
        if caller is None:
            await self._app(scope, receive, send)
            return
        answer = _ResponseMonitor(receive, send, self._ask(scope, caller))
        lease = answer.lease
        charged: BaseException | None = None
        try:
            async with lease:
                scope.setdefault("state", {})["lease"] = lease
                try:
                    await self._app(scope, answer.receive, answer.send)
                except BaseException as error:
                    if not answer.is_callers or (isinstance(error, LIMIT_ERRORS) and not answer.status):
                        raise
                    charged = error
                if answer.status in self._give_back_on:
                    lease.release(**lease.consumed)
        except LIMIT_ERRORS as error:
            if not answer.status:
                await _refuse(problem_response(error), scope, send)
            elif isinstance(error, LIMIT_ERRORS[-1]):
                # The caller has the answer; what is not settled stays taken.
                log.warning("A request of %s was not settled: %s", caller, error)
            else:
                raise
        if charged is not None:
            raise charged

    async def _caller(self, scope: AsgiScope) -> str | None:
        found = self._entity(scope)
        text = await found if inspect.isawaitable(found) else found
        return None if text is None else entity_of(text)

    def _ask(self, scope: AsgiScope, caller: str) -> AsyncLease:
        limiter = self._limiter if isinstance(self._limiter, AsyncLimiter) else self._limiter(scope)
        return limiter.acquire(
            caller,
            self._resource if isinstance(self._resource, str) else self._resource(scope),
            self._consume if isinstance(self._consume, Mapping) else self._consume(scope),
            on_unavailable=self._on_unavailable,
        )


class _ResponseMonitor:
    """How far the answer to a request is, and whether its caller is still there."""

    def __init__(self, receive: Receive, send: Send, lease: AsyncLease) -> None:
        self._receive = receive
        self._send = send
        self.lease = lease
        #: 0: it has not begun.
        self.status = 0
        self._hung_up = False

    @property
    def is_callers(self) -> bool:
        """Whether an error is the caller's own: behind a good answer, or where nobody waits for one.

        Frameworks answer an error with a 500 before they pass it on, so that is no good answer.
        """
        return self._hung_up or 0 < self.status < 500

    async def receive(self) -> Message:
        message = await self._receive()
        self._hung_up = self._hung_up or message["type"] == "http.disconnect"
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": [*message.get("headers", ()), *_raw(self.lease)]}
        await self._send(message)


def _raw(lease: AsyncLease) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers_of(lease.statuses).items()]


async def _refuse(refusal: ProblemResponse, scope: AsgiScope, send: Send) -> None:
    body = refusal.body(scope["path"], scope.get("state", {}).get("request_id"))
    headers = {
        **refusal.headers,
        "content-type": MEDIA_TYPE,
        "content-length": str(len(body)),
        "cache-control": "no-store",
    }
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
