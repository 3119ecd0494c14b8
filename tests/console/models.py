"""A table of surveys, as the pages of the console show it."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from solotable import FROM_SCOPE, Created, Entity, History, Index, Key, Table, Updated, Version, pattern
from solotable import Query as Rows

surveyor = Table("SurveyorData", tenant="tenant_id", indexes=[Index("GSI1"), Index("GSI2")])


class Survey(Entity, table=surveyor):
    """A survey of one building."""

    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: str
    status: Literal["draft", "in_progress", "completed"] = "draft"
    owner: str = "ana@acme.example"
    version: Annotated[int, Version()] = 0
    updated_at: Annotated[datetime | None, Updated()] = None

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")
    by_status = Key("TENANT#{tenant_id}#STATUS#{status}", "SURVEY#{survey_id}", index="GSI2")

    @pattern
    @classmethod
    def with_status(cls, status: Literal["draft", "in_progress", "completed"]) -> Rows[Survey]:
        """The surveys of a tenant in one status."""
        return cls.by_status.query(status=status)

    @pattern
    @classmethod
    def owned(cls, owner: str) -> Rows[Survey]:
        """The surveys of one owner: a filter reads them all."""
        return cls.key.query().where(lambda survey: survey.owner == owner)


class Section(Entity, table=surveyor):
    """A section of a survey; its former versions are kept."""

    tenant_id: str = FROM_SCOPE
    survey_id: str
    section_id: str
    name: str
    order: int
    condition: Literal["Excellent", "Good", "Fair", "Poor", "N/A"] = "N/A"
    notes: str = ""
    area: Decimal | None = None
    photos: set[str] = Field(default_factory=set)
    measurements: dict[str, Any] = Field(default_factory=dict)
    version: Annotated[int, Version()] = 0
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order:06d}", index="GSI1")
    history = History("HISTORY#{survey_id}#{section_id}#v{version:06d}")

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Rows[Section]:
        """The sections of a survey in their order."""
        return cls.by_order.query(survey_id=survey_id)


class Setting(Entity, table=surveyor, scope="global"):
    """A setting of the installation, without a version."""

    name: str
    value: str

    key = Key("SETTING", "NAME#{name}")

    @pattern
    @classmethod
    def all(cls) -> Rows[Setting]:
        """All settings."""
        return cls.key.query()
