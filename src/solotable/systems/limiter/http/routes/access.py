"""The roles of each route, in the OpenAPI document as `x-roles`.

GLOBAL_OPERATOR > OPERATOR > APP. An application takes tokens and reads how many there are; an operator of a
namespace sets its limits; a global one creates and removes namespaces. Tests find a route without roles.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends

from solotable.errors import DataError
from solotable.systems.limiter.errors import LeaseExpired, NoLimits, TopUpInProgress
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
    TopUpInProgress: ProblemType(
        status=409,
        slug="top-up-in-progress",
        title="Top-up in progress",
        detail="Another top-up with this key is in progress; repeat it in a minute.",
    ),
    NoLimits: ProblemType(
        status=422, slug="no-limits", title="No limits", detail="No limits are set here.", show_message=True
    ),
    # Only names and amounts that the client sent are in these messages.
    DataError: ProblemType(
        status=422,
        slug="invalid",
        title="Invalid data",
        detail="The request is not valid.",
        show_message=True,
    ),
}

#: `**PUBLIC`: a route without a credential.
PUBLIC: dict[str, Any] = {"openapi_extra": {"x-roles": [], "security": []}}


def allow(*roles: str) -> dict[str, Any]:
    """Return arguments of a route's decorator: `@router.post("/acquire", **allow(*APPS))`."""
    return {"dependencies": [Depends(requires(*roles))], "openapi_extra": {"x-roles": sorted(roles)}}
