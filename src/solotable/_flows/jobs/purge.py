"""Remove items permanently, with a receipt, in transactions of as many items as possible.

Each removal is conditional: the item must still be the one that its entry was written for, and have no
hold. A rejected item is left out, and the others are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.traits.history import History
from solotable._entities.traits.names import Names
from solotable._entities.traits.soft_delete import HELD
from solotable._entities.traits.unique import UniqueRule
from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.sync.entries import LogEntry
from solotable._flows.sync.log import log_actions
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._flows.transactions.write import all_of, attributes_unchanged
from solotable._protocol.requests import DeleteItem, TransactWriteItems, UpdateItem, WriteAction
from solotable._values import Item
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import TransactionCancelled

from .purge_queue import QueueEntry, digest_of, held_by, queue_key
from .receipts import ReceiptEntry, Why, receipt_put

#: The number of actions in a transaction of the purge, without its receipt.
MOST_ACTIONS = MOST_TRANSACTION_ACTIONS - 1
#: After this number of conflicts with other writers, items are removed one by one.
_TOGETHER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """One item to remove, its condition, and the writes in the same transaction."""

    plan: Plan
    key: Item
    condition: Condition
    why: Why
    along: tuple[WriteAction, ...] = ()
    history: int = 0
    #: The log entry of an item that clients see until now.
    entry: LogEntry | None = None

    @property
    def adds(self) -> bool:
        """Whether it adds to counters; two such removals may write the same item."""
        return any(isinstance(action, UpdateItem) for action in self.along)

    @property
    def weight(self) -> int:
        """The number of its actions."""
        return 1 + len(self.along)

    @property
    def room(self) -> int:
        """The most actions that it adds to a transaction: with the head and the record of its space."""
        return self.weight + (0 if self.entry is None else 2)


@dataclass(frozen=True, slots=True)
class RejectedRemoval:
    """An item that was not removed, and the stored item under its key."""

    removal: Removal
    item: Item | None

    @property
    def held(self) -> str | None:
        """The reason of its hold; None without a hold."""
        return None if self.item is None else held_by(self.item)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRun:
    """One run of a purge: its name, and the table of its receipts."""

    scope: Scope
    name: str
    table: Table


def is_plain(plan: Plan) -> bool:
    """Return whether items of the entity have no locks, names, history or children."""
    traits = (UniqueRule, Names, History)
    cascades = plan.deletion is not None and bool(plan.deletion.cascade)
    return not cascades and not any(isinstance(trait, traits) for trait in plan.traits)


def due(run: PurgeRun, plan: Plan, entry: QueueEntry) -> Removal:
    """Return the removal of the item of a queue entry."""
    own_key = entry.own_key or queue_key(plan, entry.key, entry.purge_at)
    action = DeleteItem(table=run.scope.table(plan.table), key=own_key)
    condition = all_of([*attributes_unchanged(entry.seen), Not(Exists((HELD,)))])
    assert condition is not None
    return Removal(plan=plan, key=entry.key, condition=condition, why="deleted", along=(action,))


def remove(run: PurgeRun, removals: Sequence[Removal]) -> Flow[list[RejectedRemoval]]:
    """Remove items in one transaction, without those whose condition fails; return the rejected ones."""
    left = list(removals)
    rejected: list[RejectedRemoval] = []
    for attempt in range(CONFLICT_ATTEMPTS):
        if not left:
            return rejected
        if attempt >= _TOGETHER and len(left) > 1:
            for removal in left:
                rejected += yield from remove(run, [removal])
            return rejected
        try:
            yield from _send(run, left)
        except TransactionCancelled as cancelled:
            left, more = _split_rejected(left, cancelled.reasons)
            rejected += more
            if not more:
                yield run.scope.retries.wait(attempt)
            if attempt == CONFLICT_ATTEMPTS - 1:
                raise
        else:
            return rejected
    return rejected


def forget(run: PurgeRun, plan: Plan, entry: QueueEntry) -> Flow[None]:
    """Remove the entry of an item that was removed or restored."""
    key = queue_key(plan, entry.key, entry.purge_at)
    yield from send(DeleteItem(table=run.scope.table(plan.table), key=key), run.scope.retries)


def expired(run: PurgeRun, plan: Plan, item: Item) -> Removal:
    """Return the removal of an item whose time to live has passed."""
    path = (plan.attributes[plan.ttl or ""].wire,)
    now = Const({"N": str(int(run.scope.clock()))})
    conditions: tuple[Condition, ...] = (Compare("<=", Attr(path), now), Not(Exists((HELD,))))
    key = {name: item[name] for name in plan.primary.names}
    return Removal(plan=plan, key=key, condition=And(conditions), why="expired")


def chunks(removals: Sequence[Removal]) -> Iterator[list[Removal]]:
    """Yield groups of removals that fit into one transaction."""
    chunk: list[Removal] = []
    weight = 0
    for removal in removals:
        if chunk and (weight + removal.room > MOST_ACTIONS or removal.adds):
            yield chunk
            chunk, weight = [], 0
        chunk.append(removal)
        weight += removal.room
    if chunk:
        yield chunk


def _send(run: PurgeRun, removals: Sequence[Removal]) -> Flow[None]:
    scope = run.scope
    actions: list[WriteAction] = []
    for removal in removals:
        actions.append(
            DeleteItem(
                table=scope.table(removal.plan.table),
                key=removal.key,
                condition=removal.condition,
                returns_on_failure=True,
            )
        )
        actions += removal.along
    entries = (
        ReceiptEntry(
            entity=each.plan.name, digest=digest_of(each.plan, each.key), why=each.why, history=each.history
        )
        for each in removals
    )
    actions.append(receipt_put(scope, run.table, run.name, entries))
    logged = [each.entry for each in removals if each.entry is not None]
    if logged:
        # They come last: a conflict on them rejects no removal, and the transaction is repeated.
        more, _ = yield from log_actions(scope, logged)
        actions += more
    # The token is unique, so it can serve as the fingerprint.
    token = scope.tokens()
    sent = TransactWriteItems(actions=tuple(actions), token=token, fingerprint=token.encode())
    yield from send(sent, scope.retries)


def _split_rejected(
    removals: Sequence[Removal], reasons: Sequence[Mapping[str, Any]]
) -> tuple[list[Removal], list[RejectedRemoval]]:
    """Return the removals to try again, without their rejected derived writes, and the rejected removals."""
    left: list[Removal] = []
    rejected: list[RejectedRemoval] = []
    at = 0
    for removal in removals:
        own, *others = reasons[at : at + removal.weight]
        at += removal.weight
        if own["Code"] == "ConditionalCheckFailed":
            rejected.append(RejectedRemoval(removal, own.get("Item")))
            continue
        # Do not remove a lock or a name that another entity has acquired since.
        pairs = zip(removal.along, others, strict=True)
        along = tuple(action for action, reason in pairs if reason["Code"] != "ConditionalCheckFailed")
        left.append(removal if len(along) == len(removal.along) else replace(removal, along=along))
    return left, rejected


def is_due(entry: QueueEntry, item: Item) -> bool:
    """Return whether an item is the one that an entry was written for."""
    return all(item.get(name) == value for name, value in entry.seen.items())
