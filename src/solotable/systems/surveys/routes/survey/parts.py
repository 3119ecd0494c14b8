"""`/surveys/{id}/sections`, `/elements`, `/components`: create, change, move and delete parts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from solotable.systems.formats.inputs import Input
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, set_etag
from solotable.systems.surveys.entities.stored import Id as PartId
from solotable.systems.surveys.entities.surveys import SurveyComponent, SurveyElement, SurveySection
from solotable.systems.surveys.routes.access import Edited, Viewed, in_survey
from solotable.systems.surveys.services.drafts import (
    ComponentDraft,
    ComponentPatch,
    ElementDraft,
    ElementPatch,
    SectionDraft,
    SectionPatch,
)
from solotable.systems.surveys.services.survey.parts import Components, Elements, Parts, Sections

router = APIRouter(prefix="/surveys/{survey_id}", tags=["parts"], route_class=JsonRoute)


class Move(Input):
    """A new place: behind a part, by default at the front; `to` is another parent of this survey."""

    after: PartId | None = None
    to: PartId | None = None


class Deleted(Input):
    """How many parts were deleted: a part and its children."""

    deleted: int


def _serve(
    name: str, parts: type[Parts[Any]], entity: type[Any], draft: type[Input], patch: type[Input]
) -> None:
    """Add the routes of one kind of parts."""
    kind = parts.kind

    async def create(survey_id: Id, body: Any, survey: Edited, response: Response) -> Any:
        created = await parts(survey.store, survey_id).create(body)
        response.headers["location"] = f"/surveys/{survey_id}/{name}/{getattr(created, f'{kind}_id')}"
        return set_etag(response, created)

    async def get(survey_id: Id, part_id: Id, survey: Viewed, response: Response) -> Any:
        return set_etag(response, await parts(survey.store, survey_id).get(part_id))

    async def update(
        survey_id: Id, part_id: Id, body: Any, survey: Edited, version: ExpectedVersion, response: Response
    ) -> Any:
        stored = await parts(survey.store, survey_id).update(part_id, body, version=version)
        return set_etag(response, stored)

    async def replace(
        survey_id: Id, part_id: Id, body: Any, survey: Edited, version: ExpectedVersion, response: Response
    ) -> Any:
        whole = patch(**body.model_dump())  # all fields are given, also those with their default
        stored = await parts(survey.store, survey_id).update(part_id, whole, version=version)
        return set_etag(response, stored)

    async def move(
        survey_id: Id, part_id: Id, body: Move, survey: Edited, version: ExpectedVersion, response: Response
    ) -> Any:
        service = parts(survey.store, survey_id)
        stored = await service.move(part_id, after=body.after, to=body.to, version=version)
        return set_etag(response, stored)

    async def delete(survey_id: Id, part_id: Id, survey: Edited, version: ExpectedVersion) -> Deleted:
        return Deleted(deleted=await parts(survey.store, survey_id).delete(part_id, version=version))

    create.__annotations__["body"] = draft
    update.__annotations__["body"] = replace.__annotations__["body"] = patch
    for function, text in (
        (create, f"Create a {kind}, behind `after` or at the end."),
        (get, f"Return a {kind}."),
        (update, f"Change the given fields of a {kind}."),
        (replace, f"Replace the fields of a {kind}; an absent field gets its default."),
        (move, f"Move a {kind}; one item is written."),
        (delete, f"Delete a {kind} with its children."),
    ):
        function.__doc__ = text
        function.__name__ = f"{function.__name__}_{kind}"
    viewer, editor = in_survey("viewer"), in_survey("editor")
    one = f"/{name}/{{part_id}}"
    router.add_api_route(
        f"/{name}", create, methods=["POST"], status_code=201, response_model=entity, **editor
    )
    router.add_api_route(one, get, methods=["GET"], response_model=entity, **viewer)
    router.add_api_route(one, update, methods=["PATCH"], response_model=entity, **editor)
    router.add_api_route(one, replace, methods=["PUT"], response_model=entity, **editor)
    router.add_api_route(f"{one}/move", move, methods=["POST"], response_model=entity, **editor)
    router.add_api_route(one, delete, methods=["DELETE"], response_model=Deleted, **editor)


_serve("sections", Sections, SurveySection, SectionDraft, SectionPatch)
_serve("elements", Elements, SurveyElement, ElementDraft, ElementPatch)
_serve("components", Components, SurveyComponent, ComponentDraft, ComponentPatch)
