"""Form status: what is missing to complete a section."""

from __future__ import annotations

from typing import Any

import pytest

from solotable.errors import NotFound
from solotable.systems.surveys.entities.configs import (
    ComponentTemplate,
    Configuration,
    ElementTemplate,
    SectionTemplate,
)
from solotable.systems.surveys.entities.library import Material
from solotable.systems.surveys.entities.surveys import Part, SurveyMeta
from solotable.systems.surveys.services.drafts import SurveyDraft
from solotable.systems.surveys.services.survey.form_status import FormStatus, form_status, read_form_status
from solotable.systems.surveys.services.survey.tree import build_tree

from .office import Office
from .test_configs import furnish
from .test_report import component, element, section

SLATES = ComponentTemplate(
    component_id="slates", name="Slates", order="1", materials=[Material(name="Slate"), Material(name="Clay")]
)
CONFIGURATION = Configuration(
    sections=[
        SectionTemplate(
            section_id="roof",
            name="Roof",
            order="1",
            elements=[ElementTemplate(element_id="cover", name="Cover", order="1", components=[SLATES])],
        )
    ]
)


def status_of(*parts: Part, configuration: Configuration | None = CONFIGURATION) -> FormStatus:
    survey = SurveyMeta(survey_id="s-1", title="12 Mill Lane", owner="ann")
    return form_status(build_tree(survey, parts), configuration)


def missing(*parts: Part, configuration: Configuration | None = CONFIGURATION) -> list[tuple[str, str]]:
    status = status_of(section(), *parts, configuration=configuration)
    return [(each.part_id, each.field) for each in status.sections[0].missing]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, [("cover", "condition")]),
        ({"notes": "  \n"}, [("cover", "condition")]),
        ({"notes": "Not reachable."}, []),
        ({"condition": "Good"}, []),
        ({"condition": "Poor"}, [("cover", "photos")]),
        ({"condition": "Poor", "photos": ["p1"]}, []),
    ],
)
def test_an_element_needs_a_condition_or_a_reason_and_a_photo_if_it_is_poor(
    fields: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert missing(element(**fields)) == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"condition": "Good"}, ["material"]),
        ({"condition": "Good", "material": "unknown"}, ["material"]),
        ({"condition": "Good", "material": "Slate"}, []),
        ({"condition": "Good", "material": "Straw"}, ["material"]),
        ({"material": "Slate"}, ["condition"]),
        ({"notes": "Removed in 2010."}, []),
        ({"condition": "Poor", "material": "Clay"}, ["photos"]),
        ({"condition": "Poor", "material": "Clay", "photos": ["p1"]}, []),
    ],
)
def test_a_component_needs_a_condition_and_an_offered_material(
    fields: dict[str, Any], found: list[str]
) -> None:
    parts = (element(condition="Good"), component("slates", **fields))
    assert missing(*parts) == [("slates", field) for field in found]


def test_a_photo_of_the_element_is_enough_for_its_components() -> None:
    poor = component("slates", condition="Poor", material="Clay")
    assert missing(element(condition="Good", photos=["p1"]), poor) == []


def test_without_a_list_any_material_is_one() -> None:
    parts = (element(condition="Good"), component("slates", condition="Good", material="Straw"))
    assert missing(*parts, configuration=None) == []
    assert missing(*parts, configuration=Configuration()) == []


def test_a_missing_material_names_those_that_are_offered() -> None:
    status = status_of(section(), element(condition="Good"), component("slates", condition="Good"))
    (found,) = status.sections[0].missing
    assert found.advice == "Choose a material: Slate, Clay."


def test_a_section_without_elements_needs_a_condition_or_notes() -> None:
    assert missing() == [("roof", "condition")]
    assert status_of(section(condition="Fair")).is_complete
    assert status_of(section(notes="Not inspected.")).is_complete
    # With elements, the elements say it.
    assert status_of(section(), element(condition="Good")).is_complete


def test_progress_is_counted_by_element_and_by_section() -> None:
    status = status_of(
        section(),
        section("walls", "2", condition="Good"),
        element(condition="Good"),
        element("gutter", order="2"),
    )
    roof, walls = status.sections
    assert (roof.elements, roof.complete_elements, roof.is_complete) == (2, 1, False)
    assert (walls.elements, walls.is_complete) == (0, True)
    assert (status.complete_sections, status.is_complete) == (1, False)
    assert not status_of().is_complete


def test_the_form_status_of_a_survey_is_computed_from_its_snapshot(office: Office) -> None:
    furnish(office, sections=1, elements=1, components=1)
    survey = office.run(office.configs().create_survey(SurveyDraft(title="12 Mill Lane"), owner="ann"))
    status = office.run(read_form_status(office.store(), survey.survey_id))
    found = [(each.kind, each.field, each.advice) for each in status.sections[0].missing]
    assert [each[:2] for each in found] == [
        ("element", "condition"),
        ("component", "condition"),
        ("component", "material"),
    ]
    assert found[-1][2] == "Choose a material: Clay."
    with pytest.raises(NotFound):
        office.run(read_form_status(office.store("zeta"), survey.survey_id))
