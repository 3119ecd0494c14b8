"""The surveys of two tenants on a recording engine, with their services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solotable import AsyncStore
from solotable.systems.surveys.entities.surveys import (
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.services.drafts import (
    ComponentDraft,
    ElementDraft,
    SectionDraft,
    SurveyDraft,
)
from solotable.systems.surveys.services.library.phrases import Phrases
from solotable.systems.surveys.services.library.templates import (
    LibraryComponents,
    LibraryElements,
    LibrarySections,
)
from solotable.systems.surveys.services.survey.configs import Configs
from solotable.systems.surveys.services.survey.parts import Components, Elements, Sections
from solotable.systems.surveys.services.survey.surveys import Surveys
from tests.systems.harness import Harness


@dataclass
class Office(Harness):
    """The surveys for one test: the tenants are acme and zeta, and ann owns the surveys."""

    def store(self, tenant: str = "acme") -> AsyncStore:
        return self.db.tenant(tenant)

    def surveys(self, tenant: str = "acme") -> Surveys:
        return Surveys(self.store(tenant))

    def sections(self, survey: SurveyMeta, tenant: str = "acme") -> Sections:
        return Sections(self.store(tenant), survey.survey_id)

    def elements(self, survey: SurveyMeta, tenant: str = "acme") -> Elements:
        return Elements(self.store(tenant), survey.survey_id)

    def components(self, survey: SurveyMeta, tenant: str = "acme") -> Components:
        return Components(self.store(tenant), survey.survey_id)

    def configs(self) -> Configs:
        return Configs(self.store())

    def library(self) -> tuple[LibrarySections, LibraryElements, LibraryComponents]:
        store = self.store()
        return LibrarySections(store), LibraryElements(store), LibraryComponents(store)

    def phrases(self) -> Phrases:
        return Phrases(self.store())

    def survey(self, tenant: str = "acme", **fields: Any) -> SurveyMeta:
        """Create a survey of ann's."""
        draft = SurveyDraft(**{"title": "12 Mill Lane", **fields})
        return self.run(self.surveys(tenant).create(draft, owner="ann"))

    def section(self, survey: SurveyMeta, name: str = "Roof", **fields: Any) -> SurveySection:
        return self.run(self.sections(survey).create(SectionDraft(name=name, **fields)))

    def element(self, section: SurveySection, name: str = "Covering", **fields: Any) -> SurveyElement:
        elements = Elements(self.store(), section.survey_id)
        return self.run(elements.create(ElementDraft(section_id=section.section_id, name=name, **fields)))

    def component(self, element: SurveyElement, name: str = "Tiles", **fields: Any) -> SurveyComponent:
        components = Components(self.store(), element.survey_id)
        return self.run(components.create(ComponentDraft(element_id=element.element_id, name=name, **fields)))
