"""Who may ask for what: the roles of each route, said once and kept in the OpenAPI document as `x-roles`.

GLOBAL_ADMIN > TENANT_ADMIN > EDITOR. RENDERER is a machine that reads every tenant, CUSTOMER a person
who reads what was sold to them. A route without `allow` or `PUBLIC` is found by the tests.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends

from solotable.systems.cms.services import Forbidden
from solotable.web import Kind, requires

from .rate_limits import Sending

GLOBAL = ("GLOBAL_ADMIN",)
ADMINS = ("TENANT_ADMIN", *GLOBAL)
EDITORS = ("EDITOR", *ADMINS)
READERS = ("RENDERER", *EDITORS)
EVERYBODY = ("CUSTOMER", *READERS)

#: For `install(problems=...)`.
FORBIDDEN: dict[type[Exception], Kind] = {
    Forbidden: Kind(
        status=403, slug="forbidden", title="Forbidden", detail="The role does not allow this.", tell=True
    )
}

#: `**PUBLIC`: without a credential; the tenant is the one whose host name was asked.
PUBLIC: dict[str, Any] = {"openapi_extra": {"x-roles": [], "security": []}}


def form(name: str) -> dict[str, Any]:
    """Return what the route of a visitor's form needs: sent from a page of the site, and not too often."""
    responses = {code: {"$ref": f"#/components/responses/Problem{code}"} for code in ("403", "429")}
    return {
        "dependencies": [Depends(Sending(name))],
        "openapi_extra": {**PUBLIC["openapi_extra"], "responses": responses},
    }


def allow(*roles: str, **extra: Any) -> dict[str, Any]:
    """Return what a route's decorator needs: `@router.get("/content", **allow(*EDITORS))`."""
    return {
        "dependencies": [Depends(requires(*roles))],
        "openapi_extra": {"x-roles": sorted(roles), **extra},
    }
