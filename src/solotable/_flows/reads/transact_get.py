"""Read several entities at one moment: TransactGetItems, all or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from solotable._entities.keys.key import EntityKey
from solotable._flows.hooks import check_readers
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.transactions.conflicts import retry_conflicts
from solotable._protocol.replies import TransactGot
from solotable._protocol.requests import GetItem, TransactGetItems
from solotable._values.limits import MOST_TRANSACTION_ACTIONS
from solotable.errors import DataError, SolotableError, TransactionCancelled, TransactionFailed

from .get import admit_all, identity, locate


@dataclass(frozen=True, slots=True)
class FailedGet:
    """One failed get of a transaction; `position` is its index among the caller's keys."""

    position: int
    key: EntityKey[Any]
    code: str
    message: str

    def __str__(self) -> str:
        return f"#{self.position + 1} {self.key!r} ({self.message})"


def transact_get(scope: Scope, keys: Sequence[EntityKey[Any]]) -> Flow[tuple[Any, ...]]:
    """Return the entities with these keys as they were at one moment; None for missing ones."""
    yield from check_readers(key.entity.plan() for key in keys)
    gets: dict[tuple[str, ...], GetItem] = {}
    identities = []
    for entity_key in keys:
        table, key = locate(scope, entity_key)
        name = scope.table(table)
        identities.append(identity(name, key, table.key_names))
        # DynamoDB rejects an item that occurs twice.
        gets[identities[-1]] = GetItem(table=name, key=key)
    if len(gets) > MOST_TRANSACTION_ACTIONS:
        raise DataError(
            f"transact_get() reads at most {MOST_TRANSACTION_ACTIONS} items, got {len(gets)}; "
            f"split it, or use get_many if the entities need not be of one moment."
        )
    if not gets:
        return ()
    request = TransactGetItems(gets=tuple(gets.values()))
    try:
        reply: TransactGot = yield from retry_conflicts(
            scope, lambda: send(request, scope.retries), when=_is_transient
        )
    except TransactionCancelled as cancelled:
        reasons = dict(zip(gets, cancelled.reasons, strict=True))
        raise _failed(keys, [reasons[each] for each in identities], cancelled) from cancelled
    found = dict(zip(gets, reply.items, strict=True))
    items = [None if (item := found[each]) is None else decode_item(item) for each in identities]
    return (yield from admit_all(scope, keys, items))


def _is_transient(error: SolotableError) -> bool:
    return isinstance(error, TransactionCancelled) and error.is_transient


def _failed(
    keys: Sequence[EntityKey[Any]], reasons: Sequence[dict[str, Any]], cancelled: TransactionCancelled
) -> TransactionFailed:
    failures = []
    for position, (key, reason) in enumerate(zip(keys, reasons, strict=True)):
        code = reason["Code"]
        if code == "TransactionConflict":
            message = "another transaction writes the item; try again"
        else:
            message = reason.get("Message") or code
        if code != "None":
            failures.append(FailedGet(position, key, code, message))
    return TransactionFailed(
        f"The transactional read of {len(keys)} failed at {'; '.join(map(str, failures))}.",
        reasons=cancelled.reasons,
        failures=failures,
    )
