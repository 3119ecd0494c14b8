"""The surveys of two tenants on a recording engine, with their services."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from solotable import AsyncDatabase, AsyncStore, Entity, Store
from solotable._connect import to_async
from solotable._flows.retry import Retries
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

#: The requests of one write of a part: the item, the head of its space, then both with a log record.
SYNCED_WRITE = ["GetItem", "GetItem", "TransactWriteItems"]
#: The write units of the head and of a log record of less than 1 KB, in a transaction.
LOG_WCU = 4.0


class Puts(list[Entity]):
    """Entities to write."""

    put = list[Entity].append


@contextmanager
def put_many(store: Store) -> Iterator[Puts]:
    """Collect entities, and write them in transactions: a batch cannot write what is synced."""
    entities = Puts()
    yield entities
    for start in range(0, len(entities), 80):
        with store.transaction() as tx:
            for entity in entities[start : start + 80]:
                tx.put(entity)


class _Shared(AsyncDatabase):
    """A database on the engine of the test, which stays open."""

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class Office(Harness):
    """The surveys for one test: the tenants are acme and zeta, and ann owns the surveys."""

    def contended(self) -> AsyncDatabase:
        """Return a database that is not recorded, and waits after conflicts as outside of tests."""
        scope = replace(self.blocking.scope, retries=Retries(random=random.random))
        return _Shared(to_async(self.engine), scope)

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
