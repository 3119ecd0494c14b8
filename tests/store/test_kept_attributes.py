"""A put writes back what it does not know; nothing of it crosses keys or tenants."""

from __future__ import annotations

import pickle
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, PrivateAttr

from solotable import FROM_SCOPE, Database, Entity, History, Index, Key, Table, Version
from solotable._values import Item
from solotable.errors import DataError, TenantViolation
from tests.store.opening import Opening

shop = Table("KeptShop", indexes=[Index("GSI1"), Index("GSI2")])


class Buyer(Entity, table=shop):
    """A class of the running release, which uses only GSI1."""

    key = Key("BUYER#{name}", "BUYER")
    by_city = Key("CITY#{city}", "{name}", index="GSI1")
    name: str
    city: str | None = None
    _cache: dict[str, Any] = PrivateAttr(default_factory=dict)


class Account(Entity, table=shop):
    """The same with a version and a history."""

    key = Key("ACCOUNT#{name}", "ACCOUNT")
    history = History("v{version:06d}")
    name: str
    note: str = ""
    version: Annotated[int, Version()] = 0


#: What a newer release stores besides: its own index keys, and an attribute.
NEWER: Item = {"GSI2PK": {"S": "VIP"}, "GSI2SK": {"S": "ana"}, "vip": {"BOOL": True}}


@pytest.fixture
def db(opening: Opening) -> Database:
    return opening(shop)


def _plant(opening: Opening, entity: Entity) -> Item:
    item = entity.plan().encode(entity.__dict__) | NEWER
    opening.plant(shop, item)
    return item


def test_a_put_keeps_the_keys_of_indexes_that_the_class_does_not_use(db: Database, opening: Opening) -> None:
    stored = _plant(opening, Buyer(name="ana", city="Bern"))
    db.put(db.require(Buyer, name="ana"))
    assert opening.raw(shop) == [stored]
    db.modify(Buyer, lambda buyer: Buyer(name=buyer.name, city="Thun"), name="ana")
    assert NEWER.items() <= opening.only(Buyer).items()
    with db.transaction() as tx:
        tx.put(db.require(Buyer, name="ana"))
    with db.batch() as batch:
        batch.put(pickle.loads(pickle.dumps(db.require(Buyer, name="ana"))))  # noqa: S301 - our own bytes
    assert NEWER.items() <= opening.only(Buyer).items()


def test_a_copy_under_another_key_does_not_take_the_index_keys_along(db: Database, opening: Opening) -> None:
    _plant(opening, Buyer(name="ana"))
    db.put(db.require(Buyer, name="ana").model_copy(update={"name": "bob"}))
    (copy,) = [item for item in opening.raw(shop) if item["name"] == {"S": "bob"}]
    assert "GSI2PK" not in copy
    assert copy["vip"] == {"BOOL": True}


def test_traits_keep_the_index_keys_too(db: Database, opening: Opening) -> None:
    db.put(Account(name="ana"))
    _plant(opening, Account(name="ana", version=1))
    db.put(db.require(Account, name="ana").model_copy(update={"note": "n"}))
    assert NEWER.items() <= opening.only(Account).items()
    db.update(db.require(Account, name="ana"), set={"note": "m"})
    assert NEWER.items() <= opening.only(Account).items()
    db.history(Account, name="ana").restore(2)
    assert NEWER.items() <= opening.only(Account).items()


def test_private_attributes_survive_unknown_ones(db: Database, opening: Opening) -> None:
    _plant(opening, Buyer(name="ana"))
    buyer = db.require(Buyer, name="ana")
    buyer._cache["x"] = 1
    assert buyer.model_copy()._cache == {"x": 1}
    assert buyer.unknown_attributes == {"vip": {"BOOL": True}}
    buyer.keep_unknown({})
    assert buyer._cache == {"x": 1}
    assert db.put(buyer)._cache == {"x": 1}


@pytest.mark.parametrize("name", ["PK", "SK", "_type", "GSI1PK", "GSI2SK", "name", "city"])
def test_a_caller_cannot_pass_a_key_or_a_field_as_unknown(name: str) -> None:
    with pytest.raises(DataError, match=name):
        Buyer(name="ana").keep_unknown({"colour": {"S": "red"}, name: {"S": "x"}})


towns = Table("KeptTowns", tenant="tenant_id", indexes=[Index("GSI1")])


class House(Entity, table=towns):
    """An entity with a sparse index key."""

    key = Key("TENANT#{tenant_id}", "HOUSE#{number}")
    by_street = Key("TENANT#{tenant_id}#STREETS", "{street}#{number}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    number: str
    street: str | None = None


class Number(BaseModel):
    """A view of a house."""

    number: str


def test_views_and_counts_check_the_tenant_as_pages_do(opening: Opening) -> None:
    """An item of A in an index partition of B is written by another program."""
    db = opening(towns)
    db.tenant("a").put(House(number="1"))
    item = opening.only(House)
    opening.plant(towns, {**item, "GSI1PK": {"S": "TENANT#b#STREETS"}, "GSI1SK": {"S": "x#1"}})
    other = db.tenant("b")
    with pytest.raises(TenantViolation):
        other.page(House.by_street.query())
    with pytest.raises(TenantViolation):
        other.page(House.by_street.query().select(Number))
    assert other.count(House.by_street.query()) == 0


def test_a_decoded_key_of_the_class_itself_is_never_written_back(opening: Opening) -> None:
    db = opening(towns)
    db.tenant("a").put(House(number="1"))
    item = opening.only(House)
    opening.plant(towns, {**item, "GSI1PK": {"S": "TENANT#b#STREETS"}, "GSI1SK": {"S": "x#1"}})
    acme = db.tenant("a")
    acme.put(acme.require(House, number="1"))
    assert opening.only(House) == item


class Sly(str):
    """A string that equals every other one."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def test_the_tenant_is_compared_as_plain_text(opening: Opening) -> None:
    db = opening(towns)
    db.tenant("b").put(House(number="1"))
    acme = db.tenant("a")
    with pytest.raises(TenantViolation):
        acme.put(House(number="1", tenant_id=Sly("b")))
    with pytest.raises(TenantViolation):
        acme.get(House, number="1", tenant_id=Sly("b"))
    assert db.tenant(Sly("a")).get(House, number="1") is None
    assert type(db.tenant(Sly("a")).put(House(number="2", tenant_id=Sly("a"))).tenant_id) is str
    for wrong in (7, "", None):
        with pytest.raises(TenantViolation, match="non-empty string"):
            db.tenant(wrong)  # type: ignore[arg-type] # what an untyped caller may pass


def test_a_lease_of_another_tenant_does_not_guard_a_transaction(opening: Opening) -> None:
    db = opening(towns)
    lease = db.tenant("b").lease("nightly", seconds=30, table=towns)
    lease.acquire()

    def put_under_lease() -> None:
        with db.tenant("a").transaction() as tx:
            tx.put(House(number="1"))
            tx.check_lease(lease)

    with pytest.raises(TenantViolation, match="lease 'nightly'"):
        put_under_lease()
    assert db.tenant("a").get(House, number="1") is None


def test_unknown_attributes_are_a_copy(opening: Opening) -> None:
    db = opening(shop)
    buyer = Buyer(name="ana")
    given: Item = {"vip": {"BOOL": True}}
    buyer.keep_unknown(given)
    given.update(NEWER)
    buyer.unknown_attributes.update({"GSI1PK": {"S": "CITY#Oslo"}, "GSI1SK": {"S": "ana"}})
    assert buyer.unknown_attributes == {"vip": {"BOOL": True}}
    db.put(buyer)
    assert db.count(Buyer.by_city.query(city="Oslo")) == 0
    assert opening.raw(shop)[0].keys().isdisjoint({"GSI1PK", "GSI2PK"})
