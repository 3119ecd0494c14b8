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
from solotable.errors import DataError
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
