"""Writes that commit only while their side is open: each carries the check of a fence item.

A single write becomes a transaction with one more action. Its reply and its errors are those of the single
write. A write that cannot carry the check raises FenceMet before it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NoReturn

from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update, paths_of_update, updated_values
from solotable._flows.retry import Flow, Sleep
from solotable._protocol.replies import BatchWrote, TransactWrote, WroteItem
from solotable._protocol.requests import (
    BatchDelete,
    BatchExecuteStatement,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    DeleteItem,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PutItem,
    Request,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._values import Item, item_size
from solotable._values.limits import LARGEST_TRANSACTION, MOST_TRANSACTION_ACTIONS
from solotable.errors import ConditionFailed, ServiceError, Throttled, TransactionCancelled
from solotable.flow import decode_item

#: The attribute of a fence item that says whether its side takes writes.
OPEN = "open"

_SINGLE = (PutItem, UpdateItem, DeleteItem)
_STATEMENTS = (ExecuteStatement, BatchExecuteStatement, ExecuteTransaction)
_WRITES = (*_SINGLE, BatchWriteItem, TransactWriteItems, *_STATEMENTS)
#: Attempts of a write that returns the item, while other writers change that item.
_ATTEMPTS = 50
#: Actions that a guard adds at most.
_MOST_ADDED = 2
#: The longest condition that compares an item with the one that was read.
_MOST_COMPARED = 100


class FenceMet(Exception):
    """The side takes no writes now. The write was not executed; send it again once the switch has ended."""


#: Returns what a transaction with these actions adds: first the check of a fence item, then maybe more.
Guard = Callable[[Sequence[WriteAction]], Sequence[WriteAction]]


def is_open(item: Item | None) -> bool:
    """Return whether a stored fence item lets writes through."""
    return item is not None and item.get(OPEN) == {"BOOL": True}


def is_write(request: object) -> bool:
    """Return whether a request may write items; PartiQL statements count as writes."""
    return isinstance(request, _WRITES)


def send_fenced(request: Request[Any], guard: Guard) -> Flow[Any]:
    """Send a write together with its guard; raise FenceMet if the side is closed."""
    if isinstance(request, TransactWriteItems):
        return (yield from _send_transaction(request, guard))
    if isinstance(request, BatchWriteItem):
        return (yield from _send_batch(request, guard))
    if isinstance(request, _SINGLE):
        if request.returns == "NONE":
            return (yield from _send_single(request, guard))
        return (yield from _send_returning(request, guard))
    raise FenceMet("A PartiQL statement cannot carry the check of a fence.")


def _send_transaction(request: TransactWriteItems, guard: Guard) -> Flow[TransactWrote]:
    if len(request.actions) + _MOST_ADDED > MOST_TRANSACTION_ACTIONS:
        raise FenceMet(f"A transaction of {len(request.actions)} actions has no room for the check.")
    try:
        reply: TransactWrote = yield _with_check(request.actions, guard, request)
    except TransactionCancelled as cancelled:
        _raise_if_closed(cancelled, len(request.actions))
        raise TransactionCancelled(cancelled.reasons[: len(request.actions)]) from cancelled
    except ServiceError as error:
        # The same token was used without the check, before the switch began: that attempt was executed.
        if request.token is not None and error.code == "IdempotentParameterMismatchException":
            return TransactWrote()
        raise
    return reply


def _send_single(action: PutItem | UpdateItem | DeleteItem, guard: Guard) -> Flow[WroteItem]:
    try:
        yield _with_check((action,), guard)
    except TransactionCancelled as cancelled:
        _raise_if_closed(cancelled, 1)
        _raise_single(cancelled, action)
    return WroteItem()


def _send_returning(action: PutItem | UpdateItem | DeleteItem, guard: Guard) -> Flow[WroteItem]:
    """Send a write that returns the item before or after: read it, then write if it has not changed.

    Transactions return nothing. A counter's value must not be returned twice, so a read after the write does
    not replace this.
    """
    for attempt in range(_ATTEMPTS):
        got = yield GetItem(table=action.table, key=_key_of(action), consistent=True)
        before: Item = {} if got.item is None else decode_item(got.item)
        unchanged = _is_unchanged(action, before)
        both = unchanged if action.condition is None else And((action.condition, unchanged))
        if action.condition is not None and not evaluate(action.condition, before):
            both = action.condition
        guarded = _replace(action, condition=both, returns_on_failure=True)
        try:
            yield from _send_single(guarded, guard)
        except ConditionFailed as failed:
            now: Item = failed.item or {}
            if action.condition is not None and not evaluate(action.condition, now):
                shown = failed.item if action.returns_on_failure else None
                raise ConditionFailed(item=shown) from failed
            yield Sleep(0.001 * min(attempt, 20))
            continue
        return WroteItem(attributes=_returned(action, before) or None)
    raise ServiceError("TransactionConflictException", "Transaction is ongoing for the item")


def _key_of(action: PutItem | UpdateItem | DeleteItem) -> Item:
    """Return the key of an action; a put does not say which attributes are its key."""
    if isinstance(action, PutItem):
        raise FenceMet("A put that returns the old item cannot carry the check of a fence.")
    return action.key


def _is_unchanged(action: UpdateItem | PutItem | DeleteItem, before: Item) -> Condition:
    """Return the condition that what an action returns is still as it was read."""
    if isinstance(action, UpdateItem):
        names = sorted({str(path[0]) for path in paths_of_update(action.update)})
    else:
        names = sorted(before)
    key = next(iter(_key_of(action)))
    terms: list[Condition] = [Exists((key,)) if before else Not(Exists((key,)))]
    for name in names[:_MOST_COMPARED]:
        if name in before:
            terms.append(Compare("=", Attr((name,)), Const(before[name])))
        else:
            terms.append(Not(Exists((name,))))
    return And(tuple(terms)) if len(terms) > 1 else terms[0]


def _returned(action: PutItem | UpdateItem | DeleteItem, before: Item) -> Item:
    if isinstance(action, UpdateItem):
        after = apply_update(action.update, {**before, **action.key})
        match action.returns:
            case "ALL_NEW":
                return after
            case "UPDATED_NEW":
                return updated_values(action.update, after, before)
            case "UPDATED_OLD":
                return updated_values(action.update, before, before)
    return before


def _send_batch(request: BatchWriteItem, guard: Guard) -> Flow[BatchWrote]:
    """Send a batch as transactions; met again after the switch, its puts and deletes have the same effect."""
    for actions in _chunks(request):
        try:
            yield _with_check(actions, guard)
        except TransactionCancelled as cancelled:
            _raise_if_closed(cancelled, len(actions))
            _raise_single(cancelled, actions[0])
    return BatchWrote()


def _chunks(request: BatchWriteItem) -> Iterator[tuple[WriteAction, ...]]:
    chunk: list[WriteAction] = []
    size = 0
    for table, writes in request.tables:
        for write in writes:
            action = _action(table, write)
            added = item_size(action.item if isinstance(action, PutItem) else action.key)
            if chunk and (
                len(chunk) + _MOST_ADDED >= MOST_TRANSACTION_ACTIONS
                or size + added > LARGEST_TRANSACTION // 2
            ):
                yield tuple(chunk)
                chunk, size = [], 0
            chunk.append(action)
            size += added
    if chunk:
        yield tuple(chunk)


def _action(table: str, write: BatchPut | BatchDelete) -> PutItem | DeleteItem:
    if isinstance(write, BatchPut):
        return PutItem(table=table, item=write.item)
    return DeleteItem(table=table, key=write.key)


def _with_check(
    actions: Sequence[WriteAction], guard: Guard, like: TransactWriteItems | None = None
) -> TransactWriteItems:
    plain = [each if isinstance(each, ConditionCheck) else _replace(each, returns="NONE") for each in actions]
    all_actions = (*plain, *guard(plain))
    fingerprint = blake2b(repr(all_actions).encode(), digest_size=16).digest()
    if like is None:
        return TransactWriteItems(actions=all_actions, fingerprint=fingerprint)
    return replace(like, actions=all_actions, fingerprint=fingerprint)


def _replace(action: Any, **changes: Any) -> Any:
    """Return an action with other members; a prepared update becomes a plain one."""
    if isinstance(action, UpdateItem) and type(action) is not UpdateItem:
        action = UpdateItem(
            table=action.table,
            key=action.key,
            update=action.update,
            condition=action.condition,
            returns=action.returns,
            returns_on_failure=action.returns_on_failure,
        )
    return replace(action, **changes)


def _raise_if_closed(cancelled: TransactionCancelled, position: int) -> None:
    """Raise FenceMet if the check of the fence, the action at a position, failed."""
    if cancelled.reasons[position]["Code"] == "ConditionalCheckFailed":
        raise FenceMet("The side takes no writes now.") from cancelled


def _raise_single(cancelled: TransactionCancelled, action: WriteAction) -> NoReturn:
    """Raise the error that a single write would have got."""
    reasons = [reason for reason in cancelled.reasons if reason["Code"] != "None"]
    reason: dict[str, Any] = reasons[0] if reasons else {"Code": "TransactionConflict"}
    message = reason.get("Message") or ""
    match reason["Code"]:
        case "ConditionalCheckFailed":
            item: Any = reason.get("Item") if getattr(action, "returns_on_failure", False) else None
            raise ConditionFailed(item=item) from cancelled
        case "ThrottlingError":
            raise Throttled("ThrottlingException", message) from cancelled
        case "ProvisionedThroughputExceeded":
            raise Throttled("ProvisionedThroughputExceededException", message) from cancelled
        case "ValidationError":
            raise ServiceError("ValidationException", message) from cancelled
        case "ItemCollectionSizeLimitExceeded":
            raise ServiceError("ItemCollectionSizeLimitExceededException", message) from cancelled
        case _:
            raise ServiceError("TransactionConflictException", message) from cancelled
