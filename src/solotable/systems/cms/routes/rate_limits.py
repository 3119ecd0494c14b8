"""How much visitors may send: by the address that they come from, and by the one that they write in a form.

Whoever comes is known to the limiter by a digest, which differs from tenant to tenant. When the limiter
cannot be asked, a form is taken: a lost message is worse than one too many.
"""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request, Response

from solotable.systems.cms.formats.email_addresses import digest, pseudonym
from solotable.systems.limiter import AsyncLimiter, Limit
from solotable.systems.limiter.http.http_errors import headers_of
from solotable.systems.limiter.http.identity import by_address
from solotable.web import host_tenant

from .dependencies import pepper

NAMESPACE = "cms-visitors"
RESOURCE = "forms"

#: What may be sent from one address of the network, by form, and as one person (`mails`).
VISITOR_LIMITS = (
    Limit.per_hour("leads", 30),
    Limit.per_hour("contact", 30),
    Limit.per_hour("consent", 300),
    Limit.per_hour("mails", 5),
)


async def limiter(request: Request) -> AsyncLimiter | None:
    """Return the limiter of the app; None where it has none."""
    return cast(AsyncLimiter | None, request.app.state.limiter)


class Sending:
    """Counts what a visitor sends by one form: `Depends(Sending("contact"))`."""

    def __init__(self, form: str) -> None:
        self._form = form

    async def __call__(
        self,
        request: Request,
        response: Response,
        owner: Annotated[str, Depends(host_tenant)],
        limits: Annotated[AsyncLimiter | None, Depends(limiter)],
        mixed: Annotated[bytes, Depends(pepper)],
    ) -> None:
        """Take it, or answer with 429."""
        if limits is not None:
            visitor = digest(owner, by_address(request.scope), mixed)
            await _count(limits, f"ip:{visitor}", self._form, response)


class Mails:
    """Counts what is sent in the name of one e-mail address."""

    def __init__(
        self,
        response: Response,
        owner: Annotated[str, Depends(host_tenant)],
        limits: Annotated[AsyncLimiter | None, Depends(limiter)],
        mixed: Annotated[bytes, Depends(pepper)],
    ) -> None:
        self._response = response
        self._owner = owner
        self._limits = limits
        self._pepper = mixed

    async def count(self, email: str) -> None:
        """Take it, or answer with 429."""
        if self._limits is not None:
            sender = pseudonym(self._owner, email, self._pepper)
            await _count(self._limits, f"mail:{sender}", "mails", self._response)


async def _count(limits: AsyncLimiter, entity: str, limit: str, response: Response) -> None:
    async with limits.acquire(entity, RESOURCE, {limit: 1}, on_unavailable="allow") as lease:
        response.headers.update(headers_of(each for each in lease.statuses if each.limit.name == limit))
