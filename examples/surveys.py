"""The store by example: surveys of buildings, for several tenants, in one table of one file.

Run it: python examples/surveys.py. It needs no AWS account and no server, and removes its file at the end.
List its access patterns: solotable patterns -m examples/surveys.py:surveyor
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, Self

from pydantic import Field

from solotable import (
    FROM_SCOPE,
    Counted,
    Counter,
    Database,
    Entity,
    Index,
    Key,
    Query,
    Store,
    Table,
    Unique,
    Version,
    pattern,
)
from solotable.errors import CursorRejected, NotUnique, TransactionFailed, VersionConflict

surveyor = Table("SurveyorData", tenant="tenant_id", indexes=[Index("GSI1")])


class Survey(Entity, table=surveyor):
    """A survey of one building."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}")

    tenant_id: str = FROM_SCOPE
    survey_id: str
    title: Annotated[str, Field(min_length=1, max_length=200), Unique(normalise="casefold")]
    status: Literal["draft", "in_progress", "completed"] = "draft"
    section_count: Annotated[int, Counter()] = 0
    version: Annotated[int, Version()] = 0


class Section(Entity, table=surveyor):
    """A section of the report."""

    key = Key("TENANT#{tenant_id}", "SURVEY#{survey_id}#SECTION#{section_id}")
    by_order = Key("TENANT#{tenant_id}#SURVEY#{survey_id}", "SECTION#{order:06d}", index="GSI1")
    counted = Counted(Survey, "section_count")

    tenant_id: str = FROM_SCOPE
    survey_id: str
    section_id: str
    name: str
    order: int
    notes: str = ""

    @pattern
    @classmethod
    def of_survey(cls, survey_id: str) -> Query[Self]:
        """The sections of a survey, in order."""
        return cls.by_order.query(survey_id=survey_id)


def write(acme: Store) -> None:
    print("Entities: the store fills in the tenant, the version and the counter")
    survey = acme.create(Survey(survey_id="s1", title="12 Main Street"))
    for order, name in enumerate(("Roof", "Walls", "Loft", "Cellar"), 1):
        acme.create(Section(survey_id="s1", section_id=name.lower(), name=name, order=order))
    say(f"{acme.require(Survey, survey_id='s1')!r}")
    print("Updates: parts of an entity, and versions that detect lost updates")
    section = acme.update(Section, survey_id="s1", section_id="loft", set={"order": 9, "notes": "Damp"})
    say(f"{section.name} is number {section.order} now: {section.notes}")
    acme.update(survey, set={"status": "in_progress"})
    try:
        acme.update(survey, set={"status": "completed"})
    except VersionConflict as error:
        say(str(error))


def read(acme: Store, zeta: Store) -> None:
    print("Queries: pages; a cursor is valid for one query of one tenant")
    page = acme.page(Section.of_survey("s1"), limit=3)
    say(f"first {names(page.items)}, cursor of {len(page.cursor or '')} characters")
    rest = acme.page(Section.of_survey("s1"), limit=3, cursor=page.cursor)
    say(f"then {names(rest.items)}, the end: {rest.cursor is None}")
    try:
        zeta.page(Section.of_survey("s1"), limit=3, cursor=page.cursor)
    except CursorRejected as error:
        say(f"as zeta: {error}")
    noted = acme.page(Section.of_survey("s1"), where=lambda s: (s.notes != "") & (s.order > 3))
    say(f"with notes: {names(noted.items)}, of {noted.scanned} items read")
    print("Collections: a survey and its sections in one request")
    survey, sections = acme.collection(Survey, Section, survey_id="s1")
    say(f"{survey.title if survey else None}: {names(sections)}")


def transact(acme: Store) -> None:
    print("Transactions: all of the writes, or none")
    try:
        with acme.transaction() as tx:
            tx.delete(Section, survey_id="s1", section_id="cellar")
            tx.check(Survey, survey_id="s1", where=lambda s: s.status == "draft")
    except TransactionFailed as error:
        say(str(error))
    say(f"sections: {acme.require(Survey, survey_id='s1').section_count}")


def isolate(acme: Store, zeta: Store) -> None:
    print("Unique titles, per tenant")
    try:
        acme.create(Survey(survey_id="s2", title="12 MAIN STREET"))
    except NotUnique as error:
        say(str(error))
    say(f"zeta: {zeta.create(Survey(survey_id='s1', title='12 Main Street')).title}")
    say(
        f"zeta has {zeta.count(Section.of_survey('s1'))} sections, acme {acme.count(Section.of_survey('s1'))}"
    )


def tour(database: Database) -> None:
    acme, zeta = database.tenant("acme"), database.tenant("zeta")
    write(acme)
    read(acme, zeta)
    transact(acme)
    isolate(acme, zeta)


def names(sections: list[Section]) -> str:
    return ", ".join(section.name for section in sections)


def say(what: str) -> None:
    print(f"  {what}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        path = Path(folder) / "surveys.db"
        with surveyor.open(f"sqlite:///{path}") as opened:
            tour(opened)
        print(
            "The file was temporary. Open aws://SurveyorData?region=eu-west-1 to use Amazon DynamoDB instead."
        )
