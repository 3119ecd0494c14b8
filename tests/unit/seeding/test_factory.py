"""Generated entities are valid, distinct and the same for the same seed."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, SecretStr, field_validator

from solotable import FROM_SCOPE, TTL, Compressed, Created, Entity, Json, Key, Table, Unique, Version
from solotable.errors import DataError
from solotable.seeding import Factory, Row
from solotable.seeding.regex_texts import text_matching

table = Table("Seeds", tenant="tenant_id", ttl="expires")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(BaseModel):
    sku: Annotated[str, Field(pattern=r"^[A-Z]{3}-\d{4}$")]
    price: Annotated[Decimal, Field(ge=0, le=100, decimal_places=2)]
    parts: list[Part] = Field(default_factory=list)


class Thing(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "THING#{kind}#{order:02d}#{thing_id}")
    tenant_id: str = FROM_SCOPE
    thing_id: UUID
    kind: Literal["a", "b"]
    order: int
    email: Annotated[str, Unique()]
    code: Annotated[str, Field(min_length=3, max_length=5)]
    title: Annotated[str, Field(min_length=40)]
    colour: Colour = Colour.RED
    parent: str | None = None
    at: datetime
    day: date
    hour: time
    length: timedelta
    weight: Annotated[float, Field(gt=0, lt=1)]
    even: Annotated[int, Field(multiple_of=2, ge=10, le=20)]
    ratio: Annotated[Decimal, Field(multiple_of=Decimal("0.25"), ge=1, le=2)]
    tags: Annotated[set[str], Field(min_length=2)]
    pair: tuple[int, str]
    parts: Annotated[list[Part], Field(min_length=1, max_length=2)]
    counts: dict[str, int]
    link: HttpUrl
    secret: SecretStr
    raw: Annotated[bytes, Field(max_length=4)]
    body: Annotated[str, Compressed()]
    payload: Annotated[dict[str, Any], Json()]
    expires: Annotated[int | None, TTL()] = None
    created: Annotated[datetime | None, Created()] = None
    version: Annotated[int, Version()] = 0


def test_entities_are_valid_and_distinct() -> None:
    found = Factory(Thing, tenant_id="acme").build_many(200)
    assert len({(each.kind, each.order, each.thing_id) for each in found}) == 200
    assert len({each.email for each in found}) == 200
    for each in found:
        Thing.model_validate(each.model_dump(round_trip=True))
        Thing.plan().encode(each.__dict__)
        assert each.version == 0
        assert each.expires is None
        assert each.created is None
        assert re.fullmatch(r"[A-Z]{3}-\d{4}", each.parts[0].sku)
    assert {each.colour for each in found} == set(Colour)
    assert {each.parent is None for each in found} == {True, False}


def test_the_same_seed_gives_the_same_entities() -> None:
    ten, hundred = Factory(Thing, seed=3).build_many(10), Factory(Thing, seed=3).build_many(100)
    assert hundred[:10] == ten
    assert Factory(Thing, seed=4).build() != ten[0]
    assert ten[0].tenant_id is FROM_SCOPE


def test_fields_are_set_by_value_and_by_function() -> None:
    factory = Factory(
        Thing, kind="b", order=lambda row: row.number, title=lambda row: f"{row.values['kind']}" * 40
    )
    first, second = factory.build_many(2)
    assert (first.kind, first.order, second.order, first.title) == ("b", 0, 1, "b" * 40)
    assert factory.build(kind="a").kind == "a"
    with pytest.raises(DataError, match="did you mean 'title'"):
        Factory(Thing, titel="x")


class Owner(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "OWNER#{owner_id}")
    tenant_id: str = FROM_SCOPE
    owner_id: str
    name: str


class Pet(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "OWNER#{owner_id}#PET#{pet_id}")
    tenant_id: str = FROM_SCOPE
    owner_id: str
    pet_id: str
    name: str
    keeper: str


def test_children_take_over_the_keys_of_their_parents() -> None:
    owners = Factory(Owner).build_many(3)

    def keeper(row: Row) -> str:
        name: str = row.parent.name
        return name

    pets = Factory(Pet, parents=owners, keeper=keeper).build_many(6)
    assert [pet.owner_id for pet in pets] == [owner.owner_id for owner in (*owners, *owners)]
    assert pets[0].keeper == owners[0].name
    assert Factory(Pet, parents=owners[0]).build().owner_id == owners[0].owner_id


def test_a_model_that_rejects_all_values_is_named() -> None:
    class Picky(Entity, table=Table("Picky")):
        key = Key("PICKY#{name}", "PICKY")
        name: str
        code: str

        @field_validator("code")
        @classmethod
        def _check(cls, value: str) -> str:
            if value != "secret":
                raise ValueError("wrong code")
            return value

    with pytest.raises(DataError, match=r"Picky.code: its model rejects .*wrong code; pass code=\.\.\."):
        Factory(Picky).build()
    assert Factory(Picky, code="secret").build().code == "secret"


def test_a_key_with_too_few_values_is_an_error() -> None:
    class Day(Entity, table=Table("Day")):
        key = Key("DAY#{name}", "DAY")
        name: Literal["mon", "tue"]

    with pytest.raises(DataError, match="Day number 3: its key or a unique field repeats"):
        Factory(Day).build_many(3)


def test_an_unknown_type_is_named_and_a_default_is_used() -> None:
    class Odd:
        pass

    class Odds(Entity, table=Table("Odds")):
        key = Key("ODD#{name}", "ODD")
        name: str
        value: Annotated[Any, AfterValidator(lambda value: value)]
        path: Annotated[complex, Json()] = 1j

    assert Factory(Odds).build().path == 1j


@pytest.mark.parametrize(
    "pattern", [r"^[a-z0-9]+(-[a-z0-9]+)*$", r"\d{3,5}", r"(a|b)\1?", r"^[^a]$", r"[\w.]+@x\.com", r"v\d+"]
)
def test_texts_match_patterns(pattern: str) -> None:
    for number in range(20):
        text = text_matching(pattern, Random(number))
        assert text is not None
        assert re.search(pattern, text)
    assert text_matching(r"(?=x)y", Random(1)) is None


def test_times_are_whole_seconds_in_utc() -> None:
    for each in Factory(Thing).build_many(20):
        assert each.at.tzinfo is UTC
        assert each.at.microsecond == 0
