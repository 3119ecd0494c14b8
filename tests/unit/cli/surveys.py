"""The models that the commands are tried on: a tenant's table with everything a key can be."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field

from solotable import (
    FROM_SCOPE,
    TTL,
    Counted,
    Counter,
    Entity,
    Index,
    Key,
    Query,
    Table,
    Unique,
    Version,
    pattern,
)

surveyor = Table(
    "SurveyorData",
    tenant="tenant_id",
    ttl="expires",
    indexes=[
        Index("GSI2"),
        Index("GSI3", projection="KEYS_ONLY"),
        Index("LSI1", sort="label", local=True, projection=["order"]),
    ],
)


class Survey(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: Annotated[str, Field(min_length=1, max_length=200)]
    status: Literal["draft", "done"] = "draft"
    due: date | None = None
    tags: frozenset[str] = frozenset()
    expires: Annotated[int | None, TTL()] = None
    version: Annotated[int, Version()] = 0


class Names(BaseModel):
    name: str


class Section(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order:06d}", index="GSI2")
    by_name = Key("TENANT#{tenant_id}#NAMES", "NAME#{name}", index="GSI3")
    by_label = Key("TENANT#{tenant_id}", ("label",), index="LSI1")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    section_id: str
    name: str
    order: int
    label: str | None = None
    notes: str = ""

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey, in order."""
        return cls.by_order.query(survey_id=survey_id)

    @pattern
    @classmethod
    def between_orders(cls, survey_id: str, low: int, high: int) -> Query[Self]:
        return cls.by_order.query(survey_id=survey_id).between(order=(low, high)).descending()

    @pattern
    @classmethod
    def after_order(cls, survey_id: str, order: int) -> Query[Names]:
        return cls.by_order.query(survey_id=survey_id).since(order=order + 1).select(Names)

    @pattern
    @classmethod
    def named(cls) -> Query[Self]:
        return cls.by_name.query()

    @pattern
    @classmethod
    def with_notes(cls, survey_id: str, notes: str) -> Query[Self]:
        return cls.key.query(survey_id=survey_id).where(lambda section: section.notes == notes)


class Setting(Entity, table=surveyor, scope="global"):
    key = Key("SETTINGS", "SETTING#{name}")
    name: str
    value: str


class Task(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "TASK#{task_id}")
    tenant_id: str = FROM_SCOPE
    task_id: str
    slug: Annotated[str, Unique()]
    step_count: Annotated[int, Counter()] = 0


class Step(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "TASK#{task_id}#STEP#{step_id}")
    steps = Counted(Task, "step_count")
    tenant_id: str = FROM_SCOPE
    task_id: str
    step_id: str


building = Table(
    "Building",
    indexes=[Index("GSI1", partition=["house", "state"], sort=["floor:N", "door"], projection=["size"])],
)


class Room(Entity, table=building):
    key = Key("HOUSE#{house}", "ROOM#{room_id}")
    by_place = Key(("house", "state"), ("floor", "door"), index="GSI1")
    house: str
    room_id: str
    state: Literal["open", "closed"] = "open"
    floor: int
    door: str
    size: int = 0

    @pattern
    @classmethod
    def open_on(cls, house: str, floor: int) -> Query[Self]:
        """The open rooms of a floor."""
        return cls.by_place.query(house=house, state="open", floor=floor)

    @pattern
    @classmethod
    def closed_since(cls, house: str, day: date) -> Query[Self]:
        return cls.by_place.query(house=house, state="closed").since(floor=(day - timedelta(days=1)).day)
