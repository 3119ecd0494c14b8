"""Rate limits (2b), each in a sliding window: of addresses, of users, and of what is scarce."""

from __future__ import annotations

from typing import Literal

from fastapi import Request

from solotable.systems.http.rate_limits import take
from solotable.systems.limiter import Limit
from solotable.systems.limiter.http.identity import by_address

NAMESPACE = "community"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400

LimitName = Literal["address", "user", "neighbourhoods", "builds", "profile_updates", "logins"]
PERIODS: dict[LimitName, int] = {
    "address": _MINUTE,
    "user": _HOUR,
    "neighbourhoods": _DAY,
    "builds": _HOUR,
    "profile_updates": _HOUR,
    "logins": _HOUR,
}


def limit(name: LimitName, count: int) -> Limit:
    """Return a limit for `CommunitySettings(limits=...)`."""
    return Limit.sliding_window(name, count, PERIODS[name])


#: `logins` are attempts to log in from one address.
LIMITS: tuple[Limit, ...] = (
    limit("address", 100),
    limit("user", 1000),
    limit("neighbourhoods", 5),
    limit("builds", 10),
    limit("profile_updates", 20),
    limit("logins", 60),
)


async def limit_address(request: Request) -> None:
    """Take a token of the client's address; every route of the API does."""
    await take(request, "address", by_address(request.scope))


async def limit_logins(request: Request) -> None:
    """Take a token for an attempt to log in."""
    await take(request, "logins", f"login:{by_address(request.scope)}")


def user_subject(did: str) -> str:
    """Return the subject of a user's limits."""
    return f"user:{did}"
