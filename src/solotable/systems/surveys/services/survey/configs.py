"""Snapshots of the configuration: take, read, and create a survey from one (S4.10).

A snapshot and the survey's reference to it are one transaction. A survey that is created from a snapshot may
have more parts than a transaction: it is marked as `preparing` until all of them exist. Their ids are derived
from those of the snapshot, so repeating an interrupted creation creates nothing twice.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import Any

from solotable import ANY, AsyncStore, Page, new_id
from solotable.errors import AlreadyExists, StoredDataError
from solotable.systems.errors import InvalidInput, unwrap_failure
from solotable.systems.surveys.entities.configs import (
    PART_BYTES,
    ComponentTemplate,
    Configuration,
    ElementTemplate,
    PhraseTemplate,
    SectionTemplate,
    SurveyConfig,
    SurveyConfigPart,
)
from solotable.systems.surveys.entities.library import Component, Element, Phrase, Section
from solotable.systems.surveys.entities.surveys import (
    Part,
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.services.commits import TransactionBatch
from solotable.systems.surveys.services.drafts import SurveyDraft

from .surveys import Surveys
from .tree import part_id

#: DynamoDB: a transaction has at most 4 MB.
_MOST_BYTES = 3_500_000
#: A decompressed snapshot is at most so large.
_MOST_TEXT_BYTES = 64_000_000


class Configs:
    """The snapshots of the surveys of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def read_library(self) -> Configuration:
        """Return the library of the tenant as a configuration, in order."""
        sections: list[Section] = []
        elements: list[Element] = []
        components: list[Component] = []
        async for each in self._store.all(Section.library()):
            match each:
                case Section():
                    sections.append(each)
                case Element():
                    elements.append(each)
                case Component():
                    components.append(each)
        phrases = [
            each for kind in ("Defect", "Condition") async for each in self._store.all(Phrase.of_kind(kind))
        ]
        return _configuration(sections, elements, components, phrases)

    async def take(self, survey_id: str, *, taken_by: str = "", version: int | None = None) -> SurveyConfig:
        """Take a snapshot of the library for a survey, and refer to it, in one transaction."""
        configuration = await self.read_library()
        config_id = new_id()
        head, parts = pack_config(survey_id, config_id, configuration, taken_by)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                expected = ANY if version is None else version
                tx.update(SurveyMeta, version=expected, set={"config_id": config_id}, survey_id=survey_id)
                created = tx.create(head)
                for part in parts:
                    tx.create(part)
        return created

    async def list(
        self, survey_id: str, *, limit: int = 100, cursor: str | None = None
    ) -> Page[SurveyConfig]:
        """Return the snapshots of a survey, newest first."""
        return await self._store.page(SurveyConfig.of_survey(survey_id), limit=limit, cursor=cursor)

    async def get(self, survey_id: str, config_id: str) -> Configuration:
        """Return a snapshot, or raise NotFound, or StoredDataError if a part of it is missing or damaged."""
        head = await self._store.require(SurveyConfig, survey_id=survey_id, config_id=config_id)
        query = SurveyConfigPart.of_config(survey_id, config_id)
        data = b"".join([part.data async for part in self._store.all(query)])
        return _unpack(head, data)

    async def create_survey(self, draft: SurveyDraft, *, owner: str) -> SurveyMeta:
        """Create a survey with the parts of the library as it is now, and its first snapshot.

        Repeat the call with the same `survey_id` if it was interrupted.
        """
        surveys = Surveys(self._store)
        try:
            survey = await surveys.create(draft, owner=owner, preparing=True)
        except AlreadyExists:
            survey = await surveys.get(draft.survey_id, consistent=True)
            if not survey.preparing or survey.owner != owner:
                raise
        if survey.config_id is None:
            await self.take(survey.survey_id, taken_by=owner)
            survey = await surveys.get(survey.survey_id, consistent=True)
        assert survey.config_id is not None
        await self._create_parts(survey.survey_id, await self.get(survey.survey_id, survey.config_id))
        return await self._store.update(
            SurveyMeta, survey_id=survey.survey_id, version=ANY, set={"preparing": False}
        )

    async def _create_parts(self, survey_id: str, configuration: Configuration) -> None:
        """Create the parts that do not exist yet."""
        tree = await Surveys(self._store).whole(survey_id, consistent=True)
        existing = {part_id(part) for part in (*tree.parts(), *tree.orphans)}
        parts = [part for part in _parts(survey_id, configuration) if part_id(part) not in existing]
        for part in parts:
            if isinstance(part, SurveySection):
                await self._store.create(part)  # with the counter of the survey
        async with TransactionBatch(self._store) as batch:
            for part in parts:
                if not isinstance(part, SurveySection):
                    batch.put(part)


def _configuration(
    sections: list[Section], elements: list[Element], components: list[Component], phrases: list[Phrase]
) -> Configuration:
    of_element: dict[str, list[ComponentTemplate]] = {}
    for component in sorted(components, key=lambda each: (each.order, each.component_id)):
        template = ComponentTemplate.model_validate(component, from_attributes=True)
        of_element.setdefault(component.element_id, []).append(template)
    of_section: dict[str, list[ElementTemplate]] = {}
    for element in sorted(elements, key=lambda each: (each.order, each.element_id)):
        of_section.setdefault(element.section_id, []).append(
            ElementTemplate(
                element_id=element.element_id,
                name=element.name,
                order=element.order,
                description=element.description,
                components=of_element.get(element.element_id, []),
            )
        )
    return Configuration(
        sections=[
            SectionTemplate(
                section_id=section.section_id,
                name=section.name,
                order=section.order,
                description=section.description,
                elements=of_section.get(section.section_id, []),
            )
            for section in sorted(sections, key=lambda each: (each.order, each.section_id))
        ],
        phrases=[PhraseTemplate.model_validate(phrase, from_attributes=True) for phrase in phrases],
    )


def pack_config(
    survey_id: str, config_id: str, configuration: Configuration, taken_by: str, tenant_id: str | None = None
) -> tuple[SurveyConfig, list[SurveyConfigPart]]:
    """Return the items of a snapshot; without a tenant, the store fills it in."""
    text = configuration.model_dump_json().encode()
    data = zlib.compress(text, 9)
    if len(data) > _MOST_BYTES or len(text) > _MOST_TEXT_BYTES:
        raise InvalidInput(f"The library is too large for a snapshot: {len(data)} bytes compressed.")
    named: dict[str, Any] = {"survey_id": survey_id, "config_id": config_id}
    if tenant_id is not None:
        named["tenant_id"] = tenant_id
    parts = [
        SurveyConfigPart(**named, number=number, data=data[start : start + PART_BYTES])
        for number, start in enumerate(range(0, len(data), PART_BYTES))
    ]
    head = SurveyConfig(
        **named,
        parts=len(parts),
        sha256=hashlib.sha256(data).hexdigest(),
        section_count=len(configuration.sections),
        phrase_count=len(configuration.phrases),
        taken_by=taken_by,
    )
    return head, parts


def _unpack(head: SurveyConfig, data: bytes) -> Configuration:
    if hashlib.sha256(data).hexdigest() != head.sha256:
        raise StoredDataError(f"The snapshot {head.config_id!r} is damaged, or a part of it is missing.")
    unpacked = zlib.decompressobj()
    text = unpacked.decompress(data, _MOST_TEXT_BYTES)
    if unpacked.unconsumed_tail:
        raise StoredDataError(f"The snapshot {head.config_id!r} is larger than {_MOST_TEXT_BYTES} bytes.")
    return Configuration.model_validate_json(text)


def _parts(survey_id: str, configuration: Configuration) -> Iterator[Part]:
    """Yield the parts of a new survey; their ids are those of the library."""
    for section in configuration.sections:
        yield SurveySection(
            survey_id=survey_id, section_id=section.section_id, name=section.name, order=section.order
        )
        for element in section.elements:
            yield SurveyElement(
                survey_id=survey_id,
                element_id=element.element_id,
                section_id=section.section_id,
                name=element.name,
                order=element.order,
            )
            for component in element.components:
                yield SurveyComponent(
                    survey_id=survey_id,
                    component_id=component.component_id,
                    element_id=element.element_id,
                    name=component.name,
                    order=component.order,
                )
