"""Snapshots of the configuration: atomic, immutable, of any size; and surveys that are created from one."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest

from solotable._protocol.requests import TransactWriteItems
from solotable._values.size import item_size
from solotable.errors import AlreadyExists, NotFound, StoredDataError, VersionConflict
from solotable.systems.surveys.entities.configs import SurveyConfigPart
from solotable.systems.surveys.entities.library import Component, Element, Phrase, Section
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.services.drafts import (
    LibrarySectionPatch,
    PhraseDraft,
    SectionPatch,
    SurveyDraft,
)

from .office import Office


def furnish(office: Office, sections: int = 2, elements: int = 2, components: int = 2) -> None:
    """Create a library."""
    store = office.beside()
    for order in spread(sections):
        section = store.create(Section(name=f"Section {order}", order=order))
        for of_element in spread(elements):
            element = store.create(Element(name="Element", section_id=section.section_id, order=of_element))
            for of_component in spread(components):
                store.create(
                    Component(
                        name="Component",
                        element_id=element.element_id,
                        order=of_component,
                        materials=[{"name": "Clay"}],  # type: ignore[list-item]  # as JSON has it
                    )
                )
    office.run(office.phrases().create(PhraseDraft(kind="Defect", name="Crack", text="It is cracked.")))


def shape(configuration: Any) -> list[tuple[str, list[int]]]:
    return [
        (section.name, [len(each.components) for each in section.elements])
        for section in configuration.sections
    ]


def test_s4_10_a_snapshot_is_the_library_at_one_moment(office: Office) -> None:
    furnish(office)
    survey = office.survey()
    head = office.run(office.configs().take(survey.survey_id, taken_by="ann"))
    stored = office.run(office.surveys().get(survey.survey_id, consistent=True))
    assert (stored.config_id, head.taken_by) == (head.config_id, "ann")
    taken = office.run(office.configs().get(survey.survey_id, head.config_id))
    assert [(counts) for _, counts in shape(taken)] == [[2, 2], [2, 2]]
    assert taken.sections[0].elements[0].components[0].materials[0].name == "Clay"
    assert [phrase.text for phrase in taken.phrases] == ["It is cracked."]


def test_s4_10_a_later_edit_of_the_library_changes_no_snapshot(office: Office) -> None:
    furnish(office)
    survey = office.survey()
    head = office.run(office.configs().take(survey.survey_id))
    before = office.run(office.configs().get(survey.survey_id, head.config_id))
    sections, _, _ = office.library()
    first = before.sections[0].section_id
    office.run(sections.update(first, LibrarySectionPatch(name="Renamed")))
    assert office.run(office.configs().get(survey.survey_id, head.config_id)) == before
    second = office.run(office.configs().take(survey.survey_id))
    renamed = office.run(office.configs().get(survey.survey_id, second.config_id))
    assert renamed.sections[0].name == "Renamed"
    listed = office.run(office.configs().list(survey.survey_id))
    assert [each.config_id for each in listed] == [second.config_id, head.config_id]


def test_s4_34_c4_11_a_snapshot_and_its_reference_are_one_transaction(office: Office) -> None:
    furnish(office)
    survey = office.survey()
    office.sent()
    office.run(office.configs().take(survey.survey_id))
    assert office.sent().count("TransactWriteItems") == 1
    before = office.raw()
    with pytest.raises(VersionConflict):
        office.run(office.configs().take(survey.survey_id, version=1))
    with pytest.raises(NotFound):
        office.run(office.configs().take("none"))
    assert office.raw() == before


def test_c4_11_a_large_snapshot_is_split_into_items_below_400_kb(office: Office) -> None:
    survey = office.survey()
    store = office.beside()
    noise = random.Random(7)
    for number in range(140):
        text = "".join(noise.choices(string.ascii_letters + string.digits, k=5000))
        store.create(Phrase(kind="Defect", name=f"Phrase {number}", text=text))
    head = office.run(office.configs().take(survey.survey_id))
    assert head.parts > 1
    assert all(item_size(item) < 400_000 for item in office.raw())
    assert len(office.run(office.configs().get(survey.survey_id, head.config_id)).phrases) == 140


def test_c4_11_reading_a_survey_does_not_read_its_snapshots(office: Office) -> None:
    furnish(office)
    survey = office.survey()
    _, before = office.measured(office.surveys().whole(survey.survey_id))
    for _ in range(3):
        office.run(office.configs().take(survey.survey_id))
    _, after = office.measured(office.surveys().whole(survey.survey_id))
    assert after.rcu == before.rcu


def test_a_snapshot_that_lost_a_part_raises_an_error(office: Office) -> None:
    furnish(office)
    survey = office.survey()
    head = office.run(office.configs().take(survey.survey_id))
    office.beside().delete(SurveyConfigPart, survey_id=survey.survey_id, config_id=head.config_id, number=0)
    with pytest.raises(StoredDataError, match="damaged, or a part of it is missing"):
        office.run(office.configs().get(survey.survey_id, head.config_id))


def test_a_survey_is_created_from_the_library(office: Office) -> None:
    furnish(office, sections=3, elements=4, components=5)
    survey = office.run(office.configs().create_survey(SurveyDraft(title="New"), owner="ann"))
    assert (survey.section_count, survey.preparing) == (3, False)
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    assert [[len(each.components) for each in node.elements] for node in tree.sections] == [[5] * 4] * 3
    assert tree.orphans == []


def test_a_survey_whose_creation_was_interrupted_is_finished_without_overwriting(office: Office) -> None:
    furnish(office, sections=2, elements=20, components=2)
    draft = SurveyDraft(survey_id="s1", title="New")

    def crash() -> None:
        raise KeyboardInterrupt

    # After the survey, its snapshot and both sections.
    office.watched.slip_in(TransactWriteItems, crash, after=4)
    with pytest.raises(KeyboardInterrupt):
        office.run(office.configs().create_survey(draft, owner="ann"))
    begun = office.run(office.surveys().get("s1", consistent=True))
    assert begun.preparing
    section = office.run(office.surveys().whole("s1", consistent=True)).sections[0].section
    office.run(office.sections(begun).update(section.section_id, SectionPatch(notes="edited")))
    survey = office.run(office.configs().create_survey(draft, owner="ann"))
    tree = office.run(office.surveys().whole("s1", consistent=True))
    assert (survey.section_count, survey.preparing, len(list(tree.parts()))) == (2, False, 2 + 40 + 80)
    assert tree.sections[0].section.notes == "edited"
    with pytest.raises(AlreadyExists):
        office.run(office.configs().create_survey(draft, owner="ann"))
