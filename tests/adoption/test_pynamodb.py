"""Tables of PynamoDB, with and without a discriminator: read and written by both."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from solotable import Attr, Entity, Index, Json, Key, Table, Version, connect
from tests.serving import Served

from .foreign import ForeignProgram

staff = Table(
    "Staff",
    partition="pk",
    sort="sk",
    adopt="pynamodb",
    indexes=[Index("by_team", partition="team_pk", sort="team_sk")],
)
events = Table("Events", partition="source", sort="happened_at", adopt="pynamodb", tag=None)


class Employee(Entity, table=staff):
    key = Key("EMPLOYEE#{email}", "PROFILE")
    by_team = Key("TEAM#{team}", "{email}", index="by_team")

    email: str
    team: str
    hired_at: datetime
    salary: Decimal
    remote: bool = False
    skills: set[str] = Field(default_factory=set)
    address: dict[str, str] | None = None
    extra: Annotated[Any, Json()] = None
    version: Annotated[int, Version()] = 0
    # PynamoDB's `notes` is not declared: it survives as an unknown attribute.


class Badge(Entity, table=staff):
    key = Key("EMPLOYEE#{email}", "BADGE#{number}")

    email: Annotated[str, Attr(stored=False)]
    number: Annotated[str, Attr(stored=False)]
    issued_at: datetime
    doors: int


class Event(Entity, table=events):
    key = Key(("source",), ("happened_at",))

    source: str
    happened_at: datetime
    level: int
    text: str | None = None


HIRED = datetime(2024, 2, 29, 8, 30, 0, 120_000, tzinfo=UTC)


def test_items_of_pynamodb_are_read_and_written_in_both_directions(
    server: Served, foreign: Callable[[str], ForeignProgram]
) -> None:
    program = foreign("pynamodb")
    program.run("write")
    with connect(server.url, staff, events) as db:
        zoe = db.require(Employee, email="zoe@example.org")
        assert (zoe.hired_at, zoe.salary, zoe.extra) == (HIRED, Decimal("5100.5"), {"seat": [4, None]})
        assert zoe.version == 1
        assert [each.email for each in db.all(Employee.by_team.query(team="Search"))] == [
            "max@example.org",
            "zoe@example.org",
        ]
        mixed = Badge.key.query(email="zoe@example.org") | Employee.key.query(email="zoe@example.org")
        assert [type(each) for each in db.page(mixed, limit=10)] == [Badge, Employee]
        (badge,) = db.all(Badge.key.query(email="zoe@example.org"))
        assert (badge.number, badge.issued_at, badge.doors) == ("7", HIRED, 3)
        later = db.all(Event.key.query(source="door").since(happened_at=HIRED.replace(hour=9)))
        assert [event.level for event in later] == [1]

        db.put(zoe)
        db.update(Employee, email="max@example.org", version=1, set={"team": "Sales"})
        db.create(Employee(email="ann@example.org", team="Search", hired_at=HIRED, salary=Decimal(1)))
        db.create(Badge(email="zoe@example.org", number="8", issued_at=HIRED, doors=1))
        db.update(Event, source="door", happened_at=HIRED.replace(hour=9), set={"text": "closed"})
        db.create(Event(source="door", happened_at=HIRED.replace(hour=10), level=5))
    after = program.run("verify")
    assert {"S": "two"} in next(item for item in after if "notes" in item)["notes"]["L"]
    assert not any("_type" in item for item in after), "a model without a discriminator gets none"
    with connect(server.url, staff, events) as db:
        ann = db.require(Employee, email="ann@example.org")
        assert (ann.salary, ann.version) == (Decimal(2), 2)
        assert db.require(Employee, email="zoe@example.org").remote is True
