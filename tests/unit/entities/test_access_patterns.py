"""The access-pattern table: stand-ins for every type, and patterns that stand-ins cannot get through."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Self
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from solotable import Entity, Index, Key, Query, Table, pattern
from solotable._entities.patterns.access_patterns import access_patterns
from solotable._entities.patterns.samples import sample
from solotable.errors import DataError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Unknown(BaseModel):
    x: int


@pytest.mark.parametrize(
    "kind",
    [
        str,
        int,
        float,
        bool,
        bytes,
        Decimal,
        date,
        datetime,
        UUID,
        Colour,
        Literal["a", "b"],
        int | None,
        list[int],
        set[str],
        tuple[int, str],
        tuple[int, ...],
        dict[str, int],
        Annotated[str, Field(min_length=30)],
        Annotated[str, Field(max_length=3)],
    ],
)
def test_a_sample_is_of_its_type_and_has_another(kind: Any) -> None:
    one, two = sample(kind, "name"), sample(kind, "name", other=True)
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    assert adapter.validate_python(one, strict=True) == one
    assert adapter.validate_python(two, strict=True) == two
    if kind != dict[str, int] and "max_length" not in str(kind):
        assert one != two


def test_what_cannot_be_stood_in_for_is_said() -> None:
    with pytest.raises(DataError, match="pass its value"):
        sample(Unknown, "x")


things = Table("Things", indexes=[Index("GSI1")])


class Thing(Entity, table=things):
    key = Key("THING#{thing_id}", "AT#{at:s}")
    by_colour = Key("COLOUR#{colour}", "{rank:03d}#{thing_id}", index="GSI1")
    thing_id: str
    at: datetime
    colour: Colour
    rank: int

    @pattern
    @classmethod
    def one(cls, thing_id: str, at: datetime) -> Query[Self]:
        return cls.key.query(thing_id=thing_id, at=at)

    @pattern
    @classmethod
    def before(cls, thing_id: str, at: datetime) -> Query[Self]:
        return cls.key.query(thing_id=thing_id).before(at=at).consistent()

    @pattern
    @classmethod
    def red_above(cls, rank: int, limit: int = 3) -> Query[Self]:
        return cls.by_colour.query(colour=Colour.RED).after(rank=rank)

    @pattern
    @classmethod
    def ranked(cls, colour: Colour, rank: int) -> Query[Self]:
        return cls.by_colour.query(colour=colour, rank=rank).starts_with(thing_id="a")

    @pattern
    @classmethod
    def at_new_year(cls, thing_id: str) -> Query[Self]:
        return cls.key.query(thing_id=thing_id).since(at=datetime(2035, 1, 1, tzinfo=UTC))

    @pattern
    @classmethod
    def strange(cls, given: Unknown) -> Query[Self]:
        return cls.by_colour.query(colour=Colour.RED, rank=given.x)

    @pattern
    @classmethod
    def failing(cls, thing_id: str) -> Query[Self]:
        return cls.key.query(thing_id=thing_id[100])


def test_the_table() -> None:
    found = {each.name.removeprefix("Thing."): each for each in access_patterns([things])}
    shown = {name: each.key_condition for name, each in found.items()}
    assert shown["one"] == "PK = THING#{thing_id} AND SK = AT#{at}"
    assert shown["before"] == 'PK = THING#{thing_id} AND SK BETWEEN "AT#" AND the last before "AT#{at}"'
    assert shown["red_above"] == 'GSI1PK = COLOUR#red AND GSI1SK >= "{rank}$"'
    assert shown["ranked"] == 'GSI1PK = COLOUR#{colour} AND begins_with(GSI1SK, "{rank}#a")'
    assert shown["at_new_year"].startswith('PK = THING#{thing_id} AND SK BETWEEN "AT#2035-01-01T00')
    assert shown["strange"].startswith("(not shown: The type <class ")
    assert shown["failing"].startswith("(not shown: ")
    assert found["one"].cost == "0.5 RCU per 4 KB of one item"
    assert found["before"].cost == "1 RCU per 4 KB read"
    assert found["red_above"].arguments == ("rank: int", "limit: int = 3")
    assert found["ranked"].arguments == ("colour: Colour", "rank: int")


def test_a_mixed_query_shows_every_part() -> None:
    hub = Table("Hub")

    class Repo(Entity, table=hub):
        key = Key("REPO#{name}", "REPO#{name}")
        name: str

    class Issue(Entity, table=hub):
        key = Key("REPO#{name}", "ISSUE#{number:06d}")
        name: str
        number: int
        state: str = "open"

        @pattern
        @classmethod
        def with_repo(cls, name: str, number: int) -> Query[Any]:
            """Issues with their repository."""
            issues = cls.key.query(name=name).since(number=number).where(lambda issue: issue.state == "open")
            return issues | Repo.key.query(name=name)

    (row,) = access_patterns([hub])
    assert row.key_condition == (
        'PK = REPO#{name} AND SK BETWEEN "ISSUE#{number}" AND "ISSUE$" OR '
        "PK = REPO#{name} AND SK = REPO#{name}"
    )
    assert (row.filters, row.cost) == (("state",), "0.5 RCU per 4 KB read, dropped rows included")
