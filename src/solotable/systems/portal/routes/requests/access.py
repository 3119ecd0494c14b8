"""Who may call a route: the role that the directory gives the user of the credential now.

Viewer < Contributor < Approver < Admin. The OpenAPI document repeats the roles as `x-roles`. A credential
never carries a role: each request reads the user, so a disabled user or a lost role counts at once.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from fastapi import Depends, HTTPException, Request, Response

from solotable.systems.portal.errors import Forbidden, IllegalTransition, TooMany
from solotable.systems.portal.identity.directory import Directory, OwnAccount
from solotable.systems.portal.roles import ROLES, Caller, Role
from solotable.systems.portal.search.port import SearchUnavailable
from solotable.systems.signed_folder import SignatureRejected
from solotable.web import Principal, ProblemType
from solotable.web.auth.dependencies import CREDENTIAL, CredentialDependency

from .rate_limits import LimitName, take_for_user

#: For `install(problems=...)`.
PROBLEMS: dict[type[Exception], ProblemType] = {
    Forbidden: ProblemType(
        status=403,
        slug="forbidden",
        title="Forbidden",
        detail="The role does not allow this.",
        show_message=True,
    ),
    IllegalTransition: ProblemType(
        status=409,
        slug="illegal-transition",
        title="The status does not allow this",
        detail="The status of the content does not allow this change.",
        show_message=True,
    ),
    TooMany: ProblemType(
        status=409, slug="too-many", title="Too many", detail="There are too many.", show_message=True
    ),
    SearchUnavailable: ProblemType(
        status=503,
        slug="search-unavailable",
        title="Search unavailable",
        detail="The search index is not ready; try again in a minute.",
        retry_after_seconds=5,
    ),
    SignatureRejected: ProblemType(
        status=403,
        slug="signature-rejected",
        title="Signature rejected",
        detail="The URL is not valid, or has expired.",
    ),
    OwnAccount: ProblemType(
        status=409,
        slug="own-account",
        title="Your own account",
        detail="You cannot change your own role or access.",
        show_message=True,
    ),
}


def from_role(least: Role) -> tuple[Role, ...]:
    """Return a role and the roles above it.

    >>> from_role("Approver")
    ('Approver', 'Admin')
    """
    return ROLES[ROLES.index(least) :]


def directory_of(request: Request) -> Directory:
    """Return the app's directory of users."""
    return cast(Directory, request.app.state.directory)


async def caller_of(request: Request, principal: Principal) -> Caller:
    """Return the user of a credential with their current role; 403 for a disabled or unknown user."""
    state = request.scope["state"]
    known: Caller | None = state.get("caller")
    if known is None:
        profile = await directory_of(request).get(principal.id)
        if profile is None or not profile.enabled:
            raise HTTPException(403, "The user of this credential has no access.")
        known = state["caller"] = profile.caller()
    return known


class RoleDependency(CredentialDependency[Caller]):
    """Requires a role, and takes a token of the user's rate limit."""

    def __init__(self, least: Role, limit: LimitName) -> None:
        async def check(request: Request, principal: Principal) -> Caller:
            """Return the caller when they have the role; otherwise 403."""
            caller = await caller_of(request, principal)
            caller.require(least)
            return caller

        super().__init__(CREDENTIAL, check)
        self._limit: LimitName = limit

    async def __call__(self, request: Request, response: Response) -> Caller:  # type: ignore[override]
        # FastAPI passes the response, whose headers it adds to the route's.
        """Return the caller of one request."""
        caller = await super().__call__(request)
        await take_for_user(request, response, self._limit, caller.user_id)
        return caller


def allow_from(least: Role, limit: LimitName = "reads", **extra: Any) -> dict[str, Any]:
    """Return the arguments for a route: `@router.get("/content", **allow_from("Viewer"))`."""
    return {
        "dependencies": [Depends(RoleDependency(least, limit))],
        "openapi_extra": {"x-roles": sorted(from_role(least)), "x-rate-limit": limit, **extra},
    }


#: The user of the credential.
CurrentCaller = Annotated[Caller, Depends(CredentialDependency(CREDENTIAL, caller_of))]
