"""Restores in place take what the store keeps for entities: locks, history, counters, the purge queue."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pytest

from solotable import (
    FROM_SCOPE,
    Database,
    Entity,
    History,
    Key,
    Outbox,
    SoftDelete,
    Table,
    Unique,
    Version,
)
from solotable.backup import BackupFile, Scope
from solotable.errors import NotUnique, RecoveryError
from tests.waiting import wait_until

shop = Table("Shop", tenant="tenant_id", ttl="expires_at", stream=True)


class Customer(Entity, table=shop):
    """A customer of a tenant, with a unique address."""

    key = Key("TENANT#{tenant_id}", "CUSTOMER#{customer_id}")

    tenant_id: str = FROM_SCOPE
    customer_id: str
    email: Annotated[str, Unique()]


class Page(Entity, table=shop):
    """An entity with snapshots, events, a grace period and a unique field."""

    key = Key("TENANT#{tenant_id}", "PAGE#{page_id}#LATEST")
    history = History("PAGE#{page_id}#v{version:06d}")
    events = Outbox(title="page_id")
    deletion = SoftDelete(grace=timedelta(days=30))

    tenant_id: str = FROM_SCOPE
    page_id: str
    slug: Annotated[str, Unique()]
    version: Annotated[int, Version()] = 0


class Domain(Entity, table=shop, scope="global"):
    """An entity of no tenant whose lock has the tag where others have their tenant."""

    key = Key("DOMAIN#{name}", "DOMAIN")

    name: str
    alias: Annotated[str, Unique()]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with shop.open(f"sqlite:///{tmp_path / 'shop.db'}?durability=relaxed") as opened:
        yield opened


@pytest.mark.parametrize("attribute", ["tenant_id", None])
@pytest.mark.parametrize("tenant", ["acme", "acme corp", "Domain"])
def test_a_restored_tenant_has_its_locks_and_counters(
    db: Database, tmp_path: Path, tenant: str, attribute: str | None
) -> None:
    with BackupFile(tmp_path / "shop.db") as file:
        file.enable("Shop")
        ours, others = db.tenant(tenant), db.tenant("zeta")
        for store in (ours, others):
            store.create(Customer(customer_id="1", email="ana@example.com"))
            store.counter(shop, "visits").add(5)
        db.create(Domain(name="a", alias="shop"))
        before = datetime.now(UTC)
        wait_until(lambda: datetime.now(UTC) > before)

        db.admin().erase_tenant(tenant, scan=True)
        ours.create(Customer(customer_id="2", email="ana@example.com"))
        for store in (ours, others):
            store.counter(shop, "visits").add(100)
        db.create(Domain(name="b", alias="other"))
        file.apply(file.preview("Shop", before, scope=Scope.of_tenant(tenant, attribute=attribute)))

    assert ours.get(Customer, customer_id="1") is not None
    assert ours.get(Customer, customer_id="2") is None
    with pytest.raises(NotUnique) as refused:
        ours.create(Customer(customer_id="3", email="ana@example.com"))
    assert refused.value.holder == {"tenant_id": tenant, "customer_id": "1"}
    ours.delete(Customer, customer_id="1")
    ours.create(Customer(customer_id="3", email="ana@example.com"))
    assert (ours.counter(shop, "visits").value(), others.counter(shop, "visits").value()) == (5, 105)
    with pytest.raises(NotUnique):
        db.create(Domain(name="c", alias="other"))


@pytest.mark.parametrize("name", ["../Shop", "a", "a/b", "x" * 256, ""])
def test_a_table_is_not_restored_under_a_name_that_no_table_can_have(
    db: Database, tmp_path: Path, name: str
) -> None:
    with BackupFile(tmp_path / "shop.db") as file:
        file.enable("Shop")
        with pytest.raises(RecoveryError, match="is not the name of a table: use 3 to 255 letters"):
            file.restore("Shop", datetime.now(UTC), name)
        assert file.tables() == ["Shop"]


def moment() -> datetime:
    """Return a time after all writes so far, and before all later ones."""
    now = datetime.now(UTC)
    wait_until(lambda: datetime.now(UTC) > now)
    return now


def items(file: BackupFile, word: str) -> dict[str, Any]:
    """Return the items with a word in their key or content; events only if it is theirs."""
    found = file.engine.call("Scan", {"TableName": "Shop"})["Items"]
    return {
        f"{item['PK']['S']} {item['SK']['S']}": item
        for item in found
        if word in str(item) and item["PK"]["S"].startswith("OUTBOX#") == (word == "OUTBOX#")
    }


@pytest.mark.parametrize("kind", ["tenant", "collection", "table"])
def test_a_restore_takes_versions_locks_and_the_purge_queue_with_their_entities(
    db: Database, tmp_path: Path, kind: str
) -> None:
    with BackupFile(tmp_path / "shop.db") as file:
        file.enable("Shop")
        ours, others = db.tenant("acme"), db.tenant("zeta")
        for store in (ours, others):
            home = store.create(Page(page_id="1", slug="home"))
            store.update(home, set={"slug": "start"})
            store.delete(store.create(Page(page_id="2", slug="about")))
        before, then = moment(), items(file, "acme")

        for store in (ours, others):
            store.undelete(Page, page_id="2")
            store.delete(store.update(store.require(Page, page_id="1"), set={"slug": "first"}))
            store.create(Page(page_id="3", slug="start"))
        events, zeta = items(file, "OUTBOX#"), items(file, "zeta")
        scope = {
            "tenant": Scope.of_tenant("acme"),
            "collection": Scope(key={"PK": {"S": "TENANT#acme"}}),
            "table": Scope(),
        }[kind]
        assert file.apply(file.preview("Shop", before, scope=scope)).conflicts == 0
        assert items(file, "acme") == then
        if kind != "table":
            assert (items(file, "zeta"), items(file, "OUTBOX#")) == (zeta, events)
        # A soft-deleted entity is in the purge queue again, and the one that was not deleted is not in it.
        assert [each for each in then if each.startswith("PURGE#")], then.keys()
        assert ours.undelete(Page, page_id="2").slug == "about"
        ours.create(Page(page_id="4", slug="home"))
        with pytest.raises(NotUnique):
            ours.create(Page(page_id="5", slug="start"))


def test_a_restored_item_has_its_locks_and_takes_none_from_others(db: Database, tmp_path: Path) -> None:
    with BackupFile(tmp_path / "shop.db") as file:
        file.enable("Shop")
        acme = db.tenant("acme")
        for number, email in (("1", "ana@"), ("2", "bob@"), ("3", "eve@")):
            acme.create(Customer(customer_id=number, email=email))
        before = moment()
        acme.delete(Customer, customer_id="1")
        acme.update(Customer, customer_id="2", set={"email": "new@"})
        acme.update(Customer, customer_id="3", set={"email": "bob@"})

        def restore(number: str) -> int:
            key = {"PK": {"S": "TENANT#acme"}, "SK": {"S": f"CUSTOMER#{number}"}}
            return file.apply(file.preview("Shop", before, scope=Scope(key=key))).conflicts

        assert restore("1") == 0
        with pytest.raises(NotUnique):
            acme.create(Customer(customer_id="4", email="ana@"))
        # Customer 3 has the address of customer 2 now: its lock stays, and is counted as a conflict.
        assert restore("2") == 1
        acme.create(Customer(customer_id="5", email="new@"))
        with pytest.raises(NotUnique) as refused:
            acme.create(Customer(customer_id="6", email="bob@"))
        assert refused.value.holder == {"tenant_id": "acme", "customer_id": "3"}
        # Customer 3 gives the address free, and customer 2 does not get its lock from this restore.
        assert restore("3") == 0
        acme.create(Customer(customer_id="7", email="bob@"))
