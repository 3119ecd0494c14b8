"""The roles of each route, declared once and repeated in the OpenAPI document as `x-roles`.

GLOBAL_ADMIN > TENANT_ADMIN > EDITOR. RENDERER is a program that reads every tenant. CUSTOMER is a user who
reads what was sold to them. A test finds routes without `allow`, `form_route` or `PUBLIC`.
"""

from __future__ import annotations

from typing import Any

from fastapi import Depends

from solotable.systems.cms.errors import SlugTaken
from solotable.systems.cms.services import Forbidden
from solotable.systems.routes import PUBLIC
from solotable.web import ProblemType

from .rate_limits import FormLimit

GLOBAL_ADMINS = ("GLOBAL_ADMIN",)
ADMINS = ("TENANT_ADMIN", *GLOBAL_ADMINS)
EDITORS = ("EDITOR", *ADMINS)
READERS = ("RENDERER", *EDITORS)
ALL_ROLES = ("CUSTOMER", *READERS)

#: For `install(problems=...)`.
PROBLEMS: dict[type[Exception], ProblemType] = {
    Forbidden: ProblemType(
        status=403,
        slug="forbidden",
        title="Forbidden",
        detail="The role does not allow this.",
        show_message=True,
    ),
    SlugTaken: ProblemType(
        status=409,
        slug="already-exists",
        title="Already exists",
        detail="Another item has this slug.",
        show_message=True,
    ),
}


def form_route(name: str) -> dict[str, Any]:
    """Return the arguments for the route of a visitor's form, which has a rate limit."""
    responses = {code: {"$ref": f"#/components/responses/Problem{code}"} for code in ("403", "429")}
    return {
        "dependencies": [Depends(FormLimit(name))],
        "openapi_extra": {**PUBLIC["openapi_extra"], "responses": responses},
    }
