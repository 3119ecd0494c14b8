"""The purge of deleted items: how many a second, in process, in a file at full durability."""

from __future__ import annotations

import tempfile
import time
from datetime import timedelta
from pathlib import Path

from solotable import FROM_SCOPE, Database, Entity, Index, Key, SoftDelete, Table
from solotable._expressions.ast import Update
from solotable._expressions.update import apply_update
from solotable._flows.jobs.purge_queue import QueueEntry, queue_put
from solotable._flows.traits.outbox import stamp
from solotable._flows.traits.soft_delete import hide_actions
from solotable._protocol.requests import BatchPut, BatchWriteItem, PutItem
from solotable.jobs.purge import purge

_DAY = 86_400
_AT_ONCE = 24
table = Table("Purging", tenant="tenant_id", indexes=[Index("GSI1")])


class Account(Entity, table=table):
    key = Key("TENANT#{tenant_id}#{account_id}", "ACCOUNT")
    by_mail = Key("TENANT#{tenant_id}#MAIL", "{mail}", index="GSI1")
    deletion = SoftDelete(grace=timedelta(days=30))
    tenant_id: str = FROM_SCOPE
    account_id: str
    mail: str
    note: str = "x" * 300


def purge_rate(items: int) -> float:
    """Return how many deleted items a second the purge removes."""
    moment = 1_800_000_000.0
    with tempfile.TemporaryDirectory() as folder:
        db = table.open(f"sqlite:///{Path(folder) / 'purge.db'}", clock=lambda: moment)
        _fill(db, items)
        moment += 31 * _DAY
        start = time.perf_counter()
        done = purge(db.admin())
        taken = time.perf_counter() - start
        assert done.items == items
        db.close()
    return items / taken


def _fill(db: Database, items: int) -> None:
    """Store deleted items as a delete leaves them, in batches: filling is not what is measured."""
    plan, scope = Account.plan(), db.scope.of_tenant("acme")
    keys = ("GSI1PK", "GSI1SK")
    pending: list[BatchPut] = []
    for number in range(items):
        name = f"{number:08d}"
        account = Account(tenant_id="acme", account_id=name, mail=f"{name}@example.com")
        item = plan.encode(account.__dict__)
        entry = QueueEntry(
            entity=plan.tag,
            key=plan.key_of(account.__dict__),
            deleted_at=stamp(scope.now()),
            purge_at=int(scope.clock()) + number % _DAY,
        )
        hidden = apply_update(
            Update(hide_actions(entry, {each: item[each] for each in keys}), creates=True), item
        )
        listed = queue_put(scope, plan, entry).action
        assert isinstance(listed, PutItem)
        pending += [BatchPut(item=hidden), BatchPut(item=listed.item)]
        if len(pending) == _AT_ONCE or number == items - 1:
            db.engine.handle(BatchWriteItem(tables=((scope.table(table), tuple(pending)),)))
            pending = []
