"""The registry of namespaces, and purging what belonged to one."""

from __future__ import annotations

import pytest

from solotable._flows.scope import Scope
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    CursorRejected,
    DataError,
    NotFound,
    TenantViolation,
)
from solotable.jobs.deliver import deliver
from solotable.systems.limiter.admin import namespaces as registry
from solotable.systems.limiter.admin.audit import audit, audit_sink, registry_audit
from solotable.systems.limiter.admin.limits import Limit
from solotable.systems.limiter.admin.registry import create_entity, get_entity, set_limits

from .conftest import Drive
from .ground import Place

RPM = Limit.per_minute("rpm", 100)


def bucket(namespace: str, number: int) -> Item:
    """A bucket as the limiter stores it, as far as it matters here."""
    return {
        "PK": {"S": f"{namespace}#BUCKET#e{number}#gpt-4#0"},
        "SK": {"S": "BUCKET"},
        "_type": {"S": "Bucket"},
        "namespace": {"S": namespace},
        "used_rpm": {"N": "1"},
    }


def fill(place: Place, scope: Scope, count: int = 3) -> None:
    """Put something of each kind into a namespace: an entity, limits, an audit record, events, buckets."""
    place.run(create_entity(scope, "acct"))
    place.run(create_entity(scope, "key", parent="acct"))
    place.run(set_limits(scope, [RPM], entity="acct"))
    deliver(place.db, [audit_sink()])
    assert scope.tenant is not None
    for number in range(count):
        place.plant(bucket(scope.tenant, number))
    place.plant(lease(scope.tenant, "job"))


def lease(*parts: str) -> Item:
    """A lease of the store, of a namespace or of none."""
    return {"PK": {"S": "#".join(("LEASE", *parts))}, "SK": {"S": "LEASE"}, "_type": {"S": "_lease"}}


def owned(place: Place, namespace_id: str) -> list[Item]:
    """Return the items that name a namespace anywhere in their keys."""
    return [item for item in place.raw() if namespace_id in item["PK"]["S"].split("#")]


def test_a_namespace_has_a_name_and_an_opaque_id(place: Place, drive: Drive) -> None:
    made = drive(registry.register(place.base, "prod"))
    other = drive(registry.register(place.base, "staging"))
    assert made.status == "active"
    assert len({made.id, other.id, "prod", "staging"}) == 4
    assert drive(registry.show(place.base, "prod")) == made
    assert drive(registry.name_of(place.base, made.id)) == "prod"
    assert drive(registry.name_of(place.base, "nobody")) is None
    with pytest.raises(AlreadyExists, match="'prod' already exists; choose another name"):
        drive(registry.register(place.base, "prod"))
    with pytest.raises(NotFound, match="Namespace 'dev' does not exist; register it first"):
        drive(registry.show(place.base, "dev"))
    scope = drive(registry.enter(place.base, "prod"))
    assert scope.tenant == made.id
    drive(create_entity(scope, "acct"))
    assert drive(get_entity(drive(registry.enter(place.base, "staging")), "acct")) is None
    assert all(item["namespace"] == {"S": made.id} for item in place.raw("LimitedEntity"))


@pytest.mark.parametrize("bad", ["_", "", "a#b", "é", "x" * 257, "_default_"])
def test_a_name_that_is_none_is_refused(place: Place, bad: str) -> None:
    for flow in (registry.register(place.base, bad), registry.show(place.base, bad)):
        with pytest.raises(DataError, match=r"^(A namespace name has|The namespace '_' is reserved)"):
            place.run(flow)
    assert place.sent() == []


def test_the_registry_is_out_of_reach_of_a_namespace(place: Place) -> None:
    with pytest.raises(TenantViolation, match="global"):
        place.run(registry.register(place.scope, "prod"))


def test_namespaces_are_listed_in_pages(place: Place, drive: Drive) -> None:
    for name in ("c", "a", "b"):
        drive(registry.register(place.base, name))
    drive(registry.delete(place.base, "b"))
    page = drive(registry.namespaces(place.base, limit=2))
    rest = drive(registry.namespaces(place.base, limit=2, cursor=page.cursor))
    listed = [(each.name, each.status) for each in (*page, *rest)]
    assert listed == [("a", "active"), ("b", "deleted"), ("c", "active")]
    with pytest.raises(CursorRejected):
        drive(registry.namespaces(place.base, cursor="nonsense"))


def test_a_deleted_namespace_keeps_its_name_and_items_and_is_recovered(place: Place, drive: Drive) -> None:
    made = drive(registry.register(place.base, "prod"))
    drive(create_entity(drive(registry.enter(place.base, "prod")), "acct"))
    deleted = drive(registry.delete(place.base, "prod"))
    assert (deleted.status, deleted.deleted) == ("deleted", place.clock.at(0))
    assert drive(registry.delete(place.base, "prod")) == deleted
    with pytest.raises(NotFound, match="'prod' was deleted; recover it"):
        drive(registry.enter(place.base, "prod"))
    with pytest.raises(AlreadyExists, match="it was deleted: recover or purge it"):
        drive(registry.register(place.base, "prod"))
    recovered = drive(registry.recover(place.base, "prod"))
    assert (recovered.id, recovered.status, recovered.deleted) == (made.id, "active", None)
    assert drive(get_entity(drive(registry.enter(place.base, "prod")), "acct")) is not None
    for verb in (registry.delete, registry.recover):
        with pytest.raises(NotFound):
            drive(verb(place.base, "nobody"))


def test_a_purge_removes_every_item_of_a_namespace_and_of_no_other(place: Place, drive: Drive) -> None:
    place.may_scan = True
    made = drive(registry.register(place.base, "prod"))
    kept = drive(registry.register(place.base, "prod2"))
    for name in ("prod", "prod2"):
        fill(place, drive(registry.enter(place.base, name)))
    before = owned(place, kept.id)
    assert {item["_type"]["S"] for item in before} == {
        "AuditRecord",
        "Bucket",
        "Family",
        "LimitedEntity",
        "StoredLimits",
        "_lease",
        "_outbox",
    }
    count = len(owned(place, made.id))
    with pytest.raises(ConditionFailed, match="'prod' is active; delete it before it is purged"):
        drive(registry.purge(place.base, "prod"))
    drive(registry.delete(place.base, "prod"))
    done = drive(registry.purge(place.base, "prod"))
    assert (done.done, done.removed) == (True, count)
    assert owned(place, made.id) == []
    assert owned(place, kept.id) == before
    assert place.raw("PurgeCheckpoint") == []
    with pytest.raises(NotFound):
        drive(registry.show(place.base, "prod"))
    assert drive(registry.register(place.base, "prod")).id != made.id


def test_a_purge_goes_on_where_it_was_broken_off(
    place: Place, drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.may_scan = True
    monkeypatch.setattr(registry, "_PAGE_ITEMS", 7)
    made = drive(registry.register(place.base, "prod"))
    fill(place, drive(registry.enter(place.base, "prod")), count=30)
    count = len(owned(place, made.id))
    drive(registry.delete(place.base, "prod"))
    steps: list[registry.PurgeProgress] = []

    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    def note(step: registry.PurgeProgress) -> None:
        steps.append(step)
        if len(steps) == 2:
            place.watched.slip_in(PutItem, kill)  # removed, and the place not kept

    with pytest.raises(Killed):
        drive(registry.purge(place.base, "prod", progress=note))
    left = len(owned(place, made.id))
    assert 0 < left < count
    with pytest.raises(ConditionFailed, match="its purge has begun"):
        drive(registry.recover(place.base, "prod"))
    with pytest.raises(NotFound):
        drive(registry.enter(place.base, "prod"))
    place.journal.clear()
    done = drive(registry.purge(place.base, "prod", progress=steps.append))
    assert done.done
    # The second run begins behind what the first one has done.
    assert len(place.journal.scans) < len(steps)
    assert owned(place, made.id) == []


def test_a_namespace_that_is_recovered_in_between_is_not_purged(place: Place) -> None:
    place.may_scan = True
    place.run(registry.register(place.base, "prod"))
    place.run(registry.delete(place.base, "prod"))
    beside = place.beside()
    recovered = registry.recover(place.base, "prod")
    place.watched.slip_in(TransactWriteItems, lambda: run(recovered, beside.engine))
    with pytest.raises(ConditionFailed, match="'prod' is active; delete it"):
        place.run(registry.purge(place.base, "prod"))
    assert place.run(registry.show(place.base, "prod")).status == "active"


def test_orphans_are_what_no_registered_namespace_has(place: Place, drive: Drive) -> None:
    place.may_scan = True
    drive(registry.register(place.base, "prod"))
    fill(place, drive(registry.enter(place.base, "prod")))
    deliver(place.db, [audit_sink()])
    assert drive(registry.orphans(place.base)).items == {}
    place.plant(lease("gone"))  # a lease of that name, of no namespace
    for number in range(3):
        place.plant(bucket("gone", number))
    found = drive(registry.orphans(place.base))
    assert (dict(found.items), found.looked_at) == ({"gone": 3}, len(place.raw()))
    for taken in (drive(registry.show(place.base, "prod")).id, "_"):
        with pytest.raises(DataError, match="is the id of a namespace"):
            drive(registry.purge_orphan(place.base, taken))
    assert drive(registry.purge_orphan(place.base, "gone")) == 3
    assert drive(registry.orphans(place.base)).items == {}


def test_the_trail_of_the_registry_outlives_its_namespaces(place: Place, drive: Drive) -> None:
    place.may_scan = True
    drive(registry.register(place.base, "prod"))
    for verb in (registry.delete, registry.recover, registry.delete, registry.purge):
        place.clock.seconds += 1
        drive(verb(place.base, "prod"))
    deliver(place.db, [audit_sink()])
    page = drive(registry_audit(place.base))
    assert sorted(each.action for each in page) == [
        "namespace_created",
        "namespace_deleted",
        "namespace_deleted",
        "namespace_purged",
        "namespace_purging",
        "namespace_recovered",
    ]
    assert {(each.title, each.actor_name, each.namespace) for each in page} == {("prod", "Ann", "_")}
    assert len(drive(audit(place.scope))) == 0
