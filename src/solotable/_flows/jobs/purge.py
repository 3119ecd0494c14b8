"""Remove items for good, with a receipt, as many in a transaction as fit.

Conditions decide, never a read alone: an item is removed only if it is still the one that its entry was
written for and has no hold. A rejected item is left out, and the others are removed.
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
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._flows.transactions.write import all_of, as_stored
from solotable._protocol.requests import DeleteItem, TransactWriteItems, UpdateItem, WriteAction
from solotable._values import Item
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import TransactionCancelled

from .purge_queue import QueueEntry, digest_of, held_by, queue_key
from .receipts import ReceiptEntry, Why, receipt_put

#: How many actions a transaction of the purge has; one is the receipt.
MOST_ACTIONS = MOST_TRANSACTION_ACTIONS - 1
#: After so many conflicts with other writers, items go one by one.
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

    @property
    def adds(self) -> bool:
        """Whether it adds to counters, which others may do too; a transaction takes an item once."""
        return any(isinstance(action, UpdateItem) for action in self.along)

    @property
    def weight(self) -> int:
        """How many actions it is."""
        return 1 + len(self.along)


@dataclass(frozen=True, slots=True)
class RejectedRemoval:
    """An item that was not removed, and the item under its key; None: no item."""

    removal: Removal
    item: Item | None

    @property
    def held(self) -> str | None:
        """Why it is held; None if it is another item than expected."""
        return None if self.item is None else held_by(self.item)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeRun:
    """One run of a purge: its name, and the table that its receipts lie in."""

    scope: Scope
    name: str
    table: Table


def is_plain(plan: Plan) -> bool:
    """Return whether an item of the entity is removed alone: it has no lock, name, history or child."""
    traits = (UniqueRule, Names, History)
    cascades = plan.deletion is not None and bool(plan.deletion.cascade)
    return not cascades and not any(isinstance(trait, traits) for trait in plan.traits)


def due(run: PurgeRun, plan: Plan, entry: QueueEntry) -> Removal:
    """Return the removal of the item that an entry stands for."""
    place = entry.place or queue_key(plan, entry.key, entry.purge_at)
    action = DeleteItem(table=run.scope.table(plan.table), key=place)
    condition = all_of([*as_stored(entry.seen), Not(Exists((HELD,)))])
    assert condition is not None
    return Removal(plan=plan, key=entry.key, condition=condition, why="deleted", along=(action,))


def remove(run: PurgeRun, removals: Sequence[Removal]) -> Flow[list[RejectedRemoval]]:
    """Remove items together, those that are refused left out; return the refused ones."""
    left = list(removals)
    refused: list[RejectedRemoval] = []
    for attempt in range(CONFLICT_ATTEMPTS):
        if not left:
            return refused
        if attempt >= _TOGETHER and len(left) > 1:
            for removal in left:
                refused += yield from remove(run, [removal])
            return refused
        try:
            yield from _send(run, left)
        except TransactionCancelled as cancelled:
            left, more = _sorted_out(left, cancelled.reasons)
            refused += more
            if not more:
                yield run.scope.retries.wait(attempt)
            if attempt == CONFLICT_ATTEMPTS - 1:
                raise
        else:
            return refused
    return refused


def forget(run: PurgeRun, plan: Plan, entry: QueueEntry) -> Flow[None]:
    """Remove the entry of an item that is gone, or that was restored."""
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
    """Yield removals by as many as a transaction takes."""
    chunk: list[Removal] = []
    weight = 0
    for removal in removals:
        if chunk and (weight + removal.weight > MOST_ACTIONS or removal.adds):
            yield chunk
            chunk, weight = [], 0
        chunk.append(removal)
        weight += removal.weight
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
    # The token alone tells a repeated transaction: no other has it.
    token = scope.tokens()
    sent = TransactWriteItems(actions=tuple(actions), token=token, fingerprint=token.encode())
    yield from send(sent, scope.retries)


def _sorted_out(
    removals: Sequence[Removal], reasons: Sequence[Mapping[str, Any]]
) -> tuple[list[Removal], list[RejectedRemoval]]:
    """Return what may be tried again, without the derived writes that were refused, and what was refused."""
    left: list[Removal] = []
    refused: list[RejectedRemoval] = []
    at = 0
    for removal in removals:
        own, *others = reasons[at : at + removal.weight]
        at += removal.weight
        if own["Code"] == "ConditionalCheckFailed":
            refused.append(RejectedRemoval(removal, own.get("Item")))
            continue
        # A lock or a name that another entity has taken since is not removed.
        pairs = zip(removal.along, others, strict=True)
        kept = tuple(action for action, why in pairs if why["Code"] != "ConditionalCheckFailed")
        left.append(removal if len(kept) == len(removal.along) else replace(removal, along=kept))
    return left, refused


def is_due(entry: QueueEntry, item: Item) -> bool:
    """Whether an item is the one that an entry was written for."""
    return all(item.get(name) == value for name, value in entry.seen.items())
