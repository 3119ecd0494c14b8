"""The migration from eight tables to one: nothing is lost, defaults, ways back, and live clients."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solotable.errors import MappingRejected, MigrationNotReady
from solotable.flow.requests import Query, TransactWriteItems
from solotable.systems.surveys import Configs, Surveys, surveyor
from solotable.systems.surveys.entities.access import Access, Tenant
from solotable.systems.surveys.entities.configs import SurveyConfig
from solotable.systems.surveys.entities.files import Document, Image, ImageUse
from solotable.systems.surveys.entities.library import Component, Element, Phrase, PhraseLink, Section
from solotable.systems.surveys.entities.queues import waiting
from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.migration import OLD_TABLES, DirtyData
from solotable.systems.surveys.migration.old_values import old_values
from solotable.systems.surveys.services.drafts import SectionDraft, SectionPatch, SurveyDraft
from solotable.systems.surveys.services.survey.parts import Sections

from .moving import SWITCH, Move

SMALL = DirtyData(tenants=2, surveys=6, sections=2, elements=2, components=1, library=2, phrases=4, images=4)
ONE = DirtyData(tenants=1, surveys=1, sections=2, elements=1, components=1, library=1, phrases=1, images=1)


def survey_item(survey_id: str = "s1", **content: Any) -> dict[str, Any]:
    return {
        "id": survey_id,
        "tenant_id": "tenant-0",
        "owner": "ann",
        "created": "2024-05-01T10:00:00Z",
        "updated": "2024-05-02T10:00:00Z",
        "content": json.dumps(content),
    }


def test_s4_2_all_eight_tables_are_moved(move: Move) -> None:
    counts = move.fill(SMALL)
    assert set(counts) == {table.name for table in OLD_TABLES}
    assert len(counts) == 8
    move.start()
    move.copy()
    assert move.diff().is_equal
    tags = [item["_type"]["S"] for item in move.stored()]
    for source, tag in (
        ("Tenants", "Tenant"),
        ("Surveys", "SurveyMeta"),
        ("Sections", "Section"),
        ("Elements", "Element"),
        ("Components", "Component"),
        ("Phrases", "Phrase"),
        ("ImageMetadata", "Image"),
    ):
        assert tags.count(tag) == counts[source], source
    assert tags.count("Document") + tags.count("_history:Document") == counts["DocumentRecord"]


@pytest.mark.in_process
def test_s4_1_pending_items_wait_for_the_sync_that_comes_after_the_move(move: Move) -> None:
    move.put("Surveys", {**survey_item(), "sync_key": "tenant-0#pending"})
    move.put("Surveys", {**survey_item("s2"), "sync_key": "tenant-0#failed", "sync_error": "timeout"})
    move.start()
    move.copy()
    store = move.new.tenant("tenant-0")
    assert [each.survey_id for each in store.all(waiting("pending"))] == ["s1"]
    (failed,) = store.all(waiting("failed"))
    assert failed.sync_error == "timeout"


@pytest.mark.in_process
def test_s4_3_a_moved_survey_is_one_query_of_its_tenant_and_of_no_other(move: Move) -> None:
    move.moved(SMALL)
    move.engine.requests.clear()
    tree = move.await_(Surveys(move.db.tenant("tenant-0")).whole("survey-0-1"))
    assert [type(each) for each in move.engine.requests] == [Query]
    assert (len(tree.sections), sum(len(each.elements) for each in tree.sections)) == (2, 4)
    assert move.new.tenant("tenant-1").get(SurveyMeta, survey_id="survey-0-1") is None


def test_s4_25_a_survey_is_split_into_its_parts_with_their_ids_and_nothing_is_lost(move: Move) -> None:
    element = {
        "id": "e1",
        "name": "Covering",
        "components": [{"id": "c1", "name": "Tiles", "material": "Clay"}],
    }
    section = {"id": "x1", "name": "Roof", "notes": "Leaks", "elements": [element], "inspector": "Bo"}
    move.put("Surveys", survey_item(title="12 Mill Lane", sections=[section], weather="dry"))
    move.start()
    move.copy()
    store = move.new.tenant("tenant-0")
    assert store.require(SurveySection, survey_id="s1", section_id="x1").notes == "Leaks"
    assert store.require(SurveyElement, survey_id="s1", element_id="e1").section_id == "x1"
    assert store.require(SurveyComponent, survey_id="s1", component_id="c1").material == "Clay"
    # What no field has is kept beside the fields.
    kept = old_values(store.require(SurveySection, survey_id="s1", section_id="x1"))
    assert json.loads(kept["old_fields"]) == {"inspector": "Bo"}
    assert json.loads(old_values(store.require(SurveyMeta, survey_id="s1"))["old_content"]) == {
        "weather": "dry"
    }


@pytest.mark.in_process
def test_s4_26_missing_fields_have_their_defaults(move: Move) -> None:
    component = {"id": "c1"}
    section = {"id": "x1", "elements": [{"id": "e1", "materials": ["Oak"], "components": [component]}]}
    move.put("Surveys", survey_item(sections=[section, {"id": "x2"}]))
    move.put("Sections", {"id": "l1", "tenant_id": "tenant-0"})
    move.start()
    move.copy()
    store = move.new.tenant("tenant-0")
    meta = store.require(SurveyMeta, survey_id="s1")
    assert (meta.title, meta.status, meta.version) == ("Untitled", "draft", 1)
    assert (meta.section_count, meta.completed_sections, meta.editors) == (2, 0, [])
    found = store.require(SurveyComponent, survey_id="s1", component_id="c1")
    assert (found.material, found.age, found.condition) == ("Unknown", "Unknown", "N/A")
    assert json.loads(old_values(found)["old_fields"]) == {"specifications": {}}
    element = store.require(SurveyElement, survey_id="s1", element_id="e1")
    assert (element.measurements, element.defects, element.photos) == ({}, [], [])
    assert json.loads(old_values(element)["old_fields"]) == {"materials": ["Oak"]}
    template = old_values(store.require(Section, section_id="l1"))
    assert template == {"is_active": True, "category": "General", "tags": []}


@pytest.mark.in_process
def test_c4_12_old_spellings_become_the_values_of_one_list_and_go_back(move: Move) -> None:
    sections = [{"id": f"x{at}", "condition": old} for at, old in enumerate(("very good", "BAD", "Unsure"))]
    move.put("Surveys", survey_item(status="published", sections=sections))
    move.start()
    move.copy()
    store = move.new.tenant("tenant-0")
    assert store.require(SurveyMeta, survey_id="s1").status == "completed"
    found = [store.require(SurveySection, survey_id="s1", section_id=f"x{at}").condition for at in range(3)]
    assert found == ["Excellent", "Poor", "N/A"]
    assert move.diff().is_equal
    move.migration.switch_writes(SWITCH)
    store.update(SurveySection, survey_id="s1", section_id="x1", set={"condition": "Good"}, version=1)
    move.catch_up()
    back = move.content_of("s1")
    assert back["status"] == "published"
    assert [each["condition"] for each in back["sections"]] == ["very good", "Good", "Unsure"]


@pytest.mark.in_process
def test_s4_27_library_phrases_images_and_a_snapshot_of_each_survey_are_written(move: Move) -> None:
    move.moved(SMALL)
    store = move.new.tenant("tenant-0")
    library = list(store.all(Section.library()))
    assert {type(each) for each in library} == {Section, Element, Component}
    kept = old_values(store.require(Section, section_id="section-0-1"))
    assert kept == {"category": "Outside", "is_active": True, "tags": []}
    defects, conditions = (list(store.all(Phrase.of_kind(kind))) for kind in ("Defect", "Condition"))
    assert (len(defects), len(conditions)) == (3, 1)
    assert list(store.all(PhraseLink.of_target("ELEMENT", "element-0-1")))
    assert len(list(store.all(Image.listed()))) == 4
    metas = list(store.all(SurveyMeta.listed()))
    assert len(metas) == 6
    for meta in metas:
        (head,) = store.all(SurveyConfig.of_survey(meta.survey_id))
        assert store.require(SurveyMeta, survey_id=meta.survey_id).config_id == head.config_id
        configuration = move.await_(Configs(move.db.tenant("tenant-0")).get(meta.survey_id, head.config_id))
        assert len(configuration.sections) == meta.section_count == 2
        assert store.get(Access, user_id=meta.owner, survey_id=meta.survey_id) is not None


@pytest.mark.in_process
def test_s4_27_counters_of_the_library_are_exact_after_the_switch(move: Move) -> None:
    move.moved(SMALL)
    move.put("Elements", {"id": "late", "tenant_id": "tenant-0", "section_id": "section-0-0", "name": "Late"})
    move.catch_up()
    assert move.diff().is_equal
    move.migration.switch_writes(SWITCH)
    store = move.new.tenant("tenant-0")
    assert store.require(Section, section_id="section-0-0").element_count == 3
    assert store.require(Element, element_id="element-0-0").component_count == 1


def test_s4_28_a_rollback_loses_no_write_and_old_tables_are_kept_for_30_days(move: Move) -> None:
    move.moved(ONE)
    # Until the switch, writes of the old tables reach the new one.
    move.put("Surveys", survey_item(title="Before", sections=[{"id": "x1", "name": "Roof"}]))
    move.catch_up()
    assert move.diff().is_equal
    move.migration.switch_writes(SWITCH)
    store = move.db.tenant("tenant-0")
    move.await_(Sections(store, "s1").update("x1", SectionPatch(notes="written to the new table")))
    created = move.await_(Surveys(store).create(SurveyDraft(title="New"), owner="ben"))
    move.await_(Sections(store, created.survey_id).create(SectionDraft(name="Cellar")))
    move.await_(Surveys(store).delete("survey-0-0"))
    move.catch_up()
    assert move.diff().is_equal
    move.migration.reverse(SWITCH)
    assert move.content_of("s1")["sections"][0]["notes"] == "written to the new table"
    new = move.content_of(created.survey_id)
    assert (new["title"], [each["name"] for each in new["sections"]]) == ("New", ["Cellar"])
    assert move.old_item("Surveys", id="survey-0-0") is None
    move.catch_up()
    report = move.diff()
    assert report.is_equal, report.to_json()
    move.migration.switch_writes(SWITCH)
    move.catch_up()
    move.diff()
    ended = move.migration.complete(park_days=30)
    assert ended is not None
    assert move.old_item("Surveys", id="s1") is not None


def test_s4_29_production_like_data_moves_under_writers_and_is_verified(move: Move) -> None:
    move.fill(SMALL)
    move.start()
    worker = Steps(move)
    for number in range(40):
        # Clients edit, add and delete between the steps of the migration.
        title = f"edit {number}"
        move.put(
            "Surveys", survey_item(f"survey-0-{number % 8}", title=title, sections=[{"id": f"x{number % 3}"}])
        )
        if number % 5 == 0:
            move.delete("Surveys", id=f"survey-1-{number // 5}")
        worker.step()
    worker.finish()
    report = move.diff()
    assert report.is_equal, report.to_json()
    titles = {each.title for each in move.new.tenant("tenant-0").all(SurveyMeta.listed())}
    assert {f"edit {number}" for number in range(32, 40)} <= titles


class Steps:
    """A worker that a test drives step by step."""

    def __init__(self, move: Move) -> None:
        from solotable.migrations.worker import Worker

        self._move = move
        self._worker = Worker(move.migration)

    def step(self) -> None:
        self._worker.step()

    def finish(self) -> None:
        self._worker.release()
        self._move.copy()
        self._move.catch_up()


@pytest.mark.in_process
def test_s4_30_a_cutover_needs_an_equal_comparison_and_goes_by_steps(move: Move) -> None:
    move.fill(ONE)
    move.start()
    move.copy()
    with pytest.raises(MigrationNotReady):
        move.migration.switch_reads(10)
    assert move.diff().is_equal
    for percent in (10, 50, 100):
        assert move.migration.switch_reads(percent).reads_percent == percent
    with pytest.raises(MigrationNotReady):
        move.migration.complete()
    move.migration.switch_writes(SWITCH)
    move.catch_up()
    with pytest.raises(MigrationNotReady):
        move.migration.complete()
    assert move.diff().is_equal
    assert move.migration.complete(keep_data=True) is not None
    assert all(not any(name.startswith("_migration") for name in item) for item in move.stored())


@pytest.mark.in_process
def test_c4_17_the_copy_overwrites_no_newer_write(move: Move) -> None:
    move.fill(ONE)
    move.start()
    worker = Steps(move)
    for number in range(6):
        move.put("Surveys", survey_item("survey-0-0", title=f"newer {number}"))
        worker.step()
    worker.finish()
    assert move.new.tenant("tenant-0").require(SurveyMeta, survey_id="survey-0-0").title == "newer 5"
    assert move.diff().is_equal


@pytest.mark.in_process
def test_an_unusable_survey_is_a_dead_letter_until_it_is_repaired(move: Move) -> None:
    move.fill(DirtyData(tenants=1, surveys=1, unusable=0, library=0, phrases=0, images=0, documents=0))
    move.start()
    move.copy()
    broken = survey_item("broken", sections=[{"id": "s", "notes": "x" * 5001}])
    move.put("Surveys", broken)
    move.catch_up()
    (letter,) = move.migration.dead_letters()
    assert letter.key == {"id": {"S": "broken"}}
    assert "notes: String should have at most 5000 characters" in letter.cause
    report = move.diff()
    assert (report.dead_letters, report.exit_code) == (1, 1)
    with pytest.raises(MigrationNotReady):
        move.migration.switch_writes(SWITCH)
    move.put("Surveys", survey_item("broken", sections=[{"id": "s", "notes": "short"}]))
    move.catch_up()
    assert move.migration.dead_letters() == []
    assert move.diff().is_equal


@pytest.mark.in_process
def test_a_mapping_that_cannot_accept_the_data_is_refused_before_the_start(move: Move) -> None:
    move.put("Surveys", survey_item("broken", sections=[{"id": "s", "notes": "x" * 5001}]))
    with pytest.raises(MappingRejected, match="at most 5000 characters"):
        move.migration.create()


@pytest.mark.in_process
def test_the_documents_of_the_old_table_keep_their_versions(move: Move) -> None:
    move.moved(DirtyData(tenants=1, surveys=0, documents=4, library=0, phrases=0, images=0))
    store = move.new.tenant("tenant-0")
    document = store.require(Document, document_id="document-3")
    assert document.version == 5
    versions = [each.version for each in store.history(Document, document_id="document-3").list(limit=10)]
    assert versions == [4, 3, 2, 1]
    updated = store.update(Document, document_id="document-3", version=5, set={"name": "Newer"})
    assert updated.version == 6


@pytest.mark.in_process
def test_photos_of_parts_are_recorded_for_their_images(move: Move) -> None:
    move.put("Surveys", survey_item(sections=[{"id": "x1", "photos": ["i1", "i1", "i2"]}]))
    move.start()
    move.copy()
    uses = list(move.new.tenant("tenant-0").all(ImageUse.of_survey("s1")))
    assert [(each.image_id, each.part_kind, each.part_id) for each in uses] == [
        ("i1", "section", "x1"),
        ("i2", "section", "x1"),
    ]


@pytest.mark.in_process
def test_an_image_that_is_deleted_after_the_switch_is_deleted_in_the_old_table_too(move: Move) -> None:
    move.moved(ONE)
    move.migration.switch_writes(SWITCH)
    store = move.new.tenant("tenant-0")
    # A deleted image stays in the table until it is purged.
    store.delete(Image, image_id="image-0-0", version=1)
    move.catch_up()
    assert move.old_item("ImageMetadata", id="image-0-0") is None
    store.undelete(Image, image_id="image-0-0")
    move.catch_up()
    assert move.old_item("ImageMetadata", id="image-0-0") is not None
    assert move.diff().is_equal


@pytest.mark.in_process
def test_a_tenant_moves_alone(move: Move) -> None:
    from solotable.migrations.migration import Migration
    from solotable.systems.surveys.migration import survey_mapping

    move.fill(SMALL)
    move.mapping = survey_mapping(tenant_id="tenant-1")
    move.migration = Migration(
        "one", move.mapping, sources=move.old, target=move.new, control_table=f"{move.prefix}control"
    )
    move.start()
    move.copy()
    assert move.diff().is_equal
    assert move.new.get(Tenant, id="tenant-0") is None
    assert move.new.get(Tenant, id="tenant-1") is not None
    assert {item["tenant_id"]["S"] for item in move.stored() if "tenant_id" in item} == {"tenant-1"}


def test_c4_10_a_section_with_more_than_25_elements_fits_the_limits_of_requests(move: Move) -> None:
    elements = [{"id": f"e{at}", "name": f"Element {at}"} for at in range(140)]
    move.put("Surveys", survey_item(sections=[{"id": "x1", "elements": elements}]))
    move.start()
    move.engine.requests.clear()
    move.copy()
    sizes = [len(each.actions) for each in move.engine.requests if isinstance(each, TransactWriteItems)]
    assert max(sizes) <= 100
    assert sum(sizes) >= 140
    assert len(list(move.new.tenant("tenant-0").all(SurveyElement.of_section("s1", "x1")))) == 140
    assert surveyor.name == "SurveyorData"
