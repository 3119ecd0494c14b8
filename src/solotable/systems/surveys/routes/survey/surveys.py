"""`/surveys`: lists, whole surveys, metadata, access, batches and configurations."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from solotable import Page as StoredPage
from solotable.systems.formats.inputs import Input
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.systems.surveys.entities.access import UserId
from solotable.systems.surveys.entities.configs import Configuration, SurveyConfig
from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
    SurveySummary,
)
from solotable.systems.surveys.routes.access import ADMINS, MEMBERS, Edited, Owned, Viewed, in_survey
from solotable.systems.surveys.routes.dependencies import ActiveStore
from solotable.systems.surveys.services.drafts import SurveyDraft, SurveyPatch
from solotable.systems.surveys.services.survey.batch import MAX_CHANGES, BatchChange, batch_update
from solotable.systems.surveys.services.survey.configs import Configs
from solotable.systems.surveys.services.survey.surveys import MAX_USERS, Surveys
from solotable.web import CurrentPrincipal, Page, Paging

from .bodies import WholeSurvey

router = APIRouter(prefix="/surveys", tags=["surveys"], route_class=JsonRoute)
Users = Annotated[list[UserId], Field(max_length=MAX_USERS)]


class NewSurvey(SurveyDraft):
    """A new survey: empty, or with the parts of the library."""

    from_library: bool = False


class AccessChange(Input):
    """Who may use a survey; an absent field keeps its value."""

    owner: UserId = "-"
    editors: Users = Field(default_factory=list)
    viewers: Users = Field(default_factory=list)


class Batch(Input):
    """Changes of one survey, made together or not at all."""

    changes: Annotated[list[BatchChange], Field(min_length=1, max_length=MAX_CHANGES)]


class BatchResult(Input):
    """What a batch changed, as stored."""

    survey: list[SurveyMeta] = Field(default_factory=list)
    sections: list[SurveySection] = Field(default_factory=list)
    elements: list[SurveyElement] = Field(default_factory=list)
    components: list[SurveyComponent] = Field(default_factory=list)


@router.get("", **allow(*MEMBERS))
async def list_surveys(
    store: ActiveStore, principal: CurrentPrincipal, paging: Paging
) -> Page[SurveySummary]:
    """List the surveys that the caller may see; an administrator sees those of the tenant, newest first."""
    surveys = Surveys(store)
    if principal.roles.intersection(ADMINS):
        return Page[SurveySummary].of(await surveys.list(limit=paging.limit, cursor=paging.cursor))
    found = await surveys.list_of(principal.id, limit=paging.limit, cursor=paging.cursor)
    rows = [SurveySummary.model_validate(each, from_attributes=True) for each in found]
    return Page[SurveySummary].of(StoredPage(rows, found.cursor, found.scanned))


@router.post("", status_code=201, **allow(*MEMBERS))
async def create_survey(
    body: NewSurvey, store: ActiveStore, principal: CurrentPrincipal, response: Response
) -> SurveyMeta:
    """Create a survey that the caller owns; with `from_library` it has the parts of the library."""
    draft = SurveyDraft(**body.model_dump(exclude={"from_library"}))
    if body.from_library:
        created = await Configs(store).create_survey(draft, owner=principal.id)
    else:
        created = await Surveys(store).create(draft, owner=principal.id)
    response.headers["location"] = f"/surveys/{created.survey_id}"
    return set_etag(response, created)


@router.get("/{survey_id}", **in_survey("viewer"))
async def get_survey(survey_id: Id, survey: Viewed, response: Response) -> WholeSurvey:
    """Return a survey with all its parts, in order; parts without their parent are in `orphans`."""
    tree = await Surveys(survey.store).whole(survey_id)
    set_etag(response, tree.survey)
    return WholeSurvey.of(tree)


@router.patch("/{survey_id}", **in_survey("editor"))
async def update_survey(
    survey_id: Id, patch: SurveyPatch, survey: Edited, version: ExpectedVersion, response: Response
) -> SurveyMeta:
    """Change the given fields of the metadata."""
    return set_etag(response, await Surveys(survey.store).update(survey_id, patch, version=version))


@router.delete("/{survey_id}", status_code=204, **in_survey("owner"))
async def delete_survey(survey_id: Id, survey: Owned, version: ExpectedVersion) -> None:
    """Delete a survey; a purge removes its parts after 30 days."""
    await Surveys(survey.store).delete(survey_id, version=version)


@router.post("/{survey_id}/restore", **allow(*ADMINS))
async def restore_survey(survey_id: Id, store: ActiveStore, response: Response) -> SurveyMeta:
    """Restore a deleted survey with its parts and the access of its users, until a purge removed it."""
    return set_etag(response, await Surveys(store).restore(survey_id))


@router.put("/{survey_id}/access", **in_survey("owner"))
async def share_survey(
    survey_id: Id, body: AccessChange, survey: Owned, version: ExpectedVersion, response: Response
) -> SurveyMeta:
    """Change who may see and edit a survey."""
    stored = await Surveys(survey.store).share(survey_id, **body.given(), version=version)
    return set_etag(response, stored)


@router.post("/{survey_id}/batch", **in_survey("editor"))
async def change_parts(survey_id: Id, body: Batch, survey: Edited) -> BatchResult:
    """Change up to 97 parts in one transaction, or none of them."""
    result = BatchResult()
    for each in await batch_update(survey.store, survey_id, body.changes):
        match each:
            case SurveyMeta():
                result.survey.append(each)
            case SurveySection():
                result.sections.append(each)
            case SurveyElement():
                result.elements.append(each)
            case SurveyComponent():
                result.components.append(each)
    return result


@router.get("/{survey_id}/configs", **in_survey("viewer"))
async def list_configs(survey_id: Id, survey: Viewed, paging: Paging) -> Page[SurveyConfig]:
    """List the snapshots of a survey's configuration, newest first."""
    found = await Configs(survey.store).list(survey_id, limit=paging.limit, cursor=paging.cursor)
    return Page[SurveyConfig].of(found)


@router.post("/{survey_id}/configs", status_code=201, **in_survey("owner"))
async def take_config(
    survey_id: Id, survey: Owned, version: ExpectedVersion, response: Response
) -> SurveyConfig:
    """Take a snapshot of the library for a survey."""
    taken = await Configs(survey.store).take(survey_id, taken_by=survey.user_id, version=version)
    response.headers["location"] = f"/surveys/{survey_id}/configs/{taken.config_id}"
    return taken


@router.get("/{survey_id}/configs/{config_id}", **in_survey("viewer"))
async def get_config(survey_id: Id, config_id: Id, survey: Viewed) -> Configuration:
    """Return a snapshot of a survey's configuration."""
    return await Configs(survey.store).get(survey_id, config_id)
