"""What is missing to complete a section: computed from the parts and the snapshot, never stored.

A section is complete when nothing of it, of its elements and of its components is missing:

- `condition`: a part has a condition other than N/A, or notes that say why it has none. A section with
  elements may leave its condition out: its elements have theirs.
- `material`: a component has a material other than Unknown. If the snapshot lists materials for the
  component, it is one of them. A component that is N/A, with notes, needs none.
- `photos`: an element or a component in Poor condition has a photo. A photo of the element is enough for its
  components.

A section without elements needs a condition or notes. What the snapshot has and the survey has not is not
missing: a part may be deleted on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from solotable import AsyncStore
from solotable.systems.surveys.entities.configs import Configuration
from solotable.systems.surveys.entities.surveys import Part, PartKind, SurveyComponent

from .configs import Configs
from .surveys import Surveys
from .tree import ElementNode, SectionNode, SurveyTree

MissingField = Literal["condition", "material", "photos"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A field that is missing to complete a section."""

    kind: PartKind
    part_id: str
    name: str
    field: MissingField
    #: What to do, as a sentence.
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionStatus:
    """How far a section is."""

    section_id: str
    name: str
    elements: int
    #: Elements with nothing missing, their components included.
    complete_elements: int
    missing: tuple[Missing, ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing


@dataclass(frozen=True, slots=True, kw_only=True)
class FormStatus:
    """How far a survey is."""

    survey_id: str
    sections: tuple[SectionStatus, ...]

    @property
    def complete_sections(self) -> int:
        """The number of sections with nothing missing."""
        return sum(each.is_complete for each in self.sections)

    @property
    def is_complete(self) -> bool:
        """Whether the survey has sections and nothing of them is missing."""
        return bool(self.sections) and self.complete_sections == len(self.sections)


async def read_form_status(store: AsyncStore, survey_id: str) -> FormStatus:
    """Return how far a survey is, or raise NotFound."""
    tree = await Surveys(store).whole(survey_id)
    config_id = tree.survey.config_id
    configuration = None if config_id is None else await Configs(store).get(survey_id, config_id)
    return form_status(tree, configuration)


def form_status(tree: SurveyTree, configuration: Configuration | None) -> FormStatus:
    """Return how far a survey is."""
    materials = {
        component.component_id: [material.name for material in component.materials]
        for section in (configuration.sections if configuration else ())
        for element in section.elements
        for component in element.components
    }
    return FormStatus(
        survey_id=tree.survey.survey_id,
        sections=tuple(_section(node, materials) for node in tree.sections),
    )


def _section(node: SectionNode, materials: Mapping[str, list[str]]) -> SectionStatus:
    section = node.section
    missing: list[Missing] = []
    if not node.elements and not _is_assessed(section):
        missing.append(_missing("section", section.section_id, section.name, "condition"))
    complete = 0
    for each in node.elements:
        found = list(_element(each, materials))
        complete += not found
        missing += found
    return SectionStatus(
        section_id=section.section_id,
        name=section.name,
        elements=len(node.elements),
        complete_elements=complete,
        missing=tuple(missing),
    )


def _element(node: ElementNode, materials: Mapping[str, list[str]]) -> Iterator[Missing]:
    element = node.element
    if not _is_assessed(element):
        yield _missing("element", element.element_id, element.name, "condition")
    if element.condition == "Poor" and not element.photos:
        yield _missing("element", element.element_id, element.name, "photos")
    for component in node.components:
        name, component_id = component.name, component.component_id
        if not _is_assessed(component):
            yield _missing("component", component_id, name, "condition")
        offered = materials.get(component_id, [])
        if not _has_material(component, offered):
            yield _missing("component", component_id, name, "material", offered)
        if component.condition == "Poor" and not (component.photos or element.photos):
            yield _missing("component", component_id, name, "photos")


def _is_assessed(part: Part) -> bool:
    return part.condition != "N/A" or bool(part.notes.strip())


def _has_material(component: SurveyComponent, offered: list[str]) -> bool:
    if component.condition == "N/A" and component.notes.strip():
        return True
    material = component.material.strip()
    if not material or material.casefold() == "unknown":
        return False
    return not offered or material in offered


def _missing(
    kind: PartKind, part_id: str, name: str, field: MissingField, offered: list[str] | None = None
) -> Missing:
    advice = {
        "condition": "Choose a condition, or give the reason in the notes.",
        "material": f"Choose a material: {', '.join(offered)}." if offered else "Give a material.",
        "photos": "Add a photo: its condition is Poor.",
    }[field]
    return Missing(kind=kind, part_id=part_id, name=name, field=field, advice=advice)
