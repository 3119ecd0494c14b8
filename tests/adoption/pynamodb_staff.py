"""A staff table as PynamoDB models: a discriminator, prefixed keys, an index; and a table with plain keys."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from pynamodb.attributes import (
    BooleanAttribute,
    DiscriminatorAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.connection import Connection
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex
from pynamodb.models import Model

REGION = "eu-central-1"


class ByTeam(GlobalSecondaryIndex["Staff"]):  # type: ignore[no-untyped-call]  # PynamoDB's
    class Meta:
        index_name = "by_team"
        projection = AllProjection()

    team_pk = UnicodeAttribute(hash_key=True)
    team_sk = UnicodeAttribute(range_key=True)


class Staff(Model):
    class Meta:
        table_name = "Staff"
        region = REGION
        billing_mode = "PAY_PER_REQUEST"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    cls = DiscriminatorAttribute()
    team_pk = UnicodeAttribute(null=True)
    team_sk = UnicodeAttribute(null=True)
    by_team = ByTeam()


class Address(MapAttribute[str, Any]):
    city = UnicodeAttribute()
    zip = UnicodeAttribute(null=True)


class Employee(Staff, discriminator="Employee"):
    email = UnicodeAttribute()
    team = UnicodeAttribute()
    hired_at = UTCDateTimeAttribute()
    salary = NumberAttribute()
    remote = BooleanAttribute(default=False)
    skills = UnicodeSetAttribute(null=True)
    address = Address(null=True)  # type: ignore[no-untyped-call]  # PynamoDB's
    notes: ListAttribute[str] = ListAttribute(null=True)
    extra = JSONAttribute(null=True)
    version = VersionAttribute()


class Badge(Staff, discriminator="Badge"):
    issued_at = UTCDateTimeAttribute()
    doors = NumberAttribute()


class Event(Model):
    """A model without a discriminator, whose key attributes are its own fields."""

    class Meta:
        table_name = "Events"
        region = REGION
        billing_mode = "PAY_PER_REQUEST"

    source = UnicodeAttribute(hash_key=True)
    happened_at = UTCDateTimeAttribute(range_key=True)
    level = NumberAttribute()
    text = UnicodeAttribute(null=True)


HIRED = datetime(2024, 2, 29, 8, 30, 0, 120_000, tzinfo=UTC)
MODELS: tuple[type[Model], ...] = (Staff, Event)


def employee(email: str, team: str, **more: Any) -> Employee:
    return Employee(
        f"EMPLOYEE#{email}",
        "PROFILE",
        email=email,
        team=team,
        team_pk=f"TEAM#{team}",
        team_sk=email,
        **more,
    )


def write() -> None:
    for model in MODELS:
        model.create_table(wait=True)
    employee(
        "zoe@example.org",
        "Search",
        hired_at=HIRED,
        salary=5100.5,
        skills={"go", "sql"},
        address=Address(city="Oslo"),  # type: ignore[no-untyped-call]  # PynamoDB's
        notes=["one", "two"],
        extra={"seat": [4, None]},
    ).save()
    employee("max@example.org", "Search", hired_at=HIRED, salary=4000, remote=True).save()
    Badge("EMPLOYEE#zoe@example.org", "BADGE#7", issued_at=HIRED, doors=3).save()
    Event("door", HIRED, level=2, text="opened").save()
    Event("door", HIRED.replace(hour=9), level=1).save()


def verify() -> None:
    """Fail unless Zoe is unchanged, Max is in Sales, "ann" is new, and a third event is there."""
    zoe = Employee.get("EMPLOYEE#zoe@example.org", "PROFILE")
    assert (zoe.email, zoe.hired_at, zoe.salary, zoe.remote) == ("zoe@example.org", HIRED, 5100.5, False)
    assert (zoe.skills, zoe.notes, zoe.extra) == ({"go", "sql"}, ["one", "two"], {"seat": [4, None]})
    assert zoe.address.city == "Oslo"
    assert [each.email for each in Employee.by_team.query("TEAM#Sales")] == ["max@example.org"]  # type: ignore[attr-defined]  # PynamoDB's
    found = list(Staff.by_team.query("TEAM#Search"))
    assert [type(each) for each in found] == [Employee, Employee], found
    ann = Employee.get("EMPLOYEE#ann@example.org", "PROFILE")
    assert (ann.team, ann.salary, ann.version) == ("Search", 1, 1)
    zoes = list(Staff.query("EMPLOYEE#zoe@example.org"))
    assert [type(each).__name__ for each in zoes] == ["Badge", "Badge", "Employee"], zoes
    events = list(Event.query("door", Event.happened_at >= HIRED.replace(hour=9)))
    assert [(each.level, each.text) for each in events] == [(1, "closed"), (5, None)], events
    # Writes by PynamoDB of what solotable wrote: a save under the version, and an update.
    ann.salary = 2
    ann.save()
    zoe.update(actions=[Employee.remote.set(True)])


def items() -> list[dict[str, Any]]:
    connection = Connection(region=REGION)
    return [
        item
        for model in MODELS
        for item in connection.scan(model.Meta.table_name, consistent_read=True)["Items"]
    ]


if __name__ == "__main__":
    {"write": write, "verify": verify}[sys.argv[1]]()
    print(json.dumps(items()))  # noqa: T201 - the test reads it
