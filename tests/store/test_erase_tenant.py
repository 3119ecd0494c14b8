"""erase_tenant(): everything of one tenant and nothing of another, by Query where the keys allow it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import pytest

from solotable import (
    FROM_SCOPE,
    Entity,
    Erasure,
    History,
    Key,
    Names,
    Outbox,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
)
from solotable._protocol.requests import BatchWriteItem, Query, Scan
from solotable._values import Item
from solotable.errors import DataError, NotUnique
from solotable.flow import tenant_of

from .opening import Opening

office = Table("Office", tenant="tenant_id", stream=True)


class Note(Entity, table=office):
    """All of a tenant's in one partition, with every trait that writes elsewhere."""

    key = Key("TENANT#{tenant_id}", "NOTE#{slug}")
    deletion = SoftDelete(grace=timedelta(days=30))
    events = Outbox(title="slug", days=None)
    history = History("NOTE-OF#{slug}#v{version:06d}")

    tenant_id: str = FROM_SCOPE
    slug: str
    code: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


class Route(Entity, table=office):
    """With former names."""

    key = Key("TENANT#{tenant_id}", "ROUTE#{path}")
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Motto(Entity, table=office, scope="global"):
    """Of no tenant."""

    key = Key("MOTTO", "MOTTO#{text}")
    text: str


plant = Table("Plant", tenant="tenant_id")


class Machine(Entity, table=plant):
    """A partition for each machine: only a scan finds those of a tenant."""

    key = Key("TENANT#{tenant_id}#MACHINE#{name}", "MACHINE")
    history = History("MACHINE-OF#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    name: str
    serial: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


def _fill(store: Store) -> None:
    for number in range(30):
        store.put(Note(slug=f"n{number}", code=f"c{number}"))
    found = store.require(Note, slug="n1")
    store.put(found.model_copy(update={"code": "other"}))
    store.delete(store.require(Note, slug="n2"))
    store.names(Route).rename(store.put(Route(path="old")), to="new")


def _of(opening: Opening, table: Table, tenant: str) -> list[Item]:
    return [item for item in opening.raw(table) if tenant_of(table, item) == tenant]


def _sorted(items: list[Item]) -> list[str]:
    return sorted(map(repr, items))


def test_one_tenant_goes_and_the_other_stays_as_it_is(opening: Opening) -> None:
    db = opening(office)
    _fill(db.tenant("acme"))
    _fill(db.tenant("acme2"))
    db.put(Motto(text="global"))
    others = _of(opening, office, "acme2")
    opening.spy.sent.clear()
    done = db.admin().erase_tenant("acme")
    assert done.done
    assert not done.scanned
    assert done.removed > 60
    assert not opening.spy.of(Scan)
    left = opening.raw(office)
    # Places for a purge name no tenant: one is left, that of the other tenant.
    assert [item for item in left if "acme#" in repr(item) or "'acme'" in repr(item)] == []
    assert _sorted(_of(opening, office, "acme2")) == _sorted(others)
    assert len([item for item in left if item["_type"]["S"] == "_purge"]) == 1
    assert db.get(Motto, text="global") is not None
    # Locks are gone: the values are free again.
    db.tenant("acme").create(Note(slug="new", code="c5"))


def test_a_dry_run_counts_and_removes_nothing(opening: Opening) -> None:
    db = opening(office)
    _fill(db.tenant("acme"))
    before = opening.raw(office)
    opening.spy.sent.clear()
    counted = db.admin().erase_tenant("acme", dry_run=True)
    assert not opening.spy.of(BatchWriteItem)
    assert _sorted(opening.raw(office)) == _sorted(before)
    assert counted.removed == db.admin().erase_tenant("acme").removed


def test_it_goes_on_after_a_kill_and_after_a_bound(opening: Opening) -> None:
    db = opening(office)
    _fill(db.tenant("acme"))
    _fill(db.tenant("other"))
    others = _of(opening, office, "other")

    class Killed(BaseException):
        """As a signal would be."""

    batches = 0

    def die(request: Any) -> None:
        nonlocal batches
        batches += isinstance(request, BatchWriteItem)
        if batches == 2:
            raise Killed

    opening.spy.before = die
    with pytest.raises(Killed):
        db.admin().erase_tenant("acme")
    opening.spy.before = None
    assert _of(opening, office, "acme")
    part = db.admin().erase_tenant("acme", most=10)
    assert not part.done
    assert part.removed >= 10
    assert db.admin().erase_tenant("acme").done
    assert _of(opening, office, "acme") == []
    assert _sorted(_of(opening, office, "other")) == _sorted(others)


def test_a_scan_finds_what_lies_in_other_partitions(opening: Opening) -> None:
    db = opening(plant)
    for tenant in ("acme", "other"):
        store = db.tenant(tenant)
        for number in range(5):
            machine = store.put(Machine(name=f"m{number}", serial=f"s{number}"))
            store.put(machine)
        store.counter(plant, "hits").add(3)
    others = _of(opening, plant, "other")
    assert db.admin().erase_tenant("acme", scan=False).removed == 0
    done = db.admin().erase_tenant("acme")
    assert (done.done, done.scanned) == (True, ("Plant",))
    assert _of(opening, plant, "acme") == []
    assert _sorted(_of(opening, plant, "other")) == _sorted(others)
    assert db.tenant("acme").counter(plant, "hits").value() == 0


def test_a_held_item_stays_and_is_counted(opening: Opening) -> None:
    db = opening(office)
    acme = db.tenant("acme")
    acme.put(Note(slug="a"))
    acme.put(Note(slug="b"))
    acme.hold(Note, slug="a", reason="a court order")
    done = db.admin().erase_tenant("acme")
    assert (done.done, done.held) == (True, 1)
    assert acme.get(Note, slug="a") is not None
    assert acme.get(Note, slug="b") is None


def test_progress_is_reported_for_every_page(opening: Opening) -> None:
    db = opening(office)
    _fill(db.tenant("acme"))
    seen: list[Erasure] = []
    opening.spy.sent.clear()
    done = db.admin().erase_tenant("acme", progress=seen.append)
    assert len(seen) == len(opening.spy.of(Query))
    assert [each.removed for each in seen] == sorted(each.removed for each in seen)
    assert seen[-1].removed == done.removed


def test_an_empty_tenant_is_rejected(opening: Opening) -> None:
    with pytest.raises(DataError, match="empty string"):
        opening(office).admin().erase_tenant("")


ward = Table("Ward", tenant="tenant_id", stream=True)


class Patient(Entity, table=ward):
    """Several shards of the tenant's partition."""

    key = Key("WARD#{tenant_id}", "PATIENT#{name}", shards=4)
    tenant_id: str = FROM_SCOPE
    name: str


court = Table("Court", tenant="tenant_id", stream=True)


class Exhibit(Entity, table=court):
    """A partition for each exhibit, and a hold that covers its lock and its snapshots."""

    key = Key("TENANT#{tenant_id}#EXHIBIT#{name}", "EXHIBIT")
    deletion = SoftDelete(grace=timedelta(days=30))
    history = History("EXHIBIT-OF#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    name: str
    serial: Annotated[str | None, Unique()] = None
    version: Annotated[int, Version()] = 0


class Docket(Entity, table=court):
    """A renamed entity with a hold, beside exhibits."""

    key = Key("TENANT#{tenant_id}", "DOCKET#{path}")
    deletion = SoftDelete(grace=timedelta(days=30))
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Alley(Entity, table=court):
    """A name in the partition key."""

    key = Key("TENANT#{tenant_id}#ALLEY#{path}", "ALLEY")
    deletion = SoftDelete(grace=timedelta(days=30))
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


class Lane(Entity, table=court):
    """A name in the sort key that chooses the shard."""

    key = Key("LANES#{tenant_id}", "LANE#{path}", shards=3)
    deletion = SoftDelete(grace=timedelta(days=30))
    names = Names("path")
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


registry = Table("Registry", tenant="tenant_id")


class Member(Entity, table=registry):
    """An entity of a tenant."""

    key = Key("TENANT#{tenant_id}", "MEMBER#{name}")
    tenant_id: str = FROM_SCOPE
    name: str


class Registration(Entity, table=registry, scope="global"):
    """A global entity in the partition of a tenant."""

    key = Key("TENANT#{id}", "REGISTRATION")
    id: str


cabin = Table("Cabin", sort=None, tenant="tenant_id")


class Hut(Entity, table=cabin):
    """An entity of a table without a sort key."""

    key = Key("HUT#{tenant_id}")
    tenant_id: str = FROM_SCOPE


@pytest.mark.parametrize("scan", [None, False, True])
def test_every_shard_of_a_tenants_partition_is_erased(opening: Opening, scan: bool | None) -> None:
    db = opening(ward)
    for number in range(20):
        db.tenant("acme").put(Patient(name=f"p{number}"))
    db.tenant("other").put(Patient(name="p1"))
    done = db.admin().erase_tenant("acme", scan=scan)
    assert (done.done, done.removed) == (True, 20)
    assert [item["name"]["S"] for item in opening.raw(ward)] == ["p1"]


@pytest.mark.parametrize("scan", [None, True])
def test_a_hold_covers_the_locks_snapshots_and_redirects_of_its_entity(
    opening: Opening, scan: bool | None
) -> None:
    db = opening(court)
    acme = db.tenant("acme")
    for name in ("held", "free"):
        for number in range(3):
            acme.put(
                Exhibit(name=name, serial=f"{name}{number}")
                if number == 0
                else acme.require(Exhibit, name=name).model_copy(update={"serial": f"{name}{number}"})
            )
        acme.names(Docket).rename(acme.put(Docket(path=name)), to=f"{name}-new")
    acme.hold(Exhibit, name="held", reason="a court order")
    acme.hold(Docket, path="held-new", reason="a court order")
    before = [item for item in opening.raw(court) if "free" not in repr(item)]
    counted = db.admin().erase_tenant("acme", scan=scan, dry_run=True)
    done = db.admin().erase_tenant("acme", scan=scan)
    assert (done.done, done.held, counted.held) == (True, 2, 2)
    assert _sorted(opening.raw(court)) == _sorted(before)
    assert counted.removed == done.removed
    assert acme.history(Exhibit, name="held").get(1) is not None
    assert acme.names(Docket).resolve(path="held") is not None
    with pytest.raises(NotUnique):
        acme.create(Exhibit(name="second", serial="held2"))


@pytest.mark.parametrize("entity", [Alley, Lane])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_hold_covers_redirects_in_other_partitions(
    opening: Opening, entity: type[Alley | Lane], is_deleted: bool
) -> None:
    db = opening(court)
    for tenant in ("acme", "other"):
        store = db.tenant(tenant)
        for name in ("held", "free"):
            store.put(entity(path="start"))
            for old, new in (("start", f"{name}0"), (f"{name}0", f"{name}1"), (f"{name}1", f"{name}2")):
                store.names(entity).rename(store.require(entity, path=old), to=new)
            store.names(entity).release(path="start")
    acme = db.tenant("acme")
    acme.hold(entity, path="held2", reason="a court order")
    if is_deleted:
        acme.delete(acme.require(entity, path="held2"))
    stays = [item for item in opening.raw(court) if "acme" not in repr(item) or "held" in repr(item)]
    stays += [item for item in opening.raw(court) if item["_type"]["S"] == "_purge" and item not in stays]
    done = db.admin().erase_tenant("acme")
    assert (done.done, done.held) == (True, 1)
    assert _sorted(opening.raw(court)) == _sorted(stays)
    acme.release_hold(entity, path="held2")
    assert db.admin().erase_tenant("acme").held == 0
    assert [item for item in opening.raw(court) if "acme" in repr(item)] == []


def test_a_snapshot_from_the_time_of_a_hold_goes_after_its_release(opening: Opening) -> None:
    db = opening(court)
    acme = db.tenant("acme")
    acme.put(Exhibit(name="e", serial="s"))
    acme.hold(Exhibit, name="e", reason="a court order")
    acme.put(acme.require(Exhibit, name="e").model_copy(update={"serial": "t"}))
    assert db.admin().erase_tenant("acme").held == 1
    acme.release_hold(Exhibit, name="e")
    assert db.admin().erase_tenant("acme").held == 0
    assert opening.raw(court) == []


@pytest.mark.parametrize("table", [office, plant, court])
@pytest.mark.parametrize("scan", [None, True])
def test_a_dry_run_counts_what_a_run_removes(opening: Opening, table: Table, scan: bool | None) -> None:
    db = opening(table)
    acme = db.tenant("acme")
    if table is office:
        _fill(acme)
    for number in range(5):
        if table is plant:
            acme.put(acme.put(Machine(name=f"m{number}", serial=f"s{number}")))
        elif table is court:
            acme.put(acme.put(Exhibit(name=f"e{number}", serial=f"s{number}")))
            acme.put(Docket(path=f"d{number}"))
    stored = len([item for item in opening.raw(table) if item["_type"]["S"] != "_purge"])
    counted = db.admin().erase_tenant("acme", scan=scan, dry_run=True)
    done = db.admin().erase_tenant("acme", scan=scan)
    assert counted == done
    assert opening.raw(table) == []
    if done.scanned:
        assert done.removed == stored


@pytest.mark.parametrize("scan", [None, True])
def test_a_global_entity_in_a_tenants_partition_stays(opening: Opening, scan: bool | None) -> None:
    db = opening(registry)
    db.put(Registration(id="acme"))
    db.tenant("acme").put(Member(name="ann"))
    done = db.admin().erase_tenant("acme", scan=scan)
    assert (done.removed, done.unknown) == (1, 0)
    assert db.get(Registration, id="acme") is not None


@pytest.mark.parametrize("scan", [None, True])
def test_items_of_undeclared_entities_stay_and_are_counted(opening: Opening, scan: bool | None) -> None:
    db = opening(registry)
    db.tenant("acme").put(Member(name="ann"))
    for partition, sort, tag in (
        ("TENANT#acme", "BILL#1", "Bill"),
        ("TENANT#acme", "BILL#1#v1", "_history:Bill"),
        ("BILL#2", "BILL", "Bill"),
        ("TENANT#other", "BILL#3", "Bill"),
    ):
        tenant = "other" if "other" in partition else "acme"
        item = {"PK": {"S": partition}, "SK": {"S": sort}, "_type": {"S": tag}, "tenant_id": {"S": tenant}}
        opening.plant(registry, item)
    opening.plant(registry, {"PK": {"S": "TENANT#acme"}, "SK": {"S": "UNTAGGED"}})
    done = db.admin().erase_tenant("acme", scan=scan)
    # Only a scan finds the bill in another partition.
    assert (done.done, done.removed, done.unknown) == (True, 1, 3 if scan is None else 4)
    assert len(opening.raw(registry)) == 5


def test_the_result_names_what_was_not_searched(opening: Opening) -> None:
    db = opening(office, plant)
    internal = ("leases", "tokens", "counters")
    admin = db.admin()
    assert admin.erase_tenant("acme").not_searched == {"Office": internal}
    assert admin.erase_tenant("acme", scan=False).not_searched == {
        "Office": internal,
        "Plant": ("Machine", *internal),
    }
    assert admin.erase_tenant("acme", scan=True).not_searched == {}


def test_a_scan_erases_leases_and_counters_of_the_tenant_alone(opening: Opening) -> None:
    db = opening(office)
    for store in (db.tenant("acme"), db.tenant("other")):
        store.counter(office, "hits").add(3)
        store.lease("job", table=office).acquire()
    others = _of(opening, office, "other")
    assert db.admin().erase_tenant("acme").removed == 0
    assert db.admin().erase_tenant("acme", scan=True).removed == 2
    assert _sorted(opening.raw(office)) == _sorted(others)


def test_leases_of_a_table_without_a_sort_key_belong_to_their_tenant(opening: Opening) -> None:
    db = opening(cabin)
    db.tenant("acme").lease("job").acquire()
    db.lease("acme").acquire()
    assert db.admin().erase_tenant("job", scan=True).removed == 0
    assert db.admin().erase_tenant("acme", scan=True).removed == 1
    assert [item["PK"]["S"] for item in opening.raw(cabin)] == ["LEASE#acme#LEASE"]


@pytest.mark.parametrize("most", [0, -1])
def test_a_bound_below_one_is_rejected(opening: Opening, most: int) -> None:
    db = opening(registry)
    db.tenant("acme").put(Member(name="ann"))
    with pytest.raises(DataError, match=f"most={most}; pass at least 1"):
        db.admin().erase_tenant("acme", most=most)
    assert len(opening.raw(registry)) == 1


def test_a_bound_is_exact(opening: Opening) -> None:
    db = opening(registry)
    for number in range(5):
        db.tenant("acme").put(Member(name=f"m{number}"))
    part = db.admin().erase_tenant("acme", most=2)
    assert (part.done, part.removed, len(opening.raw(registry))) == (False, 2, 3)


@pytest.mark.parametrize("tenant", [5, b"acme", None])
def test_a_tenant_that_is_not_a_string_is_rejected(opening: Opening, tenant: Any) -> None:
    with pytest.raises(DataError, match=f"got {type(tenant).__name__}"):
        opening(registry).admin().erase_tenant(tenant)
