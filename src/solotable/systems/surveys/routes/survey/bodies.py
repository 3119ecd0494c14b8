"""Responses that are not single entities: a survey as a tree (S4.22)."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, Field

from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.services.survey.tree import ElementNode, SectionNode, SurveyTree


class WholeElement(BaseModel):
    """An element with its components, in order."""

    element: SurveyElement
    components: list[SurveyComponent] = Field(default_factory=list)

    @classmethod
    def of(cls, node: ElementNode) -> Self:
        """Return the body of an element."""
        return cls(element=node.element, components=node.components)


class WholeSection(BaseModel):
    """A section with its elements, in order."""

    section: SurveySection
    elements: list[WholeElement] = Field(default_factory=list)

    @classmethod
    def of(cls, node: SectionNode) -> Self:
        """Return the body of a section."""
        return cls(section=node.section, elements=[WholeElement.of(each) for each in node.elements])


class Orphans(BaseModel):
    """Parts whose parent does not exist."""

    elements: list[SurveyElement] = Field(default_factory=list)
    components: list[SurveyComponent] = Field(default_factory=list)


class WholeSurvey(BaseModel):
    """A survey with all its parts, in order."""

    survey: SurveyMeta
    sections: list[WholeSection] = Field(default_factory=list)
    orphans: Orphans = Field(default_factory=Orphans)

    @classmethod
    def of(cls, tree: SurveyTree) -> Self:
        """Return the body of a survey."""
        return cls(
            survey=tree.survey,
            sections=[WholeSection.of(node) for node in tree.sections],
            orphans=Orphans(
                elements=[each for each in tree.orphans if isinstance(each, SurveyElement)],
                components=[each for each in tree.orphans if isinstance(each, SurveyComponent)],
            ),
        )
