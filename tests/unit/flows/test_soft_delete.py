"""The flows of soft deletes by themselves, driven by hand and without an engine."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import pytest

from solotable import FROM_SCOPE, Entity, Index, Key, SoftDelete, Table, Version
from solotable._expressions.update import apply_update
from solotable._flows.cursors import CursorSigner
from solotable._flows.jobs.purge import PurgeRun, RejectedRemoval, Removal, chunks, due, remove
from solotable._flows.jobs.purge_queue import QueueEntry, digest_of, queue_key
from solotable._flows.retry import Retries
from solotable._flows.scope import Scope
from solotable._flows.traits.soft_delete import plan_soft_delete, plan_undelete
from solotable._flows.transactions.write import DerivedWrite, Write
from solotable._protocol.engine import Capabilities
from solotable._protocol.replies import GotItem
from solotable._protocol.requests import (
    ConditionCheck,
    GetItem,
    PutItem,
    Request,
    TransactWriteItems,
    UpdateItem,
)
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import NotFound, TransactionCancelled

table = Table("Shop", tenant="tenant_id", indexes=[Index("GSI1")])


class Order(Entity, table=table):
    key = Key("TENANT#{tenant_id}", "ORDER#{order_id}")
    by_label = Key("TENANT#{tenant_id}#LABEL", "{label}", index="GSI1")
    deletion = SoftDelete(grace=timedelta(days=2))
    tenant_id: str = FROM_SCOPE
    order_id: str
    label: str | None = "L"
    version: Annotated[int, Version()] = 0


PLAN = Order.plan()
SCOPE = Scope(
    names={"Shop": "shop"},
    tables=(table,),
    clock=lambda: 1000.25,
    retries=Retries(random=lambda: 0.0),
    cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: 0.0),
    tokens=lambda: "token",
    tenant="acme",
)
GIVEN = {"tenant_id": "acme", "order_id": "o"}
ITEM: Item = PLAN.encode(Order(tenant_id="acme", order_id="o", version=3).__dict__)
RUN = PurgeRun(scope=SCOPE.of_admin(), name="run", table=table)


def planned(flow: Any, item: Item | None) -> Write:
    """Answer the one reading of a flow, and return the write that it plans."""
    asked = next(flow)
    assert isinstance(asked, GetItem)
    assert asked.consistent
    with pytest.raises(StopIteration) as done:
        flow.send(GotItem(item=item))
    write: Write = done.value.value
    return write


def soft(item: Item | None, scope: Scope = SCOPE) -> Write:
    return planned(plan_soft_delete(scope, PLAN, GIVEN, None, mine=None, where=None), item)


def test_a_delete_is_one_update_and_one_ticket() -> None:
    write = soft(ITEM)
    assert isinstance(write.action, UpdateItem)
    hidden = apply_update(write.action.update, ITEM)
    assert hidden["_deleted_at"] == {"S": "1970-01-01T00:16:40.250000Z"}
    assert hidden["_purge_at"] == {"N": str(1001 + 2 * 86_400)}, "never a fraction of a second early"
    assert not {"GSI1PK", "GSI1SK"} & hidden.keys()
    assert hidden["version"] == {"N": "3"}
    (derived,) = write.derived_writes
    assert isinstance(derived, DerivedWrite)
    assert isinstance(derived.action, PutItem)
    assert derived.action.item["PK"]["S"].startswith("PURGE#")
    assert derived.action.item[table.internal_tag] == {"S": "_purge"}


def test_an_undelete_turns_it_round_exactly() -> None:
    deleted = soft(ITEM)
    assert isinstance(deleted.action, UpdateItem)
    hidden = apply_update(deleted.action.update, ITEM)
    write = planned(plan_undelete(SCOPE, PLAN, GIVEN), hidden)
    assert isinstance(write.action, UpdateItem)
    assert apply_update(write.action.update, hidden) == ITEM
    entry, removal = deleted.derived_writes[0], write.derived_writes[0]
    assert isinstance(entry, DerivedWrite)
    assert isinstance(removal, DerivedWrite)
    put, removed = entry.action, removal.action
    assert isinstance(put, PutItem)
    assert removed.key == {name: put.item[name] for name in ("PK", "SK")}  # type: ignore[union-attr]


def test_a_sparse_index_key_is_not_made_up() -> None:
    bare = PLAN.encode(Order(tenant_id="acme", order_id="o", label=None, version=3).__dict__)
    deleted = soft(bare)
    assert isinstance(deleted.action, UpdateItem)
    hidden = apply_update(deleted.action.update, bare)
    assert "_deleted_keys" not in hidden
    write = planned(plan_undelete(SCOPE, PLAN, GIVEN), hidden)
    assert isinstance(write.action, UpdateItem)
    assert apply_update(write.action.update, hidden) == bare


def test_nothing_there_is_nothing_to_write() -> None:
    assert isinstance(soft(None).action, ConditionCheck)


@pytest.mark.parametrize("seconds", [1001 + 2 * 86_400, 10**9])
def test_the_grace_ends_when_the_purge_may_begin(seconds: float) -> None:
    deleted = soft(ITEM)
    assert isinstance(deleted.action, UpdateItem)
    hidden = apply_update(deleted.action.update, ITEM)
    flow = plan_undelete(replace(SCOPE, clock=lambda: seconds), PLAN, GIVEN)
    next(flow)
    with pytest.raises(NotFound, match="its grace period is over"):
        flow.send(GotItem(item=hidden))


def test_digests_tell_keys_apart_and_shards_are_steady() -> None:
    keys = [PLAN.key_from({"tenant_id": "acme", "order_id": str(each)}) for each in range(100)]
    assert len({digest_of(PLAN, key) for key in keys}) == 100
    places = [queue_key(PLAN, key, 5) for key in keys]
    assert places == [queue_key(PLAN, key, 5) for key in keys]
    assert len({place["PK"]["S"] for place in places}) == 8
    earlier, later = queue_key(PLAN, keys[0], 9)["SK"]["S"], queue_key(PLAN, keys[0], 10)["SK"]["S"]
    assert earlier < later


def removals(count: int) -> list[Removal]:
    keys = (PLAN.key_from({"tenant_id": "acme", "order_id": str(each)}) for each in range(count))
    seen = {"deleted_at": "1970-01-01T00:16:40.250000Z", "purge_at": 7}
    return [due(RUN, PLAN, QueueEntry(entity=PLAN.tag, key=key, **seen)) for key in keys]  # type: ignore[arg-type]


def test_a_transaction_has_as_many_pairs_as_it_takes_and_a_receipt() -> None:
    flow = remove(RUN, next(iter(chunks(removals(120)))))
    sent = next(flow)
    assert isinstance(sent, TransactWriteItems)
    assert len(sent.actions) == 99
    receipt = sent.actions[-1]
    assert isinstance(receipt, PutItem)
    assert len(receipt.item["_facts"]["M"]["entries"]["L"]) == 49
    assert [len(chunk) for chunk in chunks(removals(120))] == [49, 49, 22]


def test_what_is_refused_is_left_out_and_the_rest_goes() -> None:
    wanted = removals(3)
    flow = remove(RUN, wanted)
    next(flow)
    none = {"Code": "None"}
    failed = {"Code": "ConditionalCheckFailed", "Item": ITEM}
    sent = flow.throw(TransactionCancelled([none, none, failed, none, none, none, none]))
    assert isinstance(sent, TransactWriteItems)
    assert len(sent.actions) == 5
    with pytest.raises(StopIteration) as done:
        flow.send(None)
    assert done.value.value == [RejectedRemoval(wanted[1], ITEM)]


def test_after_some_conflicts_items_go_one_by_one() -> None:
    sizes: list[int] = []

    def engine(request: Request[Any]) -> Any:
        if isinstance(request, TransactWriteItems):
            sizes.append(len(request.actions))
            if len(request.actions) > 3:
                raise TransactionCancelled([{"Code": "TransactionConflict"}] * len(request.actions))

    class Busy:
        capabilities = Capabilities(sleep=lambda seconds: None)
        handle = staticmethod(engine)
        close = staticmethod(lambda: None)

    assert run(remove(RUN, removals(2)), Busy()) == []
    assert sizes == [5, 5, 5, 3, 3]
