"""Our layout: one table, five indexes, a survey as many small items; asked through the services."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any

from solotable import AsyncDatabase, AsyncStore, Query
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.entities.files import Document, Image
from solotable.systems.surveys.entities.library import (
    Component,
    Element,
    Material,
    Phrase,
    PhraseLink,
    Section,
)
from solotable.systems.surveys.entities.queues import changed_since, waiting
from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.services.commits import TransactionBatch
from solotable.systems.surveys.services.drafts import (
    ComponentDraft,
    ElementPatch,
    PhraseDraft,
    SectionPatch,
    SurveyDraft,
    SurveyPatch,
    TenantDraft,
)
from solotable.systems.surveys.services.library.phrases import Phrases
from solotable.systems.surveys.services.survey.batch import BatchChange, batch_update
from solotable.systems.surveys.services.survey.parts import Components, Elements, Sections
from solotable.systems.surveys.services.survey.surveys import Surveys
from solotable.systems.surveys.services.tenants import Tenants
from solotable.systems.surveys.table import surveyor

from .workload import NOTE, OWNER, TENANT, PartData, Size, parts_of, survey_ids

TABLES = (surveyor,)
INDEXES = len(surveyor.indexes)
_NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
#: What is in the partition of a tenant; documents have separate partitions.
_OF_TENANT: tuple[Any, ...] = (
    *(SurveyMeta, SurveySection, SurveyElement, SurveyComponent),
    *(Section, Element, Component, Phrase, PhraseLink, Image),
)


class GranularLayout:
    """One table on one database, with the ten queries and the typical edits."""

    def __init__(self, db: AsyncDatabase, size: Size) -> None:
        self._db = db
        self._store: AsyncStore = db.tenant(TENANT)
        self._size = size
        self._survey = survey_ids(size)[0]

    async def load(self) -> None:
        """Store the data of the tenant."""
        await Tenants(self._db).create(TenantDraft(id=TENANT, name="Acme"))
        for survey_id in survey_ids(self._size):
            await self._load_survey(survey_id)
        await self._load_library()
        for number in range(self._size.images):
            await self._store.create(_image(number))
        document = Document(
            document_id="d1", name="Terms", mime="text/plain", size=9, owner=OWNER, sha256="0" * 64
        )
        for _ in range(6):
            document = await self._store.put(document)

    async def _load_survey(self, survey_id: str) -> None:
        draft = SurveyDraft(survey_id=survey_id, title="12 Mill Lane", client_name="Ada Byron")
        await Surveys(self._store).create(draft, owner=OWNER)
        orders = list(spread(max(self._size.sections, self._size.elements, self._size.components)))
        async with TransactionBatch(self._store) as batch:
            for part in parts_of(self._size):
                entity = _entity(survey_id, part, orders[part.number])
                if isinstance(entity, SurveySection):
                    await self._store.create(entity)  # it counts in the metadata
                else:
                    batch.put(entity)

    async def _load_library(self) -> None:
        orders = spread(self._size.library)
        for number, order in enumerate(orders):
            ten = number // 10 * 10
            name = f"Template {number}"
            entity: Section | Element | Component
            if number % 10 == 0:
                entity = Section(section_id=f"ls{number}", name=name, order=order)
            elif number % 10 < 4:
                entity = Element(element_id=f"le{number}", section_id=f"ls{ten}", name=name, order=order)
            else:
                entity = Component(
                    component_id=f"lc{number}",
                    element_id=f"le{ten + 1}",
                    name=name,
                    order=order,
                    materials=[Material(name="Slate"), Material(name="Clay")],
                )
            await self._store.create(entity)
        for number in range(self._size.phrases):
            draft = PhraseDraft(
                phrase_id=f"p{number}",
                kind="Defect" if number % 4 else "Condition",
                name=f"Phrase {number:03d}",
                text=NOTE,
                element_ids=[f"le{number % 4 + 1}"],
            )
            await Phrases(self._store).create(draft)

    async def mark_changed(self) -> None:
        """Let five parts in each of two surveys wait for their synchronisation."""
        for survey_id in survey_ids(self._size)[:2]:
            for number in range(min(5, self._size.elements)):
                found = await self._store.require(
                    SurveyElement, survey_id=survey_id, element_id=f"e{number:03d}"
                )
                changes: dict[str, Any] = {"sync_status": "pending", "waiting_since": _NOON}
                await self._store.update(found, set=changes)

    def operations(self, since: Callable[[], datetime]) -> dict[str, Callable[[int], Awaitable[object]]]:
        """Return the queries and edits by name; each takes the number of its call."""
        store, survey_id = self._store, self._survey
        surveys, phrases = Surveys(store), Phrases(store)
        sections, elements = Sections(store, survey_id), Elements(store, survey_id)
        return {
            "Q1 all data of the tenant": lambda _: self._all_of_tenant(),
            "Q2 complete survey": lambda _: surveys.whole(survey_id),
            "Q3 list of surveys": lambda _: surveys.list(),
            "Q4 library": lambda _: self._all(Section.library()),
            "Q5 phrases of a type": lambda _: phrases.of_kind("Defect"),
            "Q6 phrases of an element": lambda _: phrases.of_target("ELEMENT", "le1"),
            "Q7 images": lambda _: self._all(Image.listed()),
            "Q8 document versions": lambda _: self._versions(),
            "Q9 items that wait": lambda _: self._all(waiting("pending")),
            "Q10 items changed since": lambda _: self._all(changed_since(since())),
            "edit a section's note": lambda call: sections.update(
                "s000", SectionPatch(notes=f"{NOTE}{call:04d}")
            ),
            "edit an element's condition": lambda call: elements.update(
                "e000", ElementPatch(condition="Poor" if call % 2 else "Good")
            ),
            "add a component": lambda call: Components(store, survey_id).create(_new_component(call)),
            "move a section": lambda call: sections.move(f"s{(-1 - call) % self._size.sections:03d}"),
            "complete a section": lambda call: self._complete(sections, call),
            "change the title": lambda call: surveys.update(
                survey_id, SurveyPatch(title=f"Mill Lane {call}")
            ),
            "batch of 20 changes": lambda call: batch_update(store, survey_id, self._batch(call)),
        }

    async def _all_of_tenant(self) -> list[Any]:
        everything: Query[Any] = reduce(or_, (entity.key.query() for entity in _OF_TENANT))
        tenant = await self._db.require(Tenant, id=TENANT)
        return [tenant, *await self._all(everything), *await self._all(Document.by_type.query())]

    async def _versions(self) -> list[Any]:
        current = await self._store.require(Document, document_id="d1")
        return [current, *(await self._store.history(Document, document_id="d1").list(limit=9)).items]

    async def _complete(self, sections: Sections, call: int) -> SurveySection:
        number, turn = call % self._size.sections, call // self._size.sections
        done = _NOON if turn % 2 == 0 else None
        return await sections.update(f"s{number:03d}", SectionPatch(completed_at=done))

    def _batch(self, call: int) -> list[BatchChange]:
        parts = [part for part in parts_of(self._size) if part.kind != "section"][:20]
        condition = "Poor" if call % 2 else "Good"
        return [
            BatchChange.model_validate({"kind": part.kind, "id": part.id, "set": {"condition": condition}})
            for part in parts
        ]

    async def _all(self, query: Query[Any]) -> list[Any]:
        return [row async for row in self._store.all(query)]


def _entity(survey_id: str, part: PartData, order: str) -> SurveySection | SurveyElement | SurveyComponent:
    fields: dict[str, Any] = {**part.fields(), "survey_id": survey_id, "order": order}
    match part.kind:
        case "section":
            return SurveySection(section_id=part.id, **fields)
        case "element":
            return SurveyElement(element_id=part.id, section_id=part.parent, **fields)
        case _:
            return SurveyComponent(component_id=part.id, element_id=part.parent, **fields)


def _new_component(call: int) -> ComponentDraft:
    fields = PartData("component", f"new{call}", "e000", call).fields()
    return ComponentDraft(component_id=f"new{call}", element_id="e000", **fields)


def _image(number: int) -> Image:
    return Image(
        image_id=f"i{number:03d}",
        sha256=f"{number:064x}",
        name=f"{number}.jpg",
        caption="Front",
        mime="image/jpeg",
        size=90_000,
        status="stored",
    )
