"""The design's own example, on every engine, blocking and awaited."""

from __future__ import annotations

from typing import Annotated

import pytest
from pydantic import Field

from solotable import FROM_SCOPE, Entity, Key, Store, Table, Unique, Version
from solotable._flows.scope import decode_item
from solotable._protocol.requests import Query
from solotable.errors import NotUnique, TransactionFailed

from .models import Section, Survey
from .opening import Opening


def test_the_example_of_the_design(db: Store, opening: Opening) -> None:
    survey = db.put(Survey(survey_id="s1", title="12 Main Street"))
    assert (survey.tenant_id, survey.version) == ("acme", 1)
    db.put(Section(survey_id="s1", section_id="roof", name="Roof", order=1))
    roof = db.update(Section, survey_id="s1", section_id="roof", set={"notes": "Clay tiles"})
    assert roof == Section(
        tenant_id="acme", survey_id="s1", section_id="roof", name="Roof", order=1, notes="Clay tiles"
    )
    db.put(Section(survey_id="s1", section_id="attic", name="Loft", order=3))
    page = db.page(Section.of_survey("s1"), limit=20, where=lambda s: s.name != "Loft")
    assert page.items == [roof]
    assert page.cursor is None

    opening.spy.sent.clear()
    found, sections = db.collection(Survey, Section, survey_id="s1")
    assert found == survey
    assert [each.section_id for each in sections] == ["attic", "roof"]
    assert [type(request) for request in opening.spy.sent] == [Query], "a collection is one Query"

    with db.transaction(token=f"import-{opening.prefix}") as tx:
        tx.put(Section(survey_id="s1", section_id="loft", name="Loft", order=2))
        tx.check(Survey, survey_id="s1", where=lambda s: s.status != "archived")
    assert [each.order for each in db.page(Section.of_survey("s1"))] == [1, 2, 3]

    db.update(survey, set={"status": "archived"})
    with pytest.raises(TransactionFailed) as failed, db.transaction() as tx:  # noqa: PT012 - the end raises
        tx.put(Section(survey_id="s1", section_id="cellar", name="Cellar", order=4))
        tx.check(Survey, survey_id="s1", where=lambda s: s.status != "archived")
    assert "Survey survey_id='s1'" in str(failed.value)
    assert db.get(Section, survey_id="s1", section_id="cellar") is None


referring = Table("Referring", tenant="tenant_id")


class Referred(Entity, table=referring):
    """The design's survey with its unique reference."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")
    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: Annotated[str, Field(min_length=1, max_length=200)]
    reference: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


def test_the_unique_reference_of_the_design(opening: Opening) -> None:
    db = opening(referring).tenant("acme")
    first = db.put(Referred(survey_id="s1", title="12 Main Street", reference="A-1"))
    db.put(Referred(survey_id="s2", title="14 Main Street"))
    with pytest.raises(NotUnique, match="survey_id='s1'"):
        db.update(Referred, survey_id="s2", version=1, set={"reference": "A-1"})
    assert db.update(first, set={"reference": None}).version == 2
    assert db.update(Referred, survey_id="s2", version=1, set={"reference": "A-1"}).reference == "A-1"


def test_items_look_as_the_requirements_write_them(db: Store, opening: Opening) -> None:
    db.put(Section(survey_id="s1", section_id="roof", name="Roof", order=1))
    assert decode_item(opening.only(Section)) == {
        "PK": {"S": "TENANT#acme"},
        "SK": {"S": "SURVEY#s1#SECTION#roof"},
        "GSI2PK": {"S": "TENANT#acme#SURVEY#s1"},
        "GSI2SK": {"S": "SECTION#000001"},
        "_type": {"S": "Section"},
        "tenant_id": {"S": "acme"},
        "survey_id": {"S": "s1"},
        "section_id": {"S": "roof"},
        "name": {"S": "Roof"},
        "order": {"N": "1"},
        "notes": {"S": ""},
    }
