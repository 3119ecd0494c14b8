"""The table of the surveys: keys of each entity, what each index finds, and the table of access patterns."""

from __future__ import annotations

import runpy
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from solotable import AsyncStore
from solotable._protocol.requests import Query
from solotable.errors import NotFound
from solotable.systems.surveys import (
    Access,
    Document,
    Image,
    LibraryElementDraft,
    LibrarySectionDraft,
    Member,
    PhraseDraft,
    SectionPatch,
    SurveyComponent,
    SurveyConfig,
    SurveyElement,
    SurveyMeta,
    SurveySection,
    SurveySummary,
    Temp,
    TempData,
    TenantDraft,
    Tenants,
    surveyor,
)
from solotable.systems.surveys.entities.stored import Stored

from .office import Office

DOCS = Path(__file__).parents[3] / "docs"
SHA = "a" * 64


async def rows(store: AsyncStore, query: Any) -> list[Any]:
    return [each async for each in store.all(query)]


def item_of(office: Office, kind: str) -> dict[str, Any]:
    """Return the stored item of a class, of which there is one."""
    (found,) = (item for item in office.raw() if item["_type"] == {"S": kind})
    return {name: next(iter(value.values())) for name, value in found.items()}


def test_s4_5_tenants_images_and_access_have_their_keys(office: Office) -> None:
    office.run(Tenants(office.db).create(TenantDraft(id="acme", name="Acme")))
    tenant = item_of(office, "Tenant")
    assert (tenant["PK"], tenant["SK"]) == ("TENANT#acme", "METADATA")
    office.beside().create(
        Image(image_id="i", sha256=SHA, name="a.jpg", caption="Front", mime="image/jpeg", size=1)
    )
    image = item_of(office, "Image")
    assert (image["PK"], image["SK"], image["caption"]) == ("TENANT#acme", "IMAGE#i", "Front")
    office.survey(survey_id="s")
    access = item_of(office, "Access")
    # C4.17: the tenant is in the key.
    assert (access["PK"], access["SK"], access["role"]) == ("TENANT#acme#USER#ann", "SURVEY#s", "owner")


def test_s4_6_the_metadata_has_the_fields_of_the_design_and_no_content(office: Office) -> None:
    survey = office.survey(survey_id="s", address="Leeds", client_name="Ada")
    office.section(survey, notes="n" * 5000)
    stored = item_of(office, "SurveyMeta")
    assert (stored["PK"], stored["SK"]) == ("TENANT#acme", "SURVEY#s")
    wanted = {
        *("title", "address", "client_name", "status", "section_count", "completed_sections"),
        *("owner", "editors", "viewers"),
    }
    assert wanted <= set(stored)
    assert {"survey_date", "config_id"} <= set(SurveyMeta.model_fields)
    assert (stored["status"], stored["section_count"]) == ("draft", "1")
    assert not {"notes", "condition", "photos", "sections"} & set(SurveyMeta.model_fields)
    assert len(str(stored)) < 2000


def test_s4_8_an_element_has_its_section_and_sorts_in_it_by_order(office: Office) -> None:
    survey = office.survey(survey_id="s")
    section = office.section(survey, section_id="x")
    made = office.element(
        section,
        element_id="e",
        condition="N/A",
        defects=["d1"],
        notes="dry",
        measurements={"area": "150 m2", "pitch": "35"},
    )
    stored = item_of(office, "SurveyElement")
    assert (stored["PK"], stored["SK"]) == ("TENANT#acme", "SURVEY#s#ELEMENT#e")
    assert stored["GSI2PK"] == "TENANT#acme#SURVEY#s#SECTION#x"
    assert stored["GSI2SK"] == f"ELEMENT#{made.order}#e"
    assert stored["section_id"] == "x"
    read = office.run(office.elements(survey).get("e"))
    assert (read.defects, read.measurements) == (["d1"], {"area": "150 m2", "pitch": "35"})


def test_s4_9_a_component_has_its_element_and_a_material_of_the_library(office: Office) -> None:
    survey = office.survey(survey_id="s")
    element = office.element(office.section(survey), element_id="e")
    made = office.component(element, component_id="c", material="Clay", age="15", last_maintenance="2019")
    stored = item_of(office, "SurveyComponent")
    assert (stored["PK"], stored["SK"]) == ("TENANT#acme", "SURVEY#s#COMPONENT#c")
    assert stored["GSI2PK"] == "TENANT#acme#SURVEY#s#ELEMENT#e"
    # The order comes before the id, which the design has alone: components are in order too.
    assert stored["GSI2SK"] == f"COMPONENT#{made.order}#c"
    assert (stored["material"], stored["age"], stored["last_maintenance"]) == ("Clay", "15", "2019")
    assert set(Stored.model_fields) <= set(SurveyComponent.model_fields)


def test_s4_14_the_surveys_of_all_tenants_are_one_query_for_each_tenant(office: Office) -> None:
    for tenant in ("acme", "zeta"):
        office.run(Tenants(office.db).create(TenantDraft(id=tenant, name=tenant)))
        office.survey(tenant, title=f"of {tenant}")
    office.section(office.survey(title="second"))
    office.sent()
    found = office.run(Tenants(office.db).surveys())
    assert {(each.tenant_id, each.title) for each in found} == {
        *(("acme", "of acme"), ("acme", "second"), ("zeta", "of zeta"))
    }
    assert [request.index for request in office.journal.requests("Query") if isinstance(request, Query)] == [
        *("GSI1", "GSI1", "GSI1")
    ]
    assert office.sent() == ["Query"] * 3, "the tenants, and one for each"
    # All of a type in a tenant.
    assert len(office.run(rows(office.store(), SurveyMeta.listed()))) == 2


def test_s4_15_gsi2_finds_children_by_their_parent_in_order(office: Office) -> None:
    survey = office.survey()
    roof, walls = office.section(survey, "Roof"), office.section(survey, "Walls")
    render, brick = office.element(walls, "Render"), office.element(walls, "Brick")
    office.element(roof, "Gutters")
    for name in ("Lime", "Paint"):
        office.component(render, name)
    office.run(office.elements(survey).move(brick.element_id))
    newest = [office.run(office.configs().take(survey.survey_id)).config_id for _ in range(2)][::-1]
    store, survey_id = office.store(), survey.survey_id
    elements = office.run(rows(store, SurveyElement.of_section(survey_id, walls.section_id)))
    assert [each.name for each in elements] == ["Brick", "Render"]
    components = office.run(rows(store, SurveyComponent.of_element(survey_id, render.element_id)))
    assert [each.name for each in components] == ["Lime", "Paint"]
    sections = office.run(rows(store, SurveySection.of_survey(survey_id)))
    assert [each.name for each in sections] == ["Roof", "Walls"]
    configs = office.run(rows(store, SurveyConfig.of_survey(survey_id)))
    assert [each.config_id for each in configs] == newest


def test_s4_18_gsi5_lists_what_a_user_owns_in_a_tenant(office: Office) -> None:
    mine = office.survey(title="Mine")
    office.run(office.surveys().share(office.survey(title="Given").survey_id, owner="ben"))
    office.survey("zeta", title="Elsewhere")
    office.sent()
    found = office.run(rows(office.store(), SurveyMeta.of_owner("ann")))
    assert [(type(each), each.survey_id) for each in found] == [(SurveySummary, mine.survey_id)]
    assert office.sent() == ["Query"]
    given = office.run(rows(office.store(), SurveyMeta.of_owner("ben")))
    assert [each.title for each in given] == ["Given"], "the index follows a new owner"


def test_s4_20_each_query_of_the_library_is_one_request(office: Office) -> None:
    sections, elements, _ = office.library()
    roof = office.run(sections.create(LibrarySectionDraft(name="Roof")))
    tiles = office.run(elements.create(LibraryElementDraft(section_id=roof.section_id, name="Tiles")))
    phrases = office.phrases()
    office.run(
        phrases.create(PhraseDraft(kind="Defect", name="Rot", text="Rot.", element_ids=[tiles.element_id]))
    )
    office.run(phrases.create(PhraseDraft(kind="Condition", name="Fair", text="Fair.")))
    office.sent()
    assert [each.name for each in office.run(phrases.of_kind("Condition"))] == ["Fair"]
    assert office.sent() == ["Query"]
    assert [each.name for each in office.run(phrases.of_target("ELEMENT", tiles.element_id))] == ["Rot"]
    assert office.sent() == ["Query", "BatchGetItem"]


def test_s4_33_five_indexes_and_one_query_for_a_survey(office: Office) -> None:
    assert sorted(surveyor.indexes) == ["GSI1", "GSI2", "GSI3", "GSI4", "GSI5"]
    survey = office.survey()
    office.component(office.element(office.section(survey)))
    office.sent()
    office.run(office.surveys().whole(survey.survey_id))
    assert office.sent() == ["Query"]


def test_s4_44_the_table_of_access_patterns_is_generated_and_current() -> None:
    generate = runpy.run_path(str(DOCS / "generate.py"))
    page = DOCS / "reference" / "surveys-patterns.md"
    assert page.read_text() == generate["current"](page), "Run: python docs/generate.py"
    text = page.read_text()
    for index in (*surveyor.indexes, "the table"):
        assert f"| {index} |" in text, "no pattern reads this index"
    for number in range(1, 11):
        assert f"| Q{number}: " in text
    # C4.4: every partition of a tenant's data begins with it.
    generated = text.partition("<!-- generated: patterns -->")[2].partition("<!-- end -->")[0]
    for line in generated.splitlines()[3:]:
        _, name, _, condition, *_ = (cell.strip() for cell in line.split("|"))
        if name != "`Tenant.listed`":
            assert "PK = TENANT#{tenant_id}" in condition


def test_s4_45_every_item_has_its_keys_and_its_type_and_index_keys_have_their_names(office: Office) -> None:
    definition = surveyor.definition()
    assert [(each["AttributeName"], each["KeyType"]) for each in definition["KeySchema"]] == [
        *(("PK", "HASH"), ("SK", "RANGE"))
    ]
    for index in definition["GlobalSecondaryIndexes"]:
        name = index["IndexName"]
        assert [each["AttributeName"] for each in index["KeySchema"]] == [f"{name}PK", f"{name}SK"]
    kinds = {each["AttributeName"]: each["AttributeType"] for each in definition["AttributeDefinitions"]}
    assert set(kinds.values()) == {"S"}
    survey = office.survey()
    office.component(office.element(office.section(survey)))
    office.run(office.configs().take(survey.survey_id))
    for item in office.raw():
        # The log of the sync has a type of its own.
        assert item["_type"]["S"] in {*surveyor.plans, "_sync"}
        assert {"PK", "SK"} <= set(item)
        # Index keys come in pairs.
        assert all((f"GSI{n}PK" in item) == (f"GSI{n}SK" in item) for n in range(1, 6))


def test_s4_13_every_entity_has_an_id_times_a_version_a_sync_status_and_a_type(office: Office) -> None:
    for entity in (SurveyMeta, SurveySection, SurveyElement, SurveyComponent, Image, Document):
        assert {"tenant_id", "created", "updated", "version", "sync_status", "sync_error"} <= set(
            entity.model_fields
        )
    office.section(office.survey(survey_id="s"), section_id="x")
    stored = item_of(office, "SurveySection")
    assert (stored["tenant_id"], stored["version"], stored["sync_status"]) == ("acme", "1", "synced")
    with pytest.raises(ValidationError):
        SurveySection(survey_id="s", name="n", order="V", sync_status="lost")  # type: ignore[arg-type]  # wrong


def test_c4_6_every_update_moves_the_keys_of_gsi3_and_gsi4(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    before = item_of(office, "SurveySection")
    office.clock.seconds += 5
    office.run(office.sections(survey).update(section.section_id, SectionPatch(notes="x")))
    after = item_of(office, "SurveySection")
    assert after["GSI4SK"] > before["GSI4SK"]
    # The key has microseconds, the attribute what ISO 8601 writes of them.
    assert after["GSI4SK"].startswith(after["updated"][:19])
    key: dict[str, Any] = {"survey_id": survey.survey_id, "section_id": section.section_id}
    waiting: dict[str, Any] = {"sync_status": "pending", "waiting_since": office.now()}
    office.beside().update(SurveySection, version=2, set=waiting, **key)
    assert item_of(office, "SurveySection")["GSI3PK"] == "TENANT#acme#STATUS#pending"
    done: dict[str, Any] = {"sync_status": "synced", "waiting_since": None}
    office.beside().update(SurveySection, version=3, set=done, **key)
    assert "GSI3PK" not in item_of(office, "SurveySection")


def test_c4_16_a_note_is_in_no_index_and_an_index_holds_what_its_lists_show(office: Office) -> None:
    for index in surveyor.indexes.values():
        projected = surveyor.projection(index)
        assert projected["ProjectionType"] == "INCLUDE"
        assert not {"notes", "photos", "defects", "data"} & set(projected["NonKeyAttributes"])
    survey = office.survey()
    section = office.section(survey, notes="n" * 4000)
    office.clock.seconds += 1
    _, used = office.measured(
        office.sections(survey).update(section.section_id, SectionPatch(notes="m" * 4000))
    )
    written = {name.rpartition("/")[2]: units.wcu for name, units in used.indexes.items() if units.wcu}
    assert written == {"GSI4": 4.0}, "the place in time, and no copy of the note; a transaction counts twice"


def test_s4_42_temporary_data_expires_after_a_day(office: Office) -> None:
    data = TempData(office.store())
    stored = office.run(data.put("abc", {"step": 3}))
    item = item_of(office, "Temp")
    assert item["SK"] == "TEMP#SYNC#abc"
    assert int(item["ttl"]) == int((office.now() + timedelta(hours=24)).timestamp())
    assert surveyor.ttl == "ttl"
    assert office.run(data.get("abc")).data == stored.data == {"step": 3}
    office.clock.seconds += 24 * 3600 + 1
    with pytest.raises(NotFound):
        office.run(data.get("abc"))
    with pytest.raises(ValidationError):
        Temp(temp_id="forever")  # type: ignore[call-arg]  # without an end
    office.run(data.put("abc", {}))
    office.run(data.delete("abc"))
    with pytest.raises(NotFound):
        office.run(data.get("abc"))


def test_members_and_access_are_listed_by_tenant_and_by_user(office: Office) -> None:
    office.beside().create(Member(user_id="ann", name="Ann"))
    office.beside("zeta").create(Member(user_id="zed", name="Zed"))
    assert [each.user_id for each in office.run(rows(office.store(), Member.of_tenant()))] == ["ann"]
    office.survey(survey_id="s")
    assert [each.survey_id for each in office.run(rows(office.store(), Access.of_user("ann")))] == ["s"]
    assert office.run(rows(office.store("zeta"), Access.of_user("ann"))) == []
