"""The flows of events and leases by themselves, driven by hand and without an engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import pytest
from pydantic import Field

from solotable import FROM_SCOPE, Actor, Entity, Key, Outbox, Table, Version
from solotable._flows.cursors import CursorSigner
from solotable._flows.retry import Retries
from solotable._flows.scope import Scope
from solotable._flows.traits import leases
from solotable._flows.traits.outbox import audit_item, event, load_event
from solotable._flows.transactions.write import Change, Stored
from solotable._flows.writes.put import plan_put, prepare_put
from solotable._protocol.replies import GotItem, WroteItem
from solotable._protocol.requests import GetItem, PutItem, UpdateItem
from solotable.errors import ConditionFailed, DataError, LeaseHeld, LeaseLost, OutcomeUnknown

table = Table("Shop", tenant="tenant_id", ttl="expires_at", stream=True)


class Order(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "ORDER#{order_id}")
    events = Outbox(title="label", days=3)
    tenant_id: str = FROM_SCOPE
    order_id: str
    label: str = "L"
    lines: list[str] = Field(default_factory=list)
    version: Annotated[int, Version()] = 0


SCOPE = Scope(
    names={"Shop": "shop"},
    tables=(table,),
    clock=lambda: 1000.25,
    retries=Retries(random=lambda: 0.0),
    cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: 0.0),
    tokens=lambda: "token",
    tenant="acme",
)


def stored(version: int, label: str = "L") -> Stored:
    entity = Order(tenant_id="acme", order_id="o", label=label, version=version)
    return Stored(Order.plan().encode(entity.__dict__), entity)


def written(scope: Scope, before: Stored | None, after: Stored | None) -> dict[str, Any]:
    (derived,) = event(scope, Order.plan().traits[0], Change(Order.plan(), before, after))  # type: ignore[arg-type]
    assert isinstance(derived.action, PutItem)
    return derived.action.item


def test_an_event_lies_in_its_tenants_outbox_by_time() -> None:
    item = written(SCOPE, None, stored(1))
    assert item["PK"] == {"S": "OUTBOX#acme"}
    assert item["SK"]["S"].startswith("1970-01-01T00:16:40.250000Z#")
    assert item["_type"] == {"S": "_outbox"}
    assert item["expires_at"] == {"N": str(1000 + 3 * 24 * 3600)}


def test_an_events_id_comes_from_its_facts_alone() -> None:
    def name(scope: Scope, before: Stored | None, after: Stored | None) -> str:
        return load_event(table, written(scope, before, after)).id

    first = name(SCOPE, None, stored(1))
    assert name(SCOPE, None, stored(1)) == first
    others = [
        name(SCOPE, stored(1), stored(2)),
        name(SCOPE, stored(1), None),
        name(replace(SCOPE, clock=lambda: 1001.0), None, stored(1)),
        name(replace(SCOPE, tokens=lambda: "another"), None, stored(1)),
    ]
    assert len({first, *others}) == 5


def test_an_audit_item_has_the_same_event_under_another_key() -> None:
    scope = SCOPE.acting(Actor(id="u", email="u@example.org"), "r1")
    item = written(scope, stored(1), stored(2, "M"))
    kept = audit_item(table, item, days=None)
    found = load_event(table, kept)
    assert kept["SK"] == {"S": f"AUDIT#1970-01-01T00:16:40.250000Z#{found.id}"}
    assert "expires_at" not in kept
    assert found == load_event(table, item)
    assert (found.actor, found.request_id) == (scope.actor, "r1")
    assert found.changes["label"].model_dump() == {"before": "L", "after": "M"}


def test_an_event_that_would_be_too_large_is_refused_with_a_way_out() -> None:
    half = Order(tenant_id="acme", order_id="o", lines=["x" * 250_000], version=1)
    other = half.model_copy(update={"lines": ["y" * 250_000], "version": 2})
    both = [Stored(Order.plan().encode(each.__dict__), each) for each in (half, other)]
    with pytest.raises(DataError, match="snapshot"):
        written(SCOPE, both[0], both[1])


def test_a_create_needs_no_reading_and_carries_its_event() -> None:
    flow = plan_put(SCOPE, prepare_put(SCOPE, Order(order_id="o")), create=True)
    with pytest.raises(StopIteration) as done:
        next(flow)
    assert [derived.title for derived in done.value.value.derived_writes] == ["the event of Order"]


def terms(**more: Any) -> leases.LeaseTerms:
    given = {"seconds": 10.0, "owner": "me", "skew_seconds": 1.0, "table": None, **more}
    return leases.lease_terms(SCOPE, "nightly", **given)


def held() -> dict[str, Any]:
    return {"token": {"N": "7"}, "owner": {"S": "other"}, "until": {"N": "1005"}}


def test_taking_a_lease_is_one_conditional_update() -> None:
    flow = leases.acquire(SCOPE, terms())
    request = next(flow)
    assert isinstance(request, UpdateItem)
    assert request.key["PK"] == {"S": "LEASE#acme#nightly"}
    with pytest.raises(StopIteration) as done:
        flow.send(WroteItem(attributes={"token": {"N": "8"}, "owner": {"S": "me"}}))
    assert (done.value.value.token, done.value.value.until) == (8, 1010.25)


def test_the_lease_of_another_owner_is_reported_with_its_owner() -> None:
    flow = leases.acquire(SCOPE, terms())
    next(flow)
    with pytest.raises(LeaseHeld) as refused:
        flow.throw(ConditionFailed(item=held()))
    assert (refused.value.owner, refused.value.until.timestamp()) == ("other", 1005.0)


def test_a_lease_whose_taking_has_no_answer_is_looked_for() -> None:
    flow = leases.acquire(SCOPE, terms())
    next(flow)
    assert isinstance(flow.throw(OutcomeUnknown("lost")), GetItem)
    with pytest.raises(StopIteration) as done:
        flow.send(GotItem(item={"token": {"N": "9"}, "owner": {"S": "me"}, "until": {"N": "1010"}}))
    assert done.value.value.token == 9
    flow = leases.acquire(SCOPE, terms())
    next(flow)
    flow.throw(OutcomeUnknown("lost"))
    with pytest.raises(OutcomeUnknown):
        flow.send(GotItem(item=held()))


def test_renewing_what_another_has_is_a_loss() -> None:
    flow = leases.renew(SCOPE, leases.HeldLease(terms=terms(), token=6, until=1000.0))
    next(flow)
    with pytest.raises(LeaseLost, match="'other' holds it with token 7"):
        flow.throw(ConditionFailed(item=held()))
