"""Who may call a route: any client, a user with a session, or an operator with a key.

Roles in a neighbourhood and the owner of a site are data: the services check them. The OpenAPI document has
what a route needs as `x-roles`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

from fastapi import Depends, HTTPException, Request

from solotable.systems.community.entities.users import User
from solotable.systems.community.identity.sessions import Sessions
from solotable.systems.community.roles import VISITOR, Caller
from solotable.systems.http.rate_limits import take
from solotable.web import Principal, authenticate
from solotable.web.auth.auth import unauthorized
from solotable.web.auth.dependencies import CREDENTIAL, CredentialDependency

from .rate_limits import user_subject

OPERATOR = "operator"
#: Who a route is for. `admin`, `creator` and `owner` are users whose role the service checks.
Access = Literal["user", "leaving", "member", "admin", "creator", "owner", "operator"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client of a request: the caller of services, and the session of a user."""

    caller: Caller
    session_id: str = ""
    #: None for an operator, for a visitor, and for a user who deleted their account.
    user: User | None = None


def sessions_of(request: Request) -> Sessions:
    """Return the app's sessions."""
    return cast(Sessions, request.app.state.sessions)


async def find_client(request: Request, principal: Principal) -> Client:
    """Return the client of a verified credential; 401 for a session that ended."""
    state = request.scope["state"]
    known: Client | None = state.get("client")
    if known is not None:
        return known
    if principal.kind == "api-key":
        if not principal.has(OPERATOR):
            raise HTTPException(403, "This key has no access to the community.")
        found = Client(caller=Caller(is_operator=True))
    else:
        token = request.headers["authorization"].partition(" ")[2].strip()
        session = await sessions_of(request).find(principal, token)
        if session is None:
            raise unauthorized("The session has ended; log in again.")
        await take(request, "user", user_subject(session.did))
        found = Client(caller=Caller(did=session.did), session_id=session.session_id, user=session.user)
    state["client"] = found
    return found


async def find_visitor(request: Request) -> Client:
    """Return the client of a public route. A wrong credential is a 401 there too."""
    principal = await authenticate(request)
    return Client(caller=VISITOR) if principal.kind == "anonymous" else await find_client(request, principal)


def _check(access: Access) -> Callable[[Request, Principal], Awaitable[Client]]:
    async def check(request: Request, principal: Principal) -> Client:
        """Return the client if the route is for them."""
        client = await find_client(request, principal)
        if access == OPERATOR:
            if not client.caller.is_operator:
                raise HTTPException(403, "This needs the key of an operator.")
        elif client.caller.is_operator:
            raise HTTPException(403, "This needs an account; the key of an operator has none.")
        elif client.user is None and access != "leaving":
            raise HTTPException(403, "Your account was deleted. Recover it first.")
        return client

    return check


def allow(access: Access, **extra: Any) -> dict[str, Any]:
    """Return the arguments for a route: `@router.post("", **allow("user"))`."""
    return {
        "dependencies": [Depends(CredentialDependency(CREDENTIAL, _check(access)))],
        "openapi_extra": {"x-roles": [access], **extra},
    }


#: The client of a route that `allow` protects.
CurrentClient = Annotated[Client, Depends(CredentialDependency(CREDENTIAL, find_client))]
#: The client of a public route.
VisitingClient = Annotated[Client, Depends(find_visitor)]
