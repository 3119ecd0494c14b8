"""Who may call a route: roles of a tenant, and roles of one survey. The OpenAPI document repeats both.

GLOBAL_ADMIN > TENANT_ADMIN > MEMBER are roles of a credential (`x-roles`). owner > editor > viewer are roles
of a user in one survey (`x-survey-role`), stored as its `Access`. Administrators of the tenant have every
survey's. A survey that a user may not see is a 404, as one that does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Request

from solotable import AsyncStore
from solotable.errors import (
    MappingRejected,
    MigrationConflict,
    MigrationError,
    MigrationNotReady,
    SwitchTimedOut,
)
from solotable.systems.routes import Id, allow
from solotable.systems.surveys.entities.access import RANKS, SurveyRole
from solotable.systems.surveys.entities.surveys import SurveyMeta
from solotable.systems.surveys.errors import InUse, ParentGone
from solotable.systems.surveys.services.survey.surveys import Surveys
from solotable.web import Principal, ProblemType
from solotable.web.auth.dependencies import TENANT, CredentialDependency

from .dependencies import active_store_of

GLOBAL_ADMINS = ("GLOBAL_ADMIN",)
ADMINS = ("TENANT_ADMIN", *GLOBAL_ADMINS)
MEMBERS = ("MEMBER", *ADMINS)

#: For `install(problems=...)`.
PROBLEMS: dict[type[Exception], ProblemType] = {
    InUse: ProblemType(
        status=409, slug="in-use", title="In use", detail="Something refers to it.", show_message=True
    ),
    ParentGone: ProblemType(
        status=409,
        slug="parent-gone",
        title="Parent gone",
        detail="What it belongs to does not exist.",
        show_message=True,
    ),
    **dict.fromkeys(
        (MigrationError, MappingRejected, MigrationConflict, MigrationNotReady, SwitchTimedOut),
        ProblemType(
            status=409,
            slug="migration",
            title="Migration not ready",
            detail="The migration cannot do this now.",
            show_message=True,
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class OpenSurvey:
    """A survey that the caller may use, and the store of its tenant."""

    store: AsyncStore
    survey_id: str
    role: SurveyRole
    user_id: str


def survey_role(least: SurveyRole) -> Any:
    """Return the dependency of a route that needs a role in the survey of its path."""

    async def open_survey(request: Request, principal: Principal) -> OpenSurvey:
        store = await active_store_of(request, principal)
        survey_id = request.path_params["survey_id"]
        role: SurveyRole | None
        if principal.roles.intersection(ADMINS):
            # Without this, the parts of a deleted survey could be read and changed until a purge.
            role = "owner" if await store.get(SurveyMeta, survey_id=survey_id) is not None else None
        else:
            role = await Surveys(store).role_of(principal.id, survey_id)
        if role is None:
            raise HTTPException(404, "The survey does not exist.")
        if RANKS[role] < RANKS[least]:
            raise HTTPException(403, f"This needs the role {least} in the survey.")
        return OpenSurvey(store, survey_id, role, principal.id)

    return CredentialDependency(TENANT, open_survey)


Viewed = Annotated[OpenSurvey, Depends(survey_role("viewer"))]
Edited = Annotated[OpenSurvey, Depends(survey_role("editor"))]
Owned = Annotated[OpenSurvey, Depends(survey_role("owner"))]


def in_survey(least: SurveyRole, **extra: Any) -> dict[str, Any]:
    """Return the arguments for a route of a survey: `@router.get("/{survey_id}", **in_survey("viewer"))`."""
    return allow(*MEMBERS, **{"x-survey-role": least, **extra})


SurveyId = Id
