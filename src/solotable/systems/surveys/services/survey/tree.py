"""A survey as an ordered tree: pure.

Parts come in the order of their keys. The tree sorts them by their order keys, and reports parts whose parent
does not exist instead of dropping them (C4.15).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from solotable.systems.surveys.entities.surveys import (
    Part,
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)


@dataclass(slots=True)
class ElementNode:
    """An element with its components, in order."""

    element: SurveyElement
    components: list[SurveyComponent] = field(default_factory=list)


@dataclass(slots=True)
class SectionNode:
    """A section with its elements, in order."""

    section: SurveySection
    elements: list[ElementNode] = field(default_factory=list)


@dataclass(slots=True)
class SurveyTree:
    """A survey with all its parts, in order (S4.22)."""

    survey: SurveyMeta
    sections: list[SectionNode] = field(default_factory=list)
    #: Elements and components whose parent does not exist.
    orphans: list[Part] = field(default_factory=list)

    def parts(self) -> Iterable[Part]:
        """Yield every part, parents before their children, in order."""
        for section in self.sections:
            yield section.section
            for element in section.elements:
                yield element.element
                yield from element.components


def part_id(part: Part) -> tuple[str, str]:
    """Return the kind of a part and its id."""
    match part:
        case SurveySection():
            return "section", part.section_id
        case SurveyElement():
            return "element", part.element_id
        case SurveyComponent():
            return "component", part.component_id


def build_tree(survey: SurveyMeta, parts: Iterable[Part]) -> SurveyTree:
    """Return the tree of a survey's parts."""
    tree = SurveyTree(survey)
    sections: dict[str, SectionNode] = {}
    elements: dict[str, ElementNode] = {}
    components: defaultdict[str, list[SurveyComponent]] = defaultdict(list)
    for part in parts:
        match part:
            case SurveyComponent():
                components[part.element_id].append(part)
            case SurveyElement():
                elements[part.element_id] = ElementNode(part)
            case SurveySection():
                sections[part.section_id] = SectionNode(part)
    for element_id, found in components.items():
        found.sort(key=attrgetter("order", "component_id"))
        if element_id in elements:
            elements[element_id].components = found
        else:
            tree.orphans.extend(found)
    for node in sorted(elements.values(), key=attrgetter("element.order", "element.element_id")):
        if node.element.section_id in sections:
            sections[node.element.section_id].elements.append(node)
        else:
            tree.orphans.append(node.element)
            tree.orphans.extend(node.components)
    tree.sections = sorted(sections.values(), key=attrgetter("section.order", "section.section_id"))
    return tree
