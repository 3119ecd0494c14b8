"""Route dependencies for credentials: the principal of a request, and the roles that a route requires.

FastAPI spends about 20 microseconds on each dependency of a request, as much as a small read takes. So
one `CredentialDependency` authenticates, checks and answers. It marks the operation in the OpenAPI
document; `http.openapi` replaces the marker by the credentials and the x-tenant-id header.
"""

# Without postponed annotations: older FastAPIs cannot resolve those of an object's `__call__`.

from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Generic, TypeVar

from fastapi import Depends, HTTPException, Request
from fastapi.openapi.models import APIKey, APIKeyIn
from fastapi.security.base import SecurityBase

from solotable.web.lifespan import get_database

from .auth import Auth, unauthorized
from .current_roles import CurrentRoles
from .principal import ANONYMOUS, Principal

T = TypeVar("T")

#: OpenAPI markers of operations that need a credential, and a credential with a tenant.
CREDENTIAL: Final = "SolotableCredential"
TENANT: Final = "SolotableTenant"


async def authenticate(request: Request) -> Principal:
    """Return the principal of a request, ANONYMOUS without a credential; 401 for a wrong credential."""
    state = request.scope["state"]
    known: Principal | None = state.get("principal")
    if known is not None:
        return known
    auth: Auth | None = request.app.state.auth
    principal = ANONYMOUS if auth is None else await auth.principal(request)
    roles: CurrentRoles | None = request.app.state.current_roles
    if roles is not None and principal.kind == "jwt":
        given = tenant_headers(request)
        requested = given[0] if len(given) == 1 else None
        principal = await roles.apply(get_database(request), principal, requested)
    state["principal"] = principal
    return principal


def tenant_headers(request: Request) -> list[str]:
    """Return the values of x-tenant-id."""
    return [value.decode("latin-1") for name, value in request.scope["headers"] if name == b"x-tenant-id"]


class CredentialDependency(SecurityBase, Generic[T]):
    """A dependency that needs a credential: it calls `answer` with the request and its principal."""

    def __init__(self, marker: str, answer: Callable[[Request, Principal], Awaitable[T]]) -> None:
        self.model = APIKey.model_validate({"in": APIKeyIn.header, "name": "x-api-key"})
        self.scheme_name = marker
        self.__doc__ = answer.__doc__
        self._answer = answer

    async def __call__(self, request: Request) -> T:
        """Return the answer for one request; 401 without a credential."""
        # A request has several of these dependencies; the first one authenticates.
        principal = request.scope["state"].get("principal") or await authenticate(request)
        if principal.kind == "anonymous":
            raise unauthorized("Send a credential: x-api-key, or Authorization: Bearer.")
        return await self._answer(request, principal)


async def _current_principal(_: Request, principal: Principal) -> Principal:
    """Return the principal of the request; 401 without a credential."""
    return principal


def requires(*roles: str) -> CredentialDependency[Principal]:
    """Return a dependency that requires one of these roles: `Depends(requires("EDITOR"))`."""
    if not roles:
        raise TypeError("requires() needs a role; for any credential use `principal: CurrentPrincipal`.")

    async def check_roles(_: Request, principal: Principal) -> Principal:
        """Return the principal when it has one of the roles; otherwise 403."""
        if not principal.has(*roles):
            raise HTTPException(403, f"This needs the role {' or '.join(roles)}.")
        return principal

    return CredentialDependency(CREDENTIAL, check_roles)


#: The principal of the credential; 401 without one.
CurrentPrincipal = Annotated[Principal, Depends(CredentialDependency(CREDENTIAL, _current_principal))]
#: The principal of the credential, or ANONYMOUS without one.
OptionalPrincipal = Annotated[Principal, Depends(authenticate)]
