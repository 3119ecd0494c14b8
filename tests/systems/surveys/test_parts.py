"""Parts of a survey: what an edit writes and costs, order, moves, deletes with children, photos, limits."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from solotable import AsyncDatabase
from solotable._connect import to_async
from solotable._protocol.requests import TransactWriteItems
from solotable.errors import AlreadyExists, NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.files import Image, ImageUse
from solotable.systems.surveys.entities.surveys import SurveyElement, SurveySection
from solotable.systems.surveys.errors import ParentGone
from solotable.systems.surveys.services.drafts import (
    ComponentDraft,
    ComponentPatch,
    ElementDraft,
    ElementPatch,
    SectionDraft,
    SectionPatch,
)
from solotable.systems.surveys.services.survey.parts import Elements, Sections

from .office import LOG_WCU, SYNCED_WRITE, Office

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def names(office: Office, survey: Any) -> list[str]:
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    return [node.section.name for node in tree.sections]


def image(office: Office, digit: str) -> str:
    """Register an image and return its id."""
    return (
        office.beside()
        .create(Image(sha256=digit * 64, name=f"{digit}.jpg", mime="image/jpeg", size=1))
        .image_id
    )


def uses(office: Office) -> list[tuple[str, str]]:
    return sorted(
        (item["image_id"]["S"], item["part_id"]["S"])
        for item in office.raw()
        if item["_type"] == {"S": "ImageUse"}
    )


def test_s4_31_an_edit_of_a_section_is_one_write_of_one_unit_and_its_place_in_time(
    office: Office, surveys_place: str
) -> None:
    survey = office.survey()
    section = office.section(survey, notes="n" * 300)
    office.sent()
    office.clock.seconds += 1
    _, used = office.measured(office.sections(survey).update(section.section_id, SectionPatch(notes="dry")))
    assert office.sent() == SYNCED_WRITE
    by_index = {name.rpartition("/")[2]: units.wcu for name, units in used.indexes.items() if units.wcu}
    # GSI4 is by the time of the change: its entry moves, which is a delete and a put.
    # A transaction counts twice, and the log of the sync is two more items.
    assert by_index == {"GSI4": 4.0}
    # DynamoDB Local rounds the size of all items of a transaction, not of each.
    if surveys_place != "local":
        assert used.wcu == 2.0 + 4.0 + LOG_WCU


def test_s4_23_an_edit_changes_what_is_given_and_needs_the_part(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey, notes="old", condition="Good")
    changed = office.run(office.sections(survey).update(section.section_id, SectionPatch(notes="new")))
    assert (changed.notes, changed.condition, changed.name, changed.version) == ("new", "Good", "Roof", 2)
    element = office.element(section, measurements={"area": "150 m2"})
    patched = office.run(
        office.elements(survey).update(element.element_id, ElementPatch(condition="Poor", defects=["d1"]))
    )
    assert (patched.measurements, patched.condition, patched.defects) == ({"area": "150 m2"}, "Poor", ["d1"])
    component = office.component(element, material="Clay")
    worn = office.run(
        office.components(survey).update(component.component_id, ComponentPatch(age="15 years"))
    )
    assert (worn.material, worn.age) == ("Clay", "15 years")
    for parts, patch in (
        (office.sections(survey), SectionPatch(notes="x")),
        (office.elements(survey), ElementPatch(notes="x")),
        (office.components(survey), ComponentPatch(notes="x")),
    ):
        with pytest.raises(NotFound):
            office.run(parts.update("none", patch))
    assert len(office.keys("SURVEY#")) == 4, "no ghost"


def test_s4_39_an_edit_of_a_stale_version_is_a_conflict(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    sections = office.sections(survey)
    office.run(sections.update(section.section_id, SectionPatch(notes="A"), version=1))
    with pytest.raises(VersionConflict):
        office.run(sections.update(section.section_id, SectionPatch(notes="B"), version=1))
    with pytest.raises(VersionConflict):
        office.run(sections.delete(section.section_id, version=1))
    assert office.run(sections.get(section.section_id)).notes == "A"


def test_s4_7_s4_15_c4_3_parts_are_in_order_beyond_ten_of_them(office: Office) -> None:
    survey = office.survey()
    wanted = [f"Room {number}" for number in range(1, 13)]
    for name in wanted:
        office.section(survey, name)
    assert names(office, survey) == wanted


def stored(office: Office) -> dict[str, Any]:
    """Return the items of the tenant by their sort keys, without the log of the sync."""
    return {item["SK"]["S"]: item for item in office.raw() if item["_type"]["S"] != "_sync"}


def test_c4_3_a_move_writes_one_item(office: Office) -> None:
    survey = office.survey()
    a, b, c = (office.section(survey, name) for name in "abc")
    sections = office.sections(survey)
    before = stored(office)
    office.run(sections.move(c.section_id))
    after = stored(office)
    assert [key for key in after if after[key] != before[key]] == [
        f"SURVEY#{survey.survey_id}#SECTION#{c.section_id}"
    ]
    assert names(office, survey) == ["c", "a", "b"]
    office.run(sections.move(c.section_id, after=a.section_id))
    assert names(office, survey) == ["a", "c", "b"]
    office.run(sections.move(a.section_id, after=b.section_id))
    assert names(office, survey) == ["c", "b", "a"]
    office.section(survey, "d", after=c.section_id)
    assert names(office, survey) == ["c", "d", "b", "a"]
    with pytest.raises(InvalidInput, match="this section does not exist here"):
        office.run(sections.move(a.section_id, after="none"))


def test_c4_3_order_keys_that_are_used_up_are_spread(office: Office) -> None:
    survey = office.survey()
    first, last = office.section(survey, "first"), office.section(survey, "last")
    store = office.beside()
    for section, order in ((first, "A"), (last, "A" + "0" * 62 + "1")):
        store.update(
            SurveySection,
            survey_id=survey.survey_id,
            section_id=section.section_id,
            version=1,
            set={"order": order},
        )
    office.section(survey, "between", after=first.section_id)
    assert names(office, survey) == ["first", "between", "last"]


def test_an_element_moves_to_another_section_of_its_survey(office: Office) -> None:
    survey, other = office.survey(), office.survey(title="Other")
    roof, walls = office.section(survey, "Roof"), office.section(survey, "Walls")
    strange = office.section(other, "Elsewhere")
    element = office.element(roof)
    elements = office.elements(survey)
    moved = office.run(elements.move(element.element_id, to=walls.section_id))
    assert moved.section_id == walls.section_id
    listed = office.run(_all(office, SurveyElement.of_section(survey.survey_id, walls.section_id)))
    assert [each.element_id for each in listed] == [element.element_id]
    assert office.run(_all(office, SurveyElement.of_section(survey.survey_id, roof.section_id))) == []
    with pytest.raises(ParentGone):
        office.run(elements.move(element.element_id, to=strange.section_id))


async def _all(office: Office, query: Any) -> list[Any]:
    return [each async for each in office.store().all(query)]


def test_of_two_who_move_the_same_element_one_gets_a_conflict(office: Office) -> None:
    survey = office.survey()
    roof, walls, floor = (office.section(survey, name) for name in ("Roof", "Walls", "Floor"))
    element = office.element(roof)
    elements = office.elements(survey)
    office.run(elements.move(element.element_id, to=walls.section_id, version=1))
    with pytest.raises(VersionConflict):
        office.run(elements.move(element.element_id, to=floor.section_id, version=1))
    assert office.run(elements.get(element.element_id)).section_id == walls.section_id


def test_a_part_needs_its_parent_in_the_same_survey(office: Office) -> None:
    survey, other = office.survey(), office.survey(title="Other")
    strange = office.section(other)
    with pytest.raises(ParentGone, match="The section does not exist in this survey"):
        office.run(office.elements(survey).create(ElementDraft(section_id=strange.section_id, name="x")))
    with pytest.raises(ParentGone, match="The element"):
        office.run(office.components(survey).create(ComponentDraft(element_id="none", name="x")))
    with pytest.raises(ParentGone, match="The survey"):
        office.run(Sections(office.store(), "none").create(SectionDraft(name="x")))
    section = office.section(survey, section_id="x1")
    with pytest.raises(AlreadyExists):
        office.section(survey, section_id=section.section_id)


def test_c4_20_the_counters_follow_their_sections(office: Office) -> None:
    survey = office.survey()
    roof, walls = office.section(survey, "Roof"), office.section(survey, "Walls")
    sections = office.sections(survey)

    def counts() -> tuple[int, int, int]:
        found = office.run(office.surveys().get(survey.survey_id, consistent=True))
        return found.section_count, found.completed_sections, found.version

    assert counts() == (2, 0, 1)
    done = SectionPatch(completed_at=NOON, completed_by="ann")
    for _ in range(2):
        office.run(sections.update(roof.section_id, done))
    assert counts() == (2, 1, 1), "twice is once, and the survey's version stays"
    office.run(sections.update(roof.section_id, SectionPatch(completed_at=None)))
    assert counts() == (2, 0, 1)
    office.run(sections.update(walls.section_id, done))
    office.run(sections.delete(walls.section_id))
    assert counts() == (1, 0, 1)


def test_a_section_is_deleted_with_its_children(office: Office) -> None:
    survey = office.survey()
    roof, walls = office.section(survey, "Roof"), office.section(survey, "Walls")
    element = office.element(roof)
    for name in "ab":
        office.component(element, name)
    office.element(walls, "Brick")
    assert office.run(office.sections(survey).delete(roof.section_id)) == 4
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert [(node.section.name, len(node.elements)) for node in tree.sections] == [("Walls", 1)]
    assert tree.orphans == []
    with pytest.raises(NotFound):
        office.run(office.sections(survey).delete(roof.section_id))


def test_nothing_is_added_to_a_section_that_is_being_deleted(office: Office) -> None:
    survey = office.survey()
    roof = office.section(survey)
    office.element(roof)
    refused = []

    def add() -> None:
        """Add an element from another process, whose event loop runs in another thread."""
        store = AsyncDatabase(to_async(office.engine), office.blocking.scope).tenant("acme")
        draft = ElementDraft(section_id=roof.section_id, name="late")
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(lambda: asyncio.run(Elements(store, survey.survey_id).create(draft)))
            refused.append(done.exception())

    # The section is marked; its elements are deleted next.
    office.watched.slip_in(TransactWriteItems, add, after=1)
    office.run(office.sections(survey).delete(roof.section_id))
    assert [type(error) for error in refused] == [ParentGone]
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert (tree.sections, tree.orphans) == ([], [])


def test_a_delete_that_was_interrupted_is_finished_by_the_next(office: Office) -> None:
    survey = office.survey()
    roof = office.section(survey)
    element = office.element(roof)
    office.component(element)

    def crash() -> None:
        raise KeyboardInterrupt

    office.watched.slip_in(TransactWriteItems, crash, after=1)
    with pytest.raises(KeyboardInterrupt):
        office.run(office.sections(survey).delete(roof.section_id))
    assert office.run(office.sections(survey).get(roof.section_id, consistent=True)).deleting
    office.run(office.sections(survey).delete(roof.section_id))
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert (tree.sections, tree.orphans, tree.survey.section_count) == ([], [], 0)


def test_photos_are_recorded_where_they_are_shown(office: Office) -> None:
    survey = office.survey()
    a, b = image(office, "a"), image(office, "b")
    section = office.section(survey, photos=[a])
    assert uses(office) == [(a, section.section_id)]
    sections = office.sections(survey)
    office.run(sections.update(section.section_id, SectionPatch(photos=[b])))
    assert uses(office) == [(b, section.section_id)]
    listed = office.run(_all(office, ImageUse.of_survey(survey.survey_id)))
    assert [(each.image_id, each.part_kind) for each in listed] == [(b, "section")]
    with pytest.raises(InvalidInput, match="an image does not exist"):
        office.run(sections.update(section.section_id, SectionPatch(photos=[b, "none"])))
    with pytest.raises(InvalidInput, match="an image does not exist"):
        office.section(survey, photos=["none"])
    with pytest.raises(InvalidInput, match="each image is given once"):
        office.run(sections.update(section.section_id, SectionPatch(photos=[a, a])))
    assert uses(office) == [(b, section.section_id)]
    office.run(sections.delete(section.section_id))
    assert uses(office) == []


@pytest.mark.parametrize(
    ("field", "fits", "too_much"),
    [
        ("name", "n" * 100, "n" * 101),
        ("name", "n", ""),
        ("notes", "n" * 5000, "n" * 5001),
        ("condition", "Excellent", "Great"),
        ("photos", [f"i{number}" for number in range(50)], [f"i{number}" for number in range(51)]),
        ("section_id", "a" * 64, "a" * 65),
        ("section_id", "a.b:c-d_"[:7], "a b"),
    ],
)
def test_s4_41_the_limits_of_a_section(field: str, fits: Any, too_much: Any) -> None:
    SectionDraft(**{"name": "n", field: fits})
    with pytest.raises(ValidationError):
        SectionDraft(**{"name": "n", field: too_much})


def test_c4_14_control_characters_go_and_lines_stay(office: Office) -> None:
    survey = office.survey(title="12\tMill\nLane\x00")
    assert survey.title == "12 Mill Lane"
    section = office.section(survey, notes="one\r\ntwo\x07\n\tthree\x9f")
    assert section.notes == "one\ntwo\n\tthree"
    changed = office.run(office.sections(survey).update(section.section_id, SectionPatch(notes="a\rb\x1b")))
    assert changed.notes == "a\nb"
    backwards = SectionPatch(name="\u202etxet\u2066", notes="\u200f\u05d0 \u2028b")
    assert (backwards.name, backwards.notes) == ("txet", "\u200f\u05d0 b"), "a mark of direction stays"
    assert office.run(office.sections(survey).get(section.section_id, consistent=True)).notes == "a\nb"
