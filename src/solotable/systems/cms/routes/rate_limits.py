"""Rate limits of visitors' forms: by network address, and by the e-mail address in the form.

The limiter knows a visitor by a digest that differs for each tenant. While the limiter is unavailable, forms
are accepted: a lost message is worse than one too many.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Response

from solotable.systems.formats.email_addresses import digest, pseudonym
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.identity import by_address
from solotable.systems.limiter.http.limit_responses import headers_of
from solotable.web import HostTenantId

from .dependencies import Pepper

NAMESPACE = "cms-visitors"
RESOURCE = "forms"

#: Requests per form from one network address, and per e-mail address (`mails`).
VISITOR_LIMITS = (
    Limit.per_hour("leads", 30),
    Limit.per_hour("contact", 30),
    Limit.per_hour("consent", 300),
    Limit.per_hour("mails", 5),
)


async def get_limiter(request: Request) -> AsyncLimiter | None:
    """Return the app's limiter; None without one."""
    return cast(AsyncLimiter | None, request.app.state.limiter)


LimiterDep = Annotated[AsyncLimiter | None, Depends(get_limiter)]


class FormLimit:
    """The rate limit of one form by network address: `Depends(FormLimit("contact"))`."""

    def __init__(self, form: str) -> None:
        self._form = form

    async def __call__(
        self, request: Request, response: Response, owner: HostTenantId, limiter: LimiterDep, pepper: Pepper
    ) -> None:
        """Take a token, or answer with 429."""
        if limiter is not None:
            visitor = digest(owner, by_address(request.scope), pepper)
            await _acquire(limiter, f"ip:{visitor}", self._form, response)


class SenderLimit:
    """The rate limit of forms by the e-mail address in them."""

    def __init__(self, response: Response, owner: HostTenantId, limiter: LimiterDep, pepper: Pepper) -> None:
        self._response = response
        self._owner = owner
        self._limiter = limiter
        self._pepper = pepper

    async def acquire(self, email: str) -> None:
        """Take a token, or answer with 429."""
        if self._limiter is not None:
            sender = pseudonym(self._owner, email, self._pepper)
            await _acquire(self._limiter, f"mail:{sender}", "mails", self._response)


async def _acquire(limiter: AsyncLimiter, entity: str, limit: str, response: Response) -> None:
    async with limiter.acquire(entity, RESOURCE, {limit: 1}, on_unavailable="allow") as lease:
        response.headers.update(headers_of(each for each in lease.statuses if each.limit.name == limit))
