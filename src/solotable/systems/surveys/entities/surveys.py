"""A survey as granular items: its metadata, its sections, their elements, their components.

Corrections of the written design:

- C4.3: parts are ordered by order keys (`formats.order_keys`), which sort as text and have room between any
  two, so that a move writes one item.
- C4.5: attributes are flat. No update has a path through a map that may be missing.
- C4.12: one list of statuses and one of conditions; old spellings are read by the migration only.
- C4.20: `section_count` and `completed_sections` follow the sections in their transaction, by ADD.
"""

from __future__ import annotations

import functools
import operator
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from solotable import Counted, Counter, Key, Query, SoftDelete, Synced, new_id, pattern
from solotable.systems.surveys.formats.texts import Address, ClientName, Name, Notes, ShortText, Title
from solotable.systems.surveys.table import OF_TENANT, WAITING, surveyor

from .stored import NOT_SENT, SPACE, Condition, Id, Order, Stored, SyncStatus

SurveyStatus = Literal["draft", "in_progress", "completed", "archived"]
PhotoIds = Annotated[list[Id], Field(max_length=50)]
PhraseIds = Annotated[list[Id], Field(max_length=50)]
UserIds = Annotated[list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=200)]
Measurements = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=50)], ShortText], Field(max_length=50)
]


class SurveyMeta(Stored, table=surveyor):
    """The metadata of a survey; its content is in other items (S4.6)."""

    key = Key(OF_TENANT, "SURVEY#{survey_id}")
    by_type = Key("TENANT#{tenant_id}#TYPE#SURVEY", "{survey_id}", index="GSI1")
    by_sync = Key(WAITING, "{waiting_since:us}#SURVEY#{survey_id}", index="GSI3")
    by_time = Key(OF_TENANT, "{updated:us}#SURVEY#{survey_id}", index="GSI4")
    by_owner = Key("TENANT#{tenant_id}#USER#{owner}", "SURVEY#{survey_id}", index="GSI5")
    deletion = SoftDelete(
        grace=timedelta(days=30),
        cascade=("SurveySection", "SurveyElement", "SurveyComponent", "SurveyConfig", "SurveyConfigPart"),
    )

    sync = Synced(space=SPACE, key="survey/{survey_id}", exclude=(*NOT_SENT, "changed"))

    survey_id: Id = Field(default_factory=new_id)
    title: Title = "Untitled"
    address: Address = ""
    client_name: ClientName = ""
    survey_date: date | None = None
    status: SurveyStatus = "draft"
    #: The snapshot of the configuration that the survey was created from.
    config_id: Id | None = None
    section_count: Annotated[int, Counter()] = 0
    completed_sections: Annotated[int, Counter()] = 0
    #: When a batch changed parts of the survey last (S4.24).
    changed: datetime | None = None
    #: Whether its parts are still being created from a configuration.
    preparing: bool = False
    owner: Annotated[str, Field(min_length=1, max_length=128)]
    editors: UserIds = Field(default_factory=list)
    viewers: UserIds = Field(default_factory=list)

    @pattern
    @classmethod
    def listed(cls) -> Query[SurveySummary]:
        """The surveys of a tenant, newest first: metadata only (Q3)."""
        return cls.by_type.query().descending().select(SurveySummary)

    @pattern
    @classmethod
    def of_owner(cls, owner: str) -> Query[SurveySummary]:
        """The surveys that a user owns (S4.18)."""
        return cls.by_owner.query(owner=owner).select(SurveySummary)

    @pattern
    @classmethod
    def whole(cls, survey_id: str) -> Query[SurveyMeta | SurveyComponent | SurveyElement | SurveySection]:
        """A survey with all its parts, in one range (Q2)."""
        return (
            cls.key.query(survey_id=survey_id)
            | SurveyComponent.key.query(survey_id=survey_id)
            | SurveyElement.key.query(survey_id=survey_id)
            | SurveySection.key.query(survey_id=survey_id)
        )

    @pattern
    @classmethod
    def waiting(
        cls, status: SyncStatus
    ) -> Query[SurveyComponent | SurveyElement | SurveySection | SurveyMeta]:
        """The items of surveys that are pending, or failed, the longest waiting first (Q9)."""
        return (
            SurveyComponent.by_sync.query(sync_status=status)
            | SurveyElement.by_sync.query(sync_status=status)
            | SurveySection.by_sync.query(sync_status=status)
            | cls.by_sync.query(sync_status=status)
        )

    @pattern
    @classmethod
    def changed_since(cls, since: datetime) -> Query[Any]:
        """The items of a tenant that were changed at a time or later, the oldest change first (Q10)."""
        # All entities with a place in time share a range of GSI4; some are declared in later modules.
        keys = [plan.entity.by_time for plan in surveyor.plans.values() if hasattr(plan.entity, "by_time")]
        first, *others = (key.query().since(updated=since) for key in keys)
        return functools.reduce(operator.or_, others, first)


class SurveySummary(BaseModel):
    """A survey in a list."""

    survey_id: str
    title: str = ""
    address: str = ""
    client_name: str = ""
    survey_date: date | None = None
    status: SurveyStatus = "draft"
    owner: str = ""
    section_count: int = 0
    completed_sections: int = 0
    updated: datetime | None = None
    version: int = 0


class SurveySection(Stored, table=surveyor):
    """A section of a survey (S4.7)."""

    key = Key(OF_TENANT, "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order}#{section_id}", index="GSI2")
    by_sync = Key(WAITING, "{waiting_since:us}#SECTION#{survey_id}#{section_id}", index="GSI3")
    by_time = Key(OF_TENANT, "{updated:us}#SECTION#{survey_id}#{section_id}", index="GSI4")
    sections = Counted(SurveyMeta, "section_count")
    completed = Counted(
        SurveyMeta, "completed_sections", where=lambda section: section.completed_at is not None
    )

    sync = Synced(space=SPACE, key="section/{survey_id}/{section_id}", exclude=(*NOT_SENT, "deleting"))

    survey_id: Id
    section_id: Id = Field(default_factory=new_id)
    name: Name
    order: Order
    notes: Notes = ""
    condition: Condition = "N/A"
    photos: PhotoIds = Field(default_factory=list)
    completed_at: datetime | None = None
    completed_by: str | None = None
    #: Whether it is being deleted with its parts: nothing is added to it then.
    deleting: bool = False

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey, in order."""
        return cls.by_order.query(survey_id=survey_id)


class SurveyElement(Stored, table=surveyor):
    """An element of a section, such as the covering of a roof (S4.8)."""

    key = Key(OF_TENANT, "SURVEY#{survey_id}#ELEMENT#{element_id}")
    by_order = Key(
        "TENANT#{tenant_id}#SURVEY#{survey_id}#SECTION#{section_id}",
        "ELEMENT#{order}#{element_id}",
        index="GSI2",
    )
    by_sync = Key(WAITING, "{waiting_since:us}#ELEMENT#{survey_id}#{element_id}", index="GSI3")
    by_time = Key(OF_TENANT, "{updated:us}#ELEMENT#{survey_id}#{element_id}", index="GSI4")

    sync = Synced(space=SPACE, key="element/{survey_id}/{element_id}", exclude=(*NOT_SENT, "deleting"))

    survey_id: Id
    element_id: Id = Field(default_factory=new_id)
    section_id: Id
    name: Name
    order: Order
    condition: Condition = "N/A"
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)
    deleting: bool = False
    measurements: Measurements = Field(default_factory=dict)

    @pattern
    @classmethod
    def of_section(cls, survey_id: str, section_id: str) -> Query[Self]:
        """The elements of a section, in order (S4.15)."""
        return cls.by_order.query(survey_id=survey_id, section_id=section_id)


class SurveyComponent(Stored, table=surveyor):
    """A component of an element, of one of the materials that the library offers (S4.9)."""

    key = Key(OF_TENANT, "SURVEY#{survey_id}#COMPONENT#{component_id}")
    by_order = Key(
        "TENANT#{tenant_id}#SURVEY#{survey_id}#ELEMENT#{element_id}",
        "COMPONENT#{order}#{component_id}",
        index="GSI2",
    )
    by_sync = Key(WAITING, "{waiting_since:us}#COMPONENT#{survey_id}#{component_id}", index="GSI3")
    by_time = Key(OF_TENANT, "{updated:us}#COMPONENT#{survey_id}#{component_id}", index="GSI4")

    sync = Synced(space=SPACE, key="component/{survey_id}/{component_id}", exclude=NOT_SENT)

    survey_id: Id
    component_id: Id = Field(default_factory=new_id)
    element_id: Id
    name: Name
    order: Order
    material: ShortText = "Unknown"
    condition: Condition = "N/A"
    age: ShortText = "Unknown"
    last_maintenance: ShortText = ""
    defects: PhraseIds = Field(default_factory=list)
    notes: Notes = ""
    photos: PhotoIds = Field(default_factory=list)

    @pattern
    @classmethod
    def of_element(cls, survey_id: str, element_id: str) -> Query[Self]:
        """The components of an element, in order (S4.15)."""
        return cls.by_order.query(survey_id=survey_id, element_id=element_id)


#: A part of a survey, and the class of each kind of parts.
Part = SurveySection | SurveyElement | SurveyComponent
PartKind = Literal["section", "element", "component"]
PARTS: dict[PartKind, type[Part]] = {
    "section": SurveySection,
    "element": SurveyElement,
    "component": SurveyComponent,
}
