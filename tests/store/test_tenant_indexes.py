"""Indexes of tables with tenants: keys over the tenant attribute, and counts without it."""

from __future__ import annotations

import pytest

from solotable import FROM_SCOPE, Entity, Index, Key, Table
from solotable.errors import DeclarationError, TenantViolation
from tests.store.opening import Opening

cities = Table(
    "Cities",
    tenant="tenant_id",
    indexes=[
        Index("GSI1", partition=("tenant_id", "city"), sort=("year:N",)),
        Index("GSI2", projection=["_type"]),
    ],
)


class House(Entity, table=cities):
    """An entity in the index of attributes."""

    key = Key("TENANT#{tenant_id}", "HOUSE#{house}")
    by_city = Key(("tenant_id", "city"), ("year",), index="GSI1")
    by_year = Key("TENANT#{tenant_id}", "{year:04d}#{house}", index="GSI2")
    tenant_id: str = FROM_SCOPE
    house: str
    city: str
    year: int


class Owner(Entity, table=cities):
    """An entity that is not in it, because its items have no city."""

    key = Key("TENANT#{tenant_id}", "OWNER#{owner}")
    tenant_id: str = FROM_SCOPE
    owner: str


def test_an_entity_outside_of_an_index_over_the_tenant_is_stored(opening: Opening) -> None:
    db = opening(cities).tenant("acme")
    owner = db.put(Owner(owner="ana"))
    house = db.put(House(house="1", city="Rome", year=1900))
    assert db.require(Owner, owner="ana") == owner
    assert list(db.page(House.by_city.query(city="Rome"))) == [house]
    assert db.count(House.by_city.query(city="Rome")) == 1
    assert db.count(Owner.key.query()) == 1


def test_an_entity_that_would_be_in_the_index_needs_a_key() -> None:
    with pytest.raises(DeclarationError, match="'tenant_id', which is a key attribute"):

        class Flat(Entity, table=cities):
            key = Key("TENANT#{tenant_id}", "FLAT#{flat}")
            tenant_id: str = FROM_SCOPE
            flat: str
            city: str
            year: int


def test_a_count_on_an_index_without_the_tenant_checks_each_item(opening: Opening) -> None:
    db = opening(cities)
    acme, other = db.tenant("acme"), db.tenant("other")
    acme.put(House(house="1", city="Rome", year=1900))
    assert acme.count(House.by_year.query()) == 1
    other.put(House(house="2", city="Rome", year=1900))
    planted = next(item for item in opening.raw(cities) if item["house"] == {"S": "2"})
    opening.plant(cities, planted | {"GSI2PK": {"S": "TENANT#acme"}})
    with pytest.raises(TenantViolation):
        acme.count(House.by_year.query())
    assert db.admin().count(House.by_year.query(tenant_id="acme")) == 2
