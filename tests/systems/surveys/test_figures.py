"""What surveys cost: requests of a complete survey, units of an edit by index, editors at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solotable.systems.surveys.entities.surveys import SurveyComponent, SurveyElement, SurveySection
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.services.drafts import ElementPatch, SectionDraft, SectionPatch, SurveyDraft
from solotable.systems.surveys.services.survey.parts import Sections
from solotable.systems.surveys.services.survey.surveys import Surveys
from solotable.systems.surveys.table import surveyor
from tests.killing import Start

from .editing import EDITS, NOON, TENANT, edit_all
from .office import LOG_WCU, SYNCED_WRITE, Office, put_many

EDITORS = 16
PROCESSES = 2


def test_s4_31_a_survey_of_30_150_400_parts_is_one_query(office: Office) -> None:
    survey = office.survey(survey_id="tower")
    store = office.beside()
    notes = "n" * 470
    for number, order in enumerate(spread(30)):
        section = SurveySection(
            survey_id="tower", section_id=f"s{number}", name="Flat", order=order, notes=notes
        )
        store.create(section)
    with put_many(store) as batch:
        for number, order in enumerate(spread(150)):
            fields: dict[str, Any] = {"survey_id": "tower", "order": order, "notes": notes}
            batch.put(
                SurveyElement(element_id=f"e{number}", section_id=f"s{number % 30}", name="E", **fields)
            )
        for number, order in enumerate(spread(400)):
            fields = {"survey_id": "tower", "order": order, "notes": notes}
            batch.put(
                SurveyComponent(component_id=f"c{number}", element_id=f"e{number % 150}", name="C", **fields)
            )
    office.sent()
    tree, used = office.measured(office.surveys().whole(survey.survey_id))
    assert office.sent() == ["Query"]
    assert (len(tree.sections), len(list(tree.parts())), tree.orphans) == (30, 580, [])
    # 0.5 units for each 4 KB, so the items have 0.85 to 0.95 KB.
    assert 581 * 850 < used.rcu * 8192 < 581 * 950


@pytest.mark.parametrize(
    ("edit", "by_index"),
    [
        # GSI4 is by the time of the change: its entry moves, which is a delete and a put. Each counts twice
        # in a transaction.
        (lambda office, ids: office.edit_section(ids, notes="dry"), {"GSI4": 4.0}),
        (lambda office, ids: office.edit_section(ids, condition="Poor"), {"GSI2": 2.0, "GSI4": 4.0}),
        (lambda office, ids: office.edit_element(ids, notes="dry"), {"GSI4": 4.0}),
    ],
)
def test_s4_31_an_edit_writes_one_item_the_entries_that_show_it_and_its_log(
    office: Office, surveys_place: str, edit: Callable[[Any, Any], Any], by_index: dict[str, float]
) -> None:
    survey = office.survey()
    section = office.section(survey, notes="n" * 300)
    element = office.element(section)
    office.clock.seconds += 1
    office.sent()
    _, used = office.measured(edit(_Edits(office), (survey, section, element)))
    assert office.sent() == SYNCED_WRITE
    written = {name.rpartition("/")[2]: units.wcu for name, units in used.indexes.items() if units.wcu}
    assert written == by_index
    # DynamoDB Local rounds the size of all items of a transaction, not of each.
    if surveys_place != "local":
        assert used.wcu == 2.0 + sum(by_index.values()) + LOG_WCU


class _Edits:
    """The edits of a survey, section and element."""

    def __init__(self, office: Office) -> None:
        self._office = office

    def edit_section(self, ids: Any, **fields: Any) -> Any:
        return self._office.sections(ids[0]).update(ids[1].section_id, SectionPatch(**fields))

    def edit_element(self, ids: Any, **fields: Any) -> Any:
        return self._office.elements(ids[0]).update(ids[2].element_id, ElementPatch(**fields))


def test_s4_19_the_units_of_a_list_do_not_depend_on_the_size_of_surveys(office: Office) -> None:
    surveys = [office.survey(title=f"Survey {number}") for number in range(5)]
    _, before = office.measured(office.surveys().list())
    store = office.beside()
    for survey in surveys:
        for order in spread(5):
            store.create(
                SurveySection(survey_id=survey.survey_id, name="Room", order=order, notes="n" * 5000)
            )
    page, after = office.measured(office.surveys().list())
    assert [each.section_count for each in page] == [5] * 5
    assert (after.requests, after.rcu) == (before.requests, before.rcu)


def test_s4_32_sixteen_threads_edit_sixteen_sections_without_a_conflict(office: Office) -> None:
    survey = office.survey()
    for number in range(EDITORS):
        office.section(survey, f"Room {number}", section_id=f"room{number}")

    edit_all(office.contended, survey.survey_id, range(EDITORS))
    tree = office.run(office.surveys().whole(survey.survey_id, consistent=True))
    _check(tree)


def test_s4_32_sixteen_editors_in_processes_edit_sixteen_sections_without_a_conflict(
    tmp_path: Path, start: Start
) -> None:
    url = f"sqlite:///{tmp_path / 'surveys.db'}"

    async def prepare() -> None:
        async with surveyor.open_async(url) as db:
            store = db.tenant(TENANT)
            await Surveys(store).create(SurveyDraft(survey_id="tower"), owner="ann")
            for number in range(EDITORS):
                draft = SectionDraft(section_id=f"room{number}", name=f"Room {number}")
                await Sections(store, "tower").create(draft)

    async def read() -> Any:
        async with surveyor.open_async(url) as db:
            return await Surveys(db.tenant(TENANT)).whole("tower", consistent=True)

    asyncio.run(prepare())
    share = EDITORS // PROCESSES
    programs = [
        start("-m", "tests.systems.surveys.editing", url, "tower", str(first), str(first + share - 1))
        for first in range(0, EDITORS, share)
    ]
    for program in programs:
        program.end()
    assert [program.process.returncode for program in programs] == [0] * PROCESSES
    _check(asyncio.run(read()))


def _check(tree: Any) -> None:
    assert [node.section.notes for node in tree.sections] == [f"note {EDITS}"] * EDITORS
    assert {(node.section.version, node.section.completed_at) for node in tree.sections} == {
        (EDITS + 2, NOON)
    }
    assert (tree.survey.section_count, tree.survey.completed_sections) == (EDITORS, EDITORS)
