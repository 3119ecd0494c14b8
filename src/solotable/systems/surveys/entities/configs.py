"""Snapshots of the configuration of a survey: the library as it was at one moment (S4.10).

Corrections of the written design (C4.11):

- A snapshot has one id, which sorts by time. Its key, its index key and the survey's reference are that id.
- It is written once, in one transaction with the survey's reference; nothing updates it.
- It is one JSON text, compressed, in parts of at most 350 KB, so that no item exceeds 400 KB.
- Its items are not in the range of their survey: reading a survey does not read its snapshots.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, Field

from solotable import FROM_SCOPE, Created, Entity, Key, Query, pattern
from solotable.systems.surveys.table import OF_TENANT, surveyor

from .library import Material, PhraseKind
from .stored import Id

PART_BYTES = 350_000


class ComponentTemplate(BaseModel):
    """A component of the library in a snapshot."""

    component_id: str
    name: str
    order: str
    materials: list[Material] = []


class ElementTemplate(BaseModel):
    """An element of the library in a snapshot."""

    element_id: str
    name: str
    order: str
    description: str = ""
    components: list[ComponentTemplate] = []


class SectionTemplate(BaseModel):
    """A section of the library in a snapshot."""

    section_id: str
    name: str
    order: str
    description: str = ""
    elements: list[ElementTemplate] = []


class PhraseTemplate(BaseModel):
    """A phrase in a snapshot."""

    phrase_id: str
    kind: PhraseKind
    name: str
    text: str
    level2: str = ""
    element_ids: list[str] = []
    component_ids: list[str] = []
    material_ids: list[str] = []


class Configuration(BaseModel):
    """What a snapshot holds: sections with their elements and components, and all phrases."""

    sections: list[SectionTemplate] = []
    phrases: list[PhraseTemplate] = []


class SurveyConfig(Entity, table=surveyor):
    """The head of a snapshot: how many parts it has, and the digest of its text."""

    key = Key(OF_TENANT, "CONFIG#{survey_id}#{config_id}")
    by_survey = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "CONFIG#{config_id}", index="GSI2")

    tenant_id: str = FROM_SCOPE
    survey_id: Id
    config_id: Id
    parts: Annotated[int, Field(ge=1, le=90)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    section_count: int = 0
    phrase_count: int = 0
    taken_by: str = ""
    created: Annotated[datetime | None, Created()] = None

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The snapshots of a survey, newest first."""
        return cls.by_survey.query(survey_id=survey_id).descending()


class SurveyConfigPart(Entity, table=surveyor):
    """A part of the compressed text of a snapshot."""

    key = Key(OF_TENANT, "CONFIGPART#{survey_id}#{config_id}#{number:03d}")

    tenant_id: str = FROM_SCOPE
    survey_id: Id
    config_id: Id
    number: Annotated[int, Field(ge=0, le=999)]
    data: Annotated[bytes, Field(max_length=PART_BYTES)]

    @pattern
    @classmethod
    def of_config(cls, survey_id: str, config_id: str) -> Query[Self]:
        """The parts of a snapshot, in order."""
        return cls.key.query(survey_id=survey_id, config_id=config_id)
