"""Code that mypy must accept in strict mode: the design's example, and the types that verbs give."""

from __future__ import annotations

from typing import Annotated, Literal, Self, assert_type

from pydantic import BaseModel, Field

from solotable import (
    ANY,
    FROM_SCOPE,
    AdminStore,
    AsyncStore,
    Entity,
    Index,
    Key,
    Page,
    Query,
    Store,
    Table,
    Version,
    between,
    contains,
    exists,
    missing,
    one_of,
    pattern,
    size,
    some,
)

surveyor = Table("SurveyorData", tenant="tenant_id", indexes=[Index("GSI2"), Index("GSI4")])


class Survey(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: Annotated[str, Field(min_length=1, max_length=200)]
    status: Literal["draft", "in_progress", "completed", "archived"] = "draft"
    version: Annotated[int, Version()] = 0


class Section(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order:06d}", index="GSI2")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    section_id: str
    name: str
    order: int
    notes: str = ""
    tags: set[str] = Field(default_factory=set)
    grade: int | None = None

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey, in order."""
        return cls.by_order.query(survey_id=survey_id)


class Photo(Entity, table=surveyor):
    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#PHOTO#{photo_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    photo_id: str


class Heading(BaseModel):
    name: str


def example() -> None:
    db = surveyor.open("sqlite:///surveys.db").tenant("acme")
    assert_type(db, Store)
    assert_type(db.put(Survey(survey_id="s1", title="12 Main Street")), Survey)
    db.put(Section(survey_id="s1", section_id="roof", name="Roof", order=1))
    changed = db.update(Section, survey_id="s1", section_id="roof", set={"notes": "Clay tiles"})
    assert_type(changed, Section)
    page = db.page(Section.of_survey("s1"), limit=20, where=lambda s: s.name != "Loft")
    assert_type(page, Page[Section])
    survey, sections = db.collection(Survey, Section, survey_id="s1")
    assert_type(survey, Survey | None)
    assert_type(sections, list[Section])
    with db.transaction(token="import-7") as tx:
        tx.put(Section(survey_id="s1", section_id="loft", name="Loft", order=2))
        tx.check(Survey, survey_id="s1", where=lambda s: s.status != "archived")


async def awaited() -> None:
    async with surveyor.open_async("aws://SurveyorData?region=eu-west-1") as base:
        db = base.tenant("acme")
        assert_type(db, AsyncStore)
        assert_type(await db.put(Survey(survey_id="s1", title="12 Main Street")), Survey)
        assert_type(await db.get(Survey, survey_id="s1"), Survey | None)
        assert_type(await db.require(Survey, survey_id="s1"), Survey)
        page = await db.page(Section.of_survey("s1"), limit=20, where=lambda s: s.name != "Loft")
        assert_type(page, Page[Section])
        async for section in db.all(Section.of_survey("s1")):
            assert_type(section, Section)
        survey, sections = await db.collection(Survey, Section, survey_id="s1")
        assert_type(survey, Survey | None)
        assert_type(sections, list[Section])
        async with db.transaction() as tx:
            tx.delete(Survey, survey_id="s1", version=ANY)
        async with db.batch() as batch:
            batch.put(Photo(survey_id="s1", photo_id="p"))


def types(db: Store, admin: AdminStore) -> None:
    assert_type(Section.of_survey("s"), Query[Section])
    assert_type(Section.by_order.query(survey_id="s").since(order=1).descending(), Query[Section])
    assert_type(db.get(Section, survey_id="s", section_id="x"), Section | None)
    assert_type(db.get_many(Section, [{"survey_id": "s", "section_id": "x"}]), list[Section | None])
    assert_type(db.first(Section.of_survey("s")), Section | None)
    assert_type(db.count(Section.of_survey("s")), int)
    assert_type(db.delete(Section, survey_id="s", section_id="x"), Section | None)
    assert_type(db.page(Section.of_survey("s")).items, list[Section])
    assert_type(db.page(Section.of_survey("s").select(Heading)).items, list[Heading])
    assert_type([row.order for row in db.all(Section.of_survey("s"))], list[int])
    survey, sections, photos = db.collection(Survey, Section, Photo, survey_id="s")
    assert_type((survey, sections, photos), tuple[Survey | None, list[Section], list[Photo]])
    root, ordered = db.collection(Survey.key, Section.key, survey_id="s")
    assert_type(root, Survey | None)
    assert_type(ordered, list[Section])
    assert_type([row.name for row in admin.scan(Section, budget=10)], list[str])


def conditions(db: Store) -> None:
    query = Section.of_survey("s")
    db.count(query, where=lambda s: (s.order > 3) & (s.name == "Roof") | ~(s.notes == ""))
    db.count(query, where=lambda s: contains(s.tags, "x") & exists(s.grade) & missing(s.grade))
    db.count(query, where=lambda s: between(s.order, 1, 5) & one_of(s.name, ["a", "b"]) & (size(s.name) > 3))
    db.count(query, where=lambda s: (some(s.grade) > 3) & s.name.startswith("R"))
