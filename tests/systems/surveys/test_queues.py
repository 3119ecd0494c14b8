"""What waits for its synchronisation (S4.16), and what was changed lately (S4.17)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from solotable import Query
from solotable.systems.surveys.entities.queues import changed_since, waiting
from solotable.systems.surveys.entities.surveys import SurveyElement, SurveySection
from solotable.systems.surveys.services.drafts import ElementPatch, LibrarySectionDraft

from .office import Office


def classes(office: Office, query: Query[Any], tenant: str = "acme") -> list[str]:
    async def read() -> list[str]:
        return [type(each).__name__ async for each in office.store(tenant).all(query)]

    return office.run(read())


def test_s4_16_q9_what_waits_is_read_oldest_first_and_what_is_synced_is_not_there(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    element = office.element(section)
    store = office.beside()
    since = office.now()
    later: dict[str, Any] = {"sync_status": "pending", "waiting_since": since + timedelta(seconds=9)}
    earlier: dict[str, Any] = {"sync_status": "pending", "waiting_since": since}
    section_key: dict[str, Any] = {"survey_id": survey.survey_id, "section_id": section.section_id}
    store.update(SurveySection, version=1, set=later, **section_key)
    element_key: dict[str, Any] = {"survey_id": survey.survey_id, "element_id": element.element_id}
    store.update(SurveyElement, version=1, set=earlier, **element_key)
    assert classes(office, waiting("pending")) == ["SurveyElement", "SurveySection"]
    assert classes(office, waiting("failed")) == []
    assert classes(office, waiting("pending"), "zeta") == []
    failed: dict[str, Any] = {"sync_status": "failed", "sync_error": "too large"}
    store.update(SurveyElement, version=2, set=failed, **element_key)
    assert classes(office, waiting("failed")) == ["SurveyElement"]
    done: dict[str, Any] = {"sync_status": "synced", "waiting_since": None}
    store.update(SurveyElement, version=3, set=done, remove=["sync_error"], **element_key)
    assert (classes(office, waiting("failed")), classes(office, waiting("synced"))) == ([], [])
    assert sum("GSI3PK" in item for item in office.raw()) == 1, "the index is sparse"


def test_s4_17_c4_6_q10_every_change_moves_an_item_to_the_end(office: Office) -> None:
    survey = office.survey()
    office.clock.seconds += 1
    section = office.section(survey)
    office.clock.seconds += 1
    element = office.element(section)
    office.clock.seconds += 1
    office.run(office.library()[0].create(LibrarySectionDraft(name="Roof")))
    start = office.now() - timedelta(seconds=2)
    assert classes(office, changed_since(start)) == ["SurveySection", "SurveyElement", "Section"]
    office.clock.seconds += 1
    office.run(office.elements(survey).update(element.element_id, ElementPatch(notes="x")))
    assert classes(office, changed_since(start)) == ["SurveySection", "Section", "SurveyElement"]
    assert classes(office, changed_since(office.now())) == ["SurveyElement"]
    assert classes(office, changed_since(office.now() + timedelta(seconds=1))) == []
    assert classes(office, changed_since(start), "zeta") == []
