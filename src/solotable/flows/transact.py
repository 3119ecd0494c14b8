"""Transactions over entities: collected, checked against DynamoDB's limits, sent as one.

All or nothing. The failure names the entity and its condition, in the caller's order. More than DynamoDB
takes at once is an error, never several transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from solotable.errors import (
    ConditionFailed,
    DataError,
    SolotableError,
    TransactionCancelled,
    TransactionFailed,
)
from solotable.protocol.limits import LARGEST_TRANSACTION, LONGEST_TOKEN, MOST_TRANSACTION_ACTIONS
from solotable.protocol.requests import ConditionCheck, PutItem, TransactWriteItems, UpdateItem, WriteAction
from solotable.values import Item, item_size

from .ask import Flow, ask
from .scope import Scope
from .update import is_outdated
from .write import Write, refusal

_ATTEMPTS = 12

#: Makes the write when the transaction is sent, as it may have to read first.
Planner = Callable[[], Flow[Write]]


@dataclass(frozen=True, slots=True)
class Failure:
    """One refused action of a transaction."""

    position: int
    write: Write
    code: str
    error: SolotableError | None

    def __str__(self) -> str:
        return f"#{self.position + 1} {self.error or f'{self.write.title}: {self.code}'}"


def transact(scope: Scope, planners: Sequence[Planner], *, token: str | None) -> Flow[list[Write]]:
    """Send all writes as one transaction and return them; an empty one does nothing."""
    if not planners:
        return []
    if token is not None and not 0 < len(token) <= LONGEST_TOKEN:
        raise DataError(
            f"A transaction's token has 1 to {LONGEST_TOKEN} characters; this one has {len(token)}."
        )
    if len(planners) > MOST_TRANSACTION_ACTIONS:
        raise DataError(
            f"A transaction has at most {MOST_TRANSACTION_ACTIONS} actions; this one has {len(planners)}: "
            f"make several, or use a batch if they need not go together."
        )
    for attempt in range(_ATTEMPTS):
        writes: list[Write] = []
        for planner in planners:
            write = yield from planner()
            writes.append(write)
        _judge(writes)
        actions = tuple(_action(write.action) for write in writes)
        sent = TransactWriteItems(
            actions=actions,
            token=token or scope.tokens(),
            fingerprint=blake2b(repr(actions).encode(), digest_size=16).digest(),
        )
        try:
            yield from ask(sent, scope.retries)
        except TransactionCancelled as refused:
            if not _outdated(writes, refused.reasons) or attempt == _ATTEMPTS - 1:
                raise _failed(scope, writes, refused) from refused
            yield scope.retries.wait(attempt)
        else:
            return writes
    raise AssertionError("unreachable")  # pragma: no cover


def _action(action: WriteAction) -> WriteAction:
    """Return an action as transactions take it: they return nothing."""
    return action if isinstance(action, ConditionCheck) else replace(action, returns="NONE")


def _judge(writes: Sequence[Write]) -> None:
    seen: dict[str, int] = {}
    total = 0
    for position, write in enumerate(writes):
        identity = repr((write.action.table, sorted(write.key.items())))
        if identity in seen:
            first = writes[seen[identity]]
            raise DataError(
                f"A transaction takes an item once: #{seen[identity] + 1} {first.title} and "
                f"#{position + 1} {write.title} are the same item."
            )
        seen[identity] = position
        total += _weight(write.action)
    if total > LARGEST_TRANSACTION:
        heaviest = max(writes, key=lambda write: _weight(write.action))
        raise DataError(
            f"A transaction has at most {LARGEST_TRANSACTION:,} bytes; this one has {total:,}, "
            f"the heaviest is {heaviest.title}."
        )


def _weight(action: WriteAction) -> int:
    if isinstance(action, PutItem):
        return item_size(action.item)
    size = item_size(action.key)
    if isinstance(action, UpdateItem):
        size += len(repr(action.update)) // 2
    return size


def _outdated(writes: Sequence[Write], reasons: Sequence[dict[str, Any]]) -> bool:
    """Whether every refusal came only of parts that changed after they were read to derive keys."""
    refused = [(write, why) for write, why in zip(writes, reasons, strict=True) if why["Code"] != "None"]
    return bool(refused) and all(
        why["Code"] == "ConditionalCheckFailed" and is_outdated(write, why.get("Item"))
        for write, why in refused
    )


def _failed(scope: Scope, writes: Sequence[Write], refused: TransactionCancelled) -> TransactionFailed:
    failures = [
        Failure(position, write, reason["Code"], _cause(scope, write, reason))
        for position, (write, reason) in enumerate(zip(writes, refused.reasons, strict=True))
        if reason["Code"] != "None"
    ]
    told = "; ".join(str(failure) for failure in failures)
    return TransactionFailed(
        f"Transaction of {len(writes)} failed at {told} Nothing was written.",
        reasons=refused.reasons,
        failures=failures,
    )


def _cause(scope: Scope, write: Write, reason: dict[str, Any]) -> SolotableError | None:
    if reason["Code"] == "ConditionalCheckFailed":
        item: Item | None = reason.get("Item")
        return refusal(scope, write, item)
    if reason["Code"] == "TransactionConflict":
        return ConditionFailed(f"{write.title}: another transaction was writing the same item; try again.")
    return DataError(f"{write.title}: {reason.get('Message') or reason['Code']}")
