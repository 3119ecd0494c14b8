"""A batch of changes is one transaction (S4.24), and 16 editors of one survey do not conflict (S4.32)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from solotable.errors import NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.files import Image
from solotable.systems.surveys.entities.surveys import SurveyMeta, SurveySection
from solotable.systems.surveys.services.drafts import SectionPatch
from solotable.systems.surveys.services.survey.batch import MAX_CHANGES, BatchChange, batch_update
from solotable.systems.surveys.services.survey.parts import Sections

from .office import Office

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def change(kind: Any, part_id: str, version: int | None = None, **changes: Any) -> BatchChange:
    return BatchChange(kind=kind, id=part_id, version=version, set=changes)


def apply(office: Office, survey: SurveyMeta, *changes: BatchChange) -> list[Any]:
    return list(office.run(batch_update(office.store(), survey.survey_id, changes)))


def test_s4_24_a_batch_changes_all_parts_and_the_survey_in_one_transaction(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    element = office.element(section)
    component = office.component(element)
    office.sent()
    found = apply(
        office,
        survey,
        change("section", section.section_id, 1, notes="wet", completed_at=NOON.isoformat()),
        change("element", element.element_id, 1, condition="Poor"),
        change("component", component.component_id, None, material="Slate"),
        change("survey", survey.survey_id, 1, title="Changed"),
    )
    assert office.sent().count("TransactWriteItems") == 1
    assert [each.version for each in found] == [2, 2, 2, 2]
    assert (found[0].notes, found[1].condition, found[2].material) == ("wet", "Poor", "Slate")
    assert (found[3].title, found[3].completed_sections, found[3].changed) == ("Changed", 1, office.now())


def test_s4_24_c4_9_a_batch_with_a_missing_or_changed_part_writes_nothing(office: Office) -> None:
    survey, other = office.survey(), office.survey(title="Other")
    section, strange = office.section(survey), office.section(other)
    before = office.raw()
    for wrong, error in (
        (change("section", "none", None, notes="x"), NotFound),
        (change("section", strange.section_id, None, notes="x"), NotFound),
        (change("section", section.section_id, 7, notes="x"), VersionConflict),
    ):
        rest = [change("survey", survey.survey_id, None, title="x")]
        with pytest.raises(error):
            apply(office, survey, wrong, *rest)
    with pytest.raises(NotFound):
        office.run(batch_update(office.store(), "none", [change("survey", "none", None, title="x")]))
    assert office.raw() == before, "no ghost, and no part of a batch"


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ([], "at least one"),
        ([change("section", "a", None, notes="x")] * 2, "once"),
        ([change("survey", "another", None, title="x")], "one survey"),
        (
            [change("section", f"s{n}", None, notes="x") for n in range(MAX_CHANGES + 1)],
            "at most 97 .* got 98",
        ),
        ([change("section", "a", None, order="V")], "order"),
        ([change("section", "a", None, notes="n" * 5001)], "notes"),
    ],
)
def test_c4_9_what_cannot_be_a_batch_is_rejected_before_anything_is_sent(
    office: Office, changes: list[BatchChange], match: str
) -> None:
    survey = office.survey()
    office.sent()
    with pytest.raises(InvalidInput, match=match):
        apply(office, survey, *changes)
    assert office.sent() == []


def test_s4_24_a_batch_of_97_changes_fits(office: Office) -> None:
    survey = office.survey()
    store = office.beside()
    sections = [
        store.create(SurveySection(survey_id=survey.survey_id, name="n", order=f"A{n:03d}1"))
        for n in range(MAX_CHANGES)
    ]
    done = [change("section", each.section_id, 1, completed_at=NOON.isoformat()) for each in sections]
    assert len(apply(office, survey, *done)) == MAX_CHANGES
    stored = office.run(office.surveys().get(survey.survey_id, consistent=True))
    assert (stored.completed_sections, stored.changed) == (MAX_CHANGES, office.now())


def test_s4_24_photos_in_a_batch_are_recorded(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    image = office.beside().create(Image(sha256="a" * 64, name="a", mime="image/jpeg", size=1))
    apply(office, survey, change("section", section.section_id, None, photos=[image.image_id]))
    assert office.keys("IMAGEUSE#") == [
        f"IMAGEUSE#{image.image_id}#{survey.survey_id}#section#{section.section_id}"
    ]
    apply(office, survey, change("section", section.section_id, None, photos=[]))
    assert office.keys("IMAGEUSE#") == []


def test_s4_32_sixteen_editors_of_sixteen_sections_do_not_conflict(office: Office) -> None:
    survey = office.survey()
    sections = [office.section(survey, f"Room {number}") for number in range(16)]

    async def edit(section: SurveySection) -> None:
        service = Sections(office.contended().tenant("acme"), survey.survey_id)
        for number in range(1, 6):
            stored = await service.update(
                section.section_id, SectionPatch(notes=f"note {number}"), version=number
            )
            assert stored.version == number + 1
        await service.update(section.section_id, SectionPatch(completed_at=NOON), version=6)

    async def all_of_them() -> None:
        await asyncio.gather(*map(edit, sections))

    office.run(all_of_them())
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert [node.section.notes for node in tree.sections] == ["note 5"] * 16
    assert (tree.survey.section_count, tree.survey.completed_sections) == (16, 16)
