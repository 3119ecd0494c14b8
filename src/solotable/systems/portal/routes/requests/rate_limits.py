"""Rate limits of users: reads, writes and telemetry in 15 minutes, and attempts to sign in."""

from __future__ import annotations

from typing import Literal

from fastapi import Request, Response

from solotable.systems.http.rate_limits import take
from solotable.systems.limiter import Limit
from solotable.systems.limiter.http.identity import by_address

NAMESPACE = "portal"
PERIOD_SECONDS = 15 * 60

LimitName = Literal["reads", "writes", "telemetry", "forms", "sign_ins", "sign_in_totals"]


def limit(name: LimitName, count: int) -> Limit:
    """Return a limit of so many requests in 15 minutes, for `create_app(limits=...)`."""
    return Limit(name, count, count, PERIOD_SECONDS)


#: Of each user. `forms` are the forms of pages, where marking a message as read is a form too. `sign_ins` are
#: of one account from one address, `sign_in_totals` of each account and of each address.
USER_LIMITS: tuple[Limit, ...] = (
    limit("reads", 100),
    limit("writes", 20),
    limit("telemetry", 200),
    limit("forms", 120),
    limit("sign_ins", 20),
    limit("sign_in_totals", 200),
)


async def take_sign_in(request: Request, account: str) -> None:
    """Take a token for an attempt to sign in: of the account from the address, then of each of both.

    A client that guesses ends at its first limit, and locks neither the user out nor others at its address.
    """
    address = by_address(request.scope)
    await take(request, "sign_ins", f"{address}:account:{account}")
    await take(request, "sign_in_totals", address)
    await take(request, "sign_in_totals", f"account:{account}")


async def take_for_user(request: Request, response: Response, name: LimitName, user_id: str) -> None:
    """Take a token of a user, and tell the client what is left."""
    response.headers.update(await take(request, name, f"user:{user_id}"))
