"""Who sees and changes what offline: the spaces of a user, and the role that a mutator requires.

A user sees the surveys that it has a role in, and the phrases of the tenant. An administrator without a role
in a survey uses the routes, not the sync: a copy on a device is for those who work on the survey.
"""

from __future__ import annotations

from collections.abc import Iterator

from solotable import AsyncStore, Store
from solotable.sync import MutationContext, Rejected
from solotable.systems.surveys.entities.access import RANKS, Access, SurveyRole
from solotable.systems.surveys.entities.library import PHRASES_SPACE
from solotable.systems.surveys.entities.surveys import SurveyMeta


def survey_space(survey_id: str) -> str:
    """Return the name of a survey's space."""
    return f"survey/{survey_id}"


def visible_spaces(store: Store, user_id: str) -> Iterator[str]:
    """Yield the spaces that a user sees: losing a role in a survey takes it from the user's devices."""
    yield PHRASES_SPACE
    for access in store.all(Access.of_user(user_id).consistent()):
        yield survey_space(access.survey_id)


async def require_role(
    store: AsyncStore, context: MutationContext, survey_id: str, least: SurveyRole
) -> None:
    """Raise Rejected unless the user has a role in a survey that exists."""
    access = await store.get(Access, consistent=True, user_id=context.user, survey_id=survey_id)
    if access is None:
        raise Rejected("The survey does not exist.", code="not_found")
    if RANKS[access.role] < RANKS[least]:
        raise Rejected(f"This needs the role {least} in the survey.", code="forbidden")
    # The parts of a deleted survey are stored until a purge.
    if await store.get(SurveyMeta, consistent=True, survey_id=survey_id) is None:
        raise Rejected("The survey does not exist.", code="not_found")
