"""The mutators of the surveys: every edit of a survey and of its parts, by the services of the routes.

A client chooses the ids of what it creates, so that a mutation that runs twice creates it once. The names
are those of the routes' operations: createSurvey, updateSection, moveElement, deleteComponent, addPhoto.
"""

from __future__ import annotations

from typing import Any

from pydantic import create_model

from solotable import AsyncStore
from solotable.sync import MutationContext, Mutators
from solotable.systems.errors import validate
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.stored import Id
from solotable.systems.surveys.entities.surveys import PartKind
from solotable.systems.surveys.services.drafts import (
    ComponentDraft,
    ComponentPatch,
    ElementDraft,
    ElementPatch,
    SectionDraft,
    SectionPatch,
    SurveyDraft,
    SurveyPatch,
)
from solotable.systems.surveys.services.survey.parts import Components, Elements, Parts, Sections
from solotable.systems.surveys.services.survey.surveys import Surveys

from .rights import require_role

#: The services, drafts and patches of each kind of parts.
_PARTS: dict[PartKind, tuple[type[Parts[Any]], type[Input], type[Input]]] = {
    "section": (Sections, SectionDraft, SectionPatch),
    "element": (Elements, ElementDraft, ElementPatch),
    "component": (Components, ComponentDraft, ComponentPatch),
}
survey_mutators = Mutators()


class CreateSurvey(SurveyDraft):
    """A new survey, with the id that the client chose."""

    survey_id: Id


class UpdateSurvey(SurveyPatch):
    """A change of a survey's metadata."""

    survey_id: Id


class DeleteSurvey(Input):
    """The survey to delete."""

    survey_id: Id


class PhotoOfPart(Input):
    """A photo of a part; its image is uploaded over HTTP before."""

    survey_id: Id
    kind: PartKind
    part_id: Id
    image_id: Id


@survey_mutators.register("createSurvey")
async def create_survey(store: AsyncStore, args: CreateSurvey, context: MutationContext) -> None:
    """Create a survey that the user owns."""
    await Surveys(store).create(args, owner=context.user)


@survey_mutators.register("updateSurvey")
async def update_survey(store: AsyncStore, args: UpdateSurvey, context: MutationContext) -> None:
    """Change the given fields of the metadata."""
    await require_role(store, context, args.survey_id, "editor")
    patch = SurveyPatch(**_without(args, "survey_id"))
    await Surveys(store).update(args.survey_id, patch)


@survey_mutators.register("deleteSurvey")
async def delete_survey(store: AsyncStore, args: DeleteSurvey, context: MutationContext) -> None:
    """Delete a survey and all access to it."""
    await require_role(store, context, args.survey_id, "owner")
    await Surveys(store).delete(args.survey_id)


@survey_mutators.register("addPhoto")
async def add_photo(store: AsyncStore, args: PhotoOfPart, context: MutationContext) -> None:
    """Show an image at the end of a part's photos; two users may add photos at once."""
    parts, photos = await _photos(store, args, context)
    if args.image_id not in photos:
        await parts.update(args.part_id, _patch(args.kind, [*photos, args.image_id]))


@survey_mutators.register("removePhoto")
async def remove_photo(store: AsyncStore, args: PhotoOfPart, context: MutationContext) -> None:
    """Remove an image from a part's photos."""
    parts, photos = await _photos(store, args, context)
    if args.image_id in photos:
        left = [each for each in photos if each != args.image_id]
        await parts.update(args.part_id, _patch(args.kind, left))


def _patch(kind: PartKind, photos: list[str]) -> Input:
    return validate(_PARTS[kind][2], photos=photos)


async def _photos(
    store: AsyncStore, args: PhotoOfPart, context: MutationContext
) -> tuple[Parts[Any], list[str]]:
    await require_role(store, context, args.survey_id, "editor")
    parts = _PARTS[args.kind][0](store, args.survey_id)
    part = await parts.get(args.part_id, consistent=True)
    return parts, part.photos


def _register_parts(kind: PartKind) -> None:
    """Register create, update, move and delete of one kind of parts."""
    service, draft, patch = _PARTS[kind]
    name, part_id = kind.title(), f"{kind}_id"
    ids: dict[str, Any] = {"survey_id": (Id, ...), part_id: (Id, ...)}

    async def create(store: AsyncStore, args: Any, context: MutationContext) -> None:
        await require_role(store, context, args.survey_id, "editor")
        await service(store, args.survey_id).create(draft(**_without(args, "survey_id")))

    async def update(store: AsyncStore, args: Any, context: MutationContext) -> None:
        await require_role(store, context, args.survey_id, "editor")
        changes = patch(**_without(args, *ids))
        await service(store, args.survey_id).update(getattr(args, part_id), changes)

    async def move(store: AsyncStore, args: Any, context: MutationContext) -> None:
        await require_role(store, context, args.survey_id, "editor")
        parts = service(store, args.survey_id)
        await parts.move(getattr(args, part_id), after=args.after, to=args.to)

    async def delete(store: AsyncStore, args: Any, context: MutationContext) -> None:
        await require_role(store, context, args.survey_id, "editor")
        await service(store, args.survey_id).delete(getattr(args, part_id))

    place: dict[str, Any] = {"after": (Id | None, None), "to": (Id | None, None)}
    for function, base, fields in (
        (create, draft, ids),
        (update, patch, ids),
        (move, Input, ids | place),
        (delete, Input, ids),
    ):
        verb = function.__name__
        function.__annotations__["args"] = create_model(f"{verb.title()}{name}", __base__=base, **fields)
        survey_mutators.register(f"{verb}{name}")(function)


def _without(args: Input, *names: str) -> dict[str, Any]:
    """Return the given fields without some of them."""
    return {name: value for name, value in args.given().items() if name not in names}


for _kind in _PARTS:
    _register_parts(_kind)
