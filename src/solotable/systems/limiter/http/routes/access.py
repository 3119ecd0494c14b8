"""Who may ask for what: the roles of each route, kept in the OpenAPI document as `x-roles`.

GLOBAL_OPERATOR > OPERATOR > APP. An application takes tokens and looks how many there are; an operator of a
namespace sets its limits; a global one makes and removes namespaces. The tests find a route without.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends

from solotable.errors import DataError
from solotable.systems.limiter.errors import LeaseExpired, NoLimits
from solotable.web import ProblemType, requires

GLOBAL = ("GLOBAL_OPERATOR",)
OPERATORS = ("OPERATOR", *GLOBAL)
APPS = ("APP", *OPERATORS)

#: For `install(problems=...)`.
PROBLEMS: dict[type[Exception], ProblemType] = {
    LeaseExpired: ProblemType(
        status=409,
        slug="lease-ended",
        title="Lease ended",
        detail="The lease has ended; acquire another one.",
    ),
    NoLimits: ProblemType(
        status=422, slug="no-limits", title="No limits", detail="No limits are set here.", show_message=True
    ),
    # What is refused here are names and amounts that the caller sent, nothing of anybody else's.
    DataError: ProblemType(
        status=422,
        slug="invalid",
        title="Invalid data",
        detail="This cannot be taken as it is.",
        show_message=True,
    ),
}

#: `**PUBLIC`: without a credential.
PUBLIC: dict[str, Any] = {"openapi_extra": {"x-roles": [], "security": []}}


def allow(*roles: str) -> dict[str, Any]:
    """Return what a route's decorator needs: `@router.post("/acquire", **allow(*APPS))`."""
    return {"dependencies": [Depends(requires(*roles))], "openapi_extra": {"x-roles": sorted(roles)}}
