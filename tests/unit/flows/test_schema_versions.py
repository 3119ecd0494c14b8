"""The flows of upgrades and backfills by themselves: what they ask for, driven by hand."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import Entity, Index, Key, Table, upgrade
from solotable._expressions.evaluate import evaluate
from solotable._flows.cursors import CursorSigner
from solotable._flows.jobs.backfill import BackfillCounts, BackfillPage, Pace, Work, page
from solotable._flows.reads.scan import ScanPart
from solotable._flows.retry import Retries, Sleep
from solotable._flows.scope import Scope
from solotable._flows.transactions.commit import perform
from solotable._flows.writes.changes import Changes
from solotable._flows.writes.update import plan_update
from solotable._protocol.replies import GotItem, Page, TransactWrote, WroteItem
from solotable._protocol.requests import GetItem, Scan, TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.errors import ConditionFailed, DataError, OutcomeUnknown, ServiceError, TransactionCancelled

shop = Table("Shop", indexes=[Index("GSI1")])
SCOPE = Scope(
    names={"Shop": "shop"},
    clock=lambda: 0.0,
    retries=Retries(random=lambda: 0.0, attempts=2),
    cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: 0.0),
    tokens=lambda: "token",
    admin=True,
)
ALL = ScanPart(segment=0, segments=1, start=None, budget=100)


class Price(Entity, table=shop, schema_version=2):
    key = Key("PRICE#{name}", "PRICE")
    by_cents = Key("CENTS", "{cents:09d}", index="GSI1")
    name: str
    cents: int
    note: str = ""

    @upgrade(to=2, replaces=("euros",))
    @staticmethod
    def to_cents(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "cents": record["euros"] * 100}


def old(name: str, euros: int, **more: Any) -> Item:
    return {
        "PK": {"S": f"PRICE#{name}"},
        "SK": {"S": "PRICE"},
        "_type": {"S": "Price"},
        "name": {"S": name},
        "euros": {"N": str(euros)},
        **more,
    }


def new(name: str, cents: int) -> Item:
    return Price.plan().encode({"name": name, "cents": cents, "note": ""})


def refused(item: Item | None) -> ConditionFailed:
    return ConditionFailed("The conditional request failed", item=item)


def cancelled(*items: Item | None) -> TransactionCancelled:
    reasons = [
        {"Code": "None"} if item is None else {"Code": "ConditionalCheckFailed", "Item": item}
        for item in items
    ]
    return TransactionCancelled(reasons)


def ended(flow: Any, reply: Any) -> Any:
    with pytest.raises(StopIteration) as done:
        flow.send(reply)
    return done.value.value


def test_an_update_asks_for_the_current_schema_version_and_reads_only_when_it_is_another() -> None:
    changes = Changes(set={"note": "dear"})
    flow = perform(SCOPE, lambda: plan_update(SCOPE, Price.plan(), {"name": "a"}, changes))
    first = next(flow)
    assert isinstance(first, UpdateItem)
    assert first.condition is not None
    assert evaluate(first.condition, new("a", 1))
    assert not evaluate(first.condition, old("a", 1))
    waits = flow.throw(refused(old("a", 1)))
    assert isinstance(waits, Sleep)
    assert isinstance(flow.send(None), GetItem)
    second = flow.send(GotItem(item=old("a", 3)))
    assert isinstance(second, UpdateItem)
    assert second.condition is not None
    assert evaluate(second.condition, old("a", 3))
    for other in (old("a", 4), old("a", 3, note={"S": "x"}), new("a", 300), {}):
        assert not evaluate(second.condition, other)
    changed = ended(flow, WroteItem(attributes={**new("a", 300), "note": {"S": "dear"}}))
    assert (changed.cents, changed.note) == (300, "dear")


def begin(work: Work, *items: Item) -> tuple[Any, Any]:
    """Start a page that finds these items; return the flow and its first write."""
    flow = page(work, ALL)
    assert isinstance(next(flow), Scan)
    return flow, flow.send(Page(items=list(items), count=len(items), scanned=len(items) + 2))


def test_a_page_sends_one_transaction_and_redoes_what_others_came_before() -> None:
    flow, sent = begin(
        Work(scope=SCOPE, plan=Price.plan(), together=10), old("a", 1), new("b", 5), old("c", 3)
    )
    assert isinstance(sent, TransactWriteItems)
    assert len(sent.actions) == 2
    # Somebody gave c another price meanwhile; a goes alone after that.
    again = flow.throw(cancelled(None, old("c", 4)))
    assert isinstance(again, UpdateItem)
    assert again.condition is not None
    assert evaluate(again.condition, old("c", 4))
    alone = flow.send(WroteItem())
    assert isinstance(alone, UpdateItem)
    assert alone.key["PK"] == {"S": "PRICE#a"}
    done: BackfillPage = ended(flow, WroteItem())
    assert done.tally == BackfillCounts(seen=5, items=3, upgraded=2, conflicts=1)


def test_a_transaction_that_is_refused_as_a_whole_is_done_one_by_one() -> None:
    flow, sent = begin(Work(scope=SCOPE, plan=Price.plan(), together=10), old("a", 1), old("b", 2))
    assert isinstance(sent, TransactWriteItems)
    assert isinstance(flow.throw(ServiceError("ValidationException", "too large")), UpdateItem)
    assert isinstance(flow.send(WroteItem()), UpdateItem)
    assert ended(flow, WroteItem()).tally.upgraded == 2
    flow, sent = begin(Work(scope=SCOPE, plan=Price.plan(), together=10), old("a", 1), old("b", 2))
    assert len(sent.actions) == 2
    assert ended(flow, TransactWrote()).tally.upgraded == 2


def test_an_unknown_outcome_is_looked_up() -> None:
    flow, sent = begin(Work(scope=SCOPE, plan=Price.plan()), old("a", 1))
    assert isinstance(sent, UpdateItem)
    asked = flow.throw(OutcomeUnknown("no answer"))
    assert isinstance(asked, GetItem)
    assert asked.consistent
    assert ended(flow, GotItem(item=new("a", 100))).tally == BackfillCounts(seen=3, items=1, conflicts=1)


def test_an_item_that_always_changes_is_reported() -> None:
    flow, sent = begin(Work(scope=SCOPE, plan=Price.plan()), old("a", 0))
    done = None
    for euros in range(1, 100):
        try:
            sent = flow.throw(refused(old("a", euros)))
            while isinstance(sent, Sleep):
                sent = flow.send(None)
        except StopIteration as stopped:
            done = stopped.value
            break
    assert done is not None
    assert done.tally.failed == 1
    assert "conflict with another writer in 20 attempts" in done.problems[0]


def test_a_pace_holds_a_second_and_fills_with_time() -> None:
    now = [0.0]
    pace = Pace(10, lambda: now[0])
    assert pace.spend(10) == 0.0
    assert pace.spend(5) == pytest.approx(0.5)
    now[0] = 0.5
    assert pace.spend(0) == 0.0
    now[0] = 100.0
    assert pace.spend(25) == pytest.approx(1.5)


def test_a_paced_page_waits_for_what_it_took() -> None:
    pace = Pace(10, lambda: 0.0)
    flow = page(Work(scope=SCOPE, plan=Price.plan(), pace=pace), ALL)
    scan = next(flow)
    assert isinstance(scan, Scan)
    assert (scan.limit, scan.capacity) == (10, "TOTAL")
    reply = Page(items=[old("a", 1)], count=1, scanned=1, capacity={"CapacityUnits": 12.0})
    waits = flow.send(reply)
    assert isinstance(waits, Sleep)
    assert waits.seconds == pytest.approx(0.2)
    assert isinstance(flow.send(None), UpdateItem)
    waits = flow.send(WroteItem(capacity={"CapacityUnits": 3.0}))
    assert isinstance(waits, Sleep)
    assert waits.seconds == pytest.approx(0.5)
    assert ended(flow, None).tally.units == 15.0


def test_a_budget_of_nothing_reads_nothing() -> None:
    with pytest.raises(DataError, match="reached its budget"):
        next(
            page(Work(scope=SCOPE, plan=Price.plan()), ScanPart(segment=0, segments=1, start=None, budget=0))
        )
