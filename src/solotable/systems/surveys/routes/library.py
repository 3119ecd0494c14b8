"""`/library` and `/phrases`: read by members, written by administrators of the tenant."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Response

from solotable import Page as StoredPage
from solotable.systems.formats.inputs import Input
from solotable.systems.routes import ExpectedVersion, Id, JsonRoute, allow, set_etag
from solotable.systems.surveys.entities.configs import Configuration
from solotable.systems.surveys.entities.library import Component, Element, Phrase, PhraseKind, Section
from solotable.systems.surveys.services.drafts import (
    LibraryComponentDraft,
    LibraryComponentPatch,
    LibraryElementDraft,
    LibraryElementPatch,
    LibrarySectionDraft,
    LibrarySectionPatch,
    PhraseDraft,
    PhrasePatch,
)
from solotable.systems.surveys.services.library.phrases import Phrases
from solotable.systems.surveys.services.library.templates import (
    LibraryComponents,
    LibraryElements,
    LibrarySections,
)
from solotable.systems.surveys.services.survey.configs import Configs
from solotable.web import CurrentPrincipal, Page, Paging

from .access import ADMINS, MEMBERS
from .dependencies import ActiveStore
from .survey.parts import Move

Kind = Annotated[PhraseKind, Path(examples=["Defect"])]
router = APIRouter(tags=["library"], route_class=JsonRoute)
Target = Annotated[str | None, Query(pattern=r"^[A-Za-z0-9._:-]{1,64}$")]


@router.get("/library", **allow(*MEMBERS))
async def get_library(store: ActiveStore) -> Configuration:
    """Return the library: sections with their elements and components in order, and all phrases."""
    return await Configs(store).read_library()


def _serve(
    name: str, kind: str, templates: Any, entity: type[Any], draft: type[Input], patch: type[Input]
) -> None:
    """Add the routes of one kind of templates."""

    async def create(body: Any, store: ActiveStore, principal: CurrentPrincipal, response: Response) -> Any:
        more = {"created_by": principal.id} if kind == "section" else {}
        created = await templates(store).create(body, **more)
        response.headers["location"] = f"/library/{name}/{getattr(created, f'{kind}_id')}"
        return set_etag(response, created)

    async def get(item_id: Id, store: ActiveStore, response: Response) -> Any:
        return set_etag(response, await templates(store).get(item_id))

    async def update(
        item_id: Id, body: Any, store: ActiveStore, version: ExpectedVersion, response: Response
    ) -> Any:
        return set_etag(response, await templates(store).update(item_id, body, version=version))

    async def move(
        item_id: Id, body: Move, store: ActiveStore, version: ExpectedVersion, response: Response
    ) -> Any:
        stored = await templates(store).move(item_id, after=body.after, to=body.to, version=version)
        return set_etag(response, stored)

    async def delete(item_id: Id, store: ActiveStore, version: ExpectedVersion) -> None:
        await templates(store).delete(item_id, version=version)

    create.__annotations__["body"] = draft
    update.__annotations__["body"] = patch
    for function, text in (
        (create, f"Create a {kind} of the library, behind `after` or at the end."),
        (get, f"Return a {kind} of the library."),
        (update, f"Change the given fields of a {kind} of the library."),
        (move, f"Move a {kind} of the library; one item is written."),
        (delete, f"Delete a {kind} of the library, if it has no children."),
    ):
        function.__doc__ = text
        function.__name__ = f"{function.__name__}_library_{kind}"
    one = f"/library/{name}/{{item_id}}"
    admins = allow(*ADMINS)
    router.add_api_route(
        f"/library/{name}", create, methods=["POST"], status_code=201, response_model=entity, **admins
    )
    router.add_api_route(one, get, methods=["GET"], response_model=entity, **allow(*MEMBERS))
    router.add_api_route(one, update, methods=["PATCH"], response_model=entity, **admins)
    router.add_api_route(f"{one}/move", move, methods=["POST"], response_model=entity, **admins)
    router.add_api_route(one, delete, methods=["DELETE"], status_code=204, **admins)


_serve("sections", "section", LibrarySections, Section, LibrarySectionDraft, LibrarySectionPatch)
_serve("elements", "element", LibraryElements, Element, LibraryElementDraft, LibraryElementPatch)
_serve("components", "component", LibraryComponents, Component, LibraryComponentDraft, LibraryComponentPatch)


@router.get("/phrases", **allow(*MEMBERS))
async def list_phrases(
    store: ActiveStore,
    paging: Paging,
    kind: Annotated[PhraseKind | None, Query(alias="type")] = None,
    element_id: Annotated[Target, Query(alias="elementId")] = None,
    component_id: Annotated[Target, Query(alias="componentId")] = None,
) -> Page[Phrase]:
    """List the phrases of a type by name, or those of an element or a component."""
    phrases = Phrases(store)
    if element_id is None and component_id is None:
        if kind is None:
            raise HTTPException(422, "Give a type, an elementId or a componentId.")
        return Page[Phrase].of(await phrases.of_kind(kind, limit=paging.limit, cursor=paging.cursor))
    found = (
        await phrases.of_target("ELEMENT", element_id)
        if element_id is not None
        else await phrases.of_target("COMPONENT", component_id or "")
    )
    rows = [phrase for phrase in found if kind is None or phrase.kind == kind]
    return Page[Phrase].of(StoredPage(rows, None, len(rows)))


@router.post("/phrases", status_code=201, **allow(*ADMINS))
async def create_phrase(draft: PhraseDraft, store: ActiveStore, response: Response) -> Phrase:
    """Create a phrase."""
    created = await Phrases(store).create(draft)
    response.headers["location"] = f"/phrases/{created.kind}/{created.phrase_id}"
    return set_etag(response, created)


@router.get("/phrases/{kind}/{phrase_id}", **allow(*MEMBERS))
async def get_phrase(kind: Kind, phrase_id: Id, store: ActiveStore, response: Response) -> Phrase:
    """Return a phrase."""
    return set_etag(response, await Phrases(store).get(kind, phrase_id))


@router.patch("/phrases/{kind}/{phrase_id}", **allow(*ADMINS))
async def update_phrase(
    kind: Kind,
    phrase_id: Id,
    patch: PhrasePatch,
    store: ActiveStore,
    version: ExpectedVersion,
    response: Response,
) -> Phrase:
    """Change a phrase; another type moves it."""
    return set_etag(response, await Phrases(store).update(kind, phrase_id, patch, version=version))


@router.delete("/phrases/{kind}/{phrase_id}", status_code=204, **allow(*ADMINS))
async def delete_phrase(kind: Kind, phrase_id: Id, store: ActiveStore, version: ExpectedVersion) -> None:
    """Delete a phrase; surveys keep its text in their configuration."""
    await Phrases(store).delete(kind, phrase_id, version=version)
