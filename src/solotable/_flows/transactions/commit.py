"""Send writes: one write alone, or several writes as one transaction.

An error names the entities and their conditions in the caller's order. More actions than DynamoDB accepts
are an error; they are never split into several transactions. A write based on an outdated read is planned
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.table import Table
from solotable._entities.patterns.conditions import check_joined
from solotable._flows.retry import Flow, WaitForTurns, send
from solotable._flows.scope import Scope, decode_item
from solotable._flows.sync.entries import LogEntry
from solotable._flows.sync.log import item_identity, log_actions, with_version
from solotable._protocol.requests import (
    ConditionCheck,
    DeleteItem,
    PutItem,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._values import Item, item_size
from solotable._values.limits import LARGEST_TRANSACTION, MOST_TRANSACTION_ACTIONS
from solotable.errors import (
    ConditionFailed,
    DataError,
    ItemTooLarge,
    LeaseLost,
    ServiceError,
    SolotableError,
    TransactionCancelled,
    TransactionFailed,
)

from .conflicts import CONFLICT_ATTEMPTS, Conflicts
from .idempotency import CallerToken, is_done, token_put
from .merge import merge_addition
from .write import DerivedWrite, Write, capitalize, condition_error

_BAD_PATH = "The document path provided in the update expression is invalid for update"
_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

#: Plans a write. It may read first, and is called again if that read is outdated.
Planner = Callable[[], Flow[Write]]


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed action of a transaction; `position` is its index among the caller's actions."""

    position: int
    code: str
    error: SolotableError

    def __str__(self) -> str:
        return f"#{self.position + 1} {self.error}"


def perform(scope: Scope, planner: Planner) -> Flow[Any]:
    """Execute one write and return the stored entity; a delete returns the deleted entity or None."""
    conflicts: Conflicts | None = None
    while True:
        write = yield from planner()
        try:
            if isinstance(write.action, ConditionCheck):
                # The read found no entity to write.
                return write.after
            if write.derived_writes:
                yield from _send(scope, [write], token=scope.token(None), single=True)
                return write.after
            return (yield from send_write(scope, write))
        except _Outdated as outdated:
            planner = outdated.instead.get(0, planner)
            conflicts = conflicts or Conflicts(scope, when=_always)
            yield from conflicts.wait_after(outdated.error)


def transact(
    scope: Scope, planners: Sequence[Planner], *, token: CallerToken | None = None
) -> Flow[list[Write]]:
    """Execute all writes as one transaction and return them; without planners nothing is sent.

    A transaction with a caller's token is executed once. A repetition returns an empty list.
    """
    if not planners:
        return []
    _check_count(len(planners))
    conflicts = Conflicts(scope, when=_always)
    while True:
        if token is not None and (yield from is_done(scope, token)):
            return []
        try:
            writes = yield from _plan(planners)
            if token is not None:
                derived = (*writes[0].derived_writes, token_put(scope, token))
                writes[0] = replace(writes[0], derived_writes=derived)
            yield from _send(scope, writes, token=scope.token(None))
        except _Outdated as outdated:
            planners = [outdated.instead.get(at, planner) for at, planner in enumerate(planners)]
            yield from conflicts.wait_after(outdated.error)
        except TransactionFailed:
            # Another request with the same token may have executed the transaction.
            if token is not None and (yield from is_done(scope, token)):
                return []
            raise
        else:
            return writes


def _plan(planners: Sequence[Planner]) -> Flow[list[Write]]:
    """Plan the writes of a transaction.

    A condition that fails on the item read for planning is reported like one that fails in the engine.
    """
    writes: list[Write] = []
    for position, planner in enumerate(planners):
        try:
            write = yield from planner()
        except ConditionFailed as error:
            code = "ConditionalCheckFailed"
            reasons: list[dict[str, Any]] = [{"Code": "None"} for _ in planners]
            reasons[position] = {"Code": code, "Message": "The conditional request failed"}
            raise _failed_transaction([Failure(position, code, error)], len(planners), reasons) from error
        writes.append(write)
    return writes


def _always(_: SolotableError) -> bool:
    return True


class _Outdated(Exception):
    """The item that a write is based on has changed; `error` is raised after the last attempt.

    `instead` maps the positions of writes to the planners of their next attempt.
    """

    def __init__(self, error: SolotableError, instead: Mapping[int, Planner]) -> None:
        super().__init__(str(error))
        self.error = error
        self.instead = instead


def send_write(scope: Scope, write: Write) -> Flow[Any]:
    """Send a write without derived writes, and return the entity like `perform`."""
    assert not isinstance(write.action, ConditionCheck)
    if write.where is not None:
        check_joined(write.plan, write.where, write.action.condition)
    if write.plan.blobs is not None:
        yield from _save_blobs([write])
    try:
        reply = yield from send(write.action, scope.retries)
    except ConditionFailed as failed:
        error = condition_error(scope, write, failed.item)
        if write.is_outdated(failed.item):
            raise _Outdated(error, _replan([(0, write, failed.item)])) from failed
        raise error from failed
    except ServiceError as failed:
        raise _explain(write, failed) from failed
    if isinstance(write.action, PutItem):
        return write.after
    if not reply.attributes:
        return None
    item = decode_item(reply.attributes)
    if isinstance(write.action, DeleteItem) and scope.is_hidden(write.plan, item):
        return None
    # Do not hide an entity whose time to live this update has set to the past: it is the stored state.
    entity = write.plan.decode(item)
    scope.check_tenant(write.plan, entity)
    return entity


def _send(scope: Scope, writes: Sequence[Write], *, token: str, single: bool = False) -> Flow[None]:
    """Send writes as one transaction; `single` if the caller requested one write and no transaction."""
    entries = [each for write in writes for each in write.derived_writes if isinstance(each, LogEntry)]
    if not entries:
        yield from _send_once(scope, writes, entries, token=token, single=single)
        return
    turns = yield WaitForTurns(frozenset(_queue_name(scope, entry) for entry in entries))
    try:
        yield from _send_once(scope, writes, entries, token=token, single=single)
    finally:
        turns.end()


def _queue_name(scope: Scope, entry: LogEntry) -> str:
    return f"{scope.table(entry.space.table)} {entry.space.partition}"


def _send_once(
    scope: Scope, writes: Sequence[Write], entries: Sequence[LogEntry], *, token: str, single: bool
) -> Flow[None]:
    steps = [_Step(position, write, write.action, None) for position, write in enumerate(writes)]
    steps += [
        _Step(position, write, derived.action, index)
        for position, write in enumerate(writes)
        for index, derived in enumerate(write.derived_writes)
        if isinstance(derived, DerivedWrite)
    ]
    steps = _merge_additions(steps)
    if entries:
        steps = yield from _with_log(scope, writes[0], entries, steps)
    _check_steps(steps)
    for step in steps:
        if step.derived is None and step.write.where is not None:
            check_joined(step.write.plan, step.write.where, step.action.condition)
    actions = tuple(_without_returns(step.action) for step in steps)
    # The token is new for each attempt, so it can serve as the fingerprint.
    sent = TransactWriteItems(actions=actions, token=token, fingerprint=token.encode())
    if any(write.plan.blobs is not None for write in writes):
        yield from _save_blobs(writes)
    try:
        yield from send(sent, scope.retries)
    except TransactionCancelled as cancelled:
        error = _transaction_error(scope, steps, len(writes), cancelled, single=single)
        if _is_outdated(steps, cancelled.reasons) or cancelled.is_transient:
            conflicts = [
                (step.position, step.write, reason.get("Item"))
                for step, reason in zip(steps, cancelled.reasons, strict=True)
                if step.derived is None
            ]
            raise _Outdated(error, _replan(conflicts)) from cancelled
        raise error from cancelled


def _with_log(
    scope: Scope, first: Write, entries: Sequence[LogEntry], steps: list[_Step]
) -> Flow[list[_Step]]:
    """Return steps that also log the changes of synced entities, in one version of each space."""
    actions, versions = yield from log_actions(scope, entries)
    table = entries[0].space.table
    steps = [
        replace(step, action=with_version(step.action, versions[step.item]))
        if step.item in versions
        else step
        for step in steps
    ]
    for action in actions:
        log = DerivedWrite(action=action, title=f"the log of {entries[0].space}", explain=_space_conflict)
        owner = replace(first, derived_writes=(replace(log, table=table),))
        steps.append(_Step(0, owner, action, 0, logs=True))
    return steps


def _space_conflict(_: Item | None) -> SolotableError:
    return ServiceError(
        "TransactionConflictException",
        f"Other writers changed the same space in each of {CONFLICT_ATTEMPTS} attempts; try again later.",
    )


def _save_blobs(writes: Sequence[Write]) -> Flow[None]:
    # Few entities have an offloaded field; do not load the module for the others.
    from .blobs import save_blobs

    return save_blobs(writes)


def _replan(conflicts: Iterable[tuple[int, Write, Item | None]]) -> dict[int, Planner]:
    """Return the planners of the writes whose stored item has another schema version."""
    return {
        position: write.instead
        for position, write, item in conflicts
        if write.instead is not None and item is not None and write.meets_other_schema_version(item)
    }


@dataclass(frozen=True, slots=True)
class _Step:
    """One action of a transaction: that of a write, or of its derived write with the index `derived`."""

    position: int
    write: Write
    action: WriteAction
    derived: int | None
    #: Whether it is the head or a record of a space's log.
    logs: bool = False

    @property
    def derived_write(self) -> DerivedWrite:
        """The derived write of the step."""
        assert self.derived is not None
        found = self.write.derived_writes[self.derived]
        assert isinstance(found, DerivedWrite)
        return found

    @property
    def item(self) -> str:
        """The identity of the item as in the versions of the log."""
        attributes = self.action.item if isinstance(self.action, PutItem) else self.action.key
        return item_identity(self.action.table, {name: attributes[name] for name in self.table.key_names})

    @property
    def identity(self) -> str:
        attributes = self.action.item if isinstance(self.action, PutItem) else self.action.key
        names = [each.name for each in (self.table.partition, self.table.sort) if each is not None]
        return repr((self.action.table, [(name, attributes[name]) for name in names]))

    @property
    def table(self) -> Table:
        """The declared table of the item; a derived write may have another table than its cause."""
        if self.derived is None:
            return self.write.plan.table
        return self.derived_write.table or self.write.plan.table

    @property
    def removes(self) -> bool:
        """Whether the action deletes or soft-deletes the item."""
        if isinstance(self.action, DeleteItem):
            return True
        return self.derived is None and self.write.verb == "delete" and isinstance(self.action, UpdateItem)

    @property
    def title(self) -> str:
        if self.derived is None:
            return self.write.title
        return f"{self.derived_write.title} ({self.write.title})"


def _merge_additions(steps: Sequence[_Step]) -> list[_Step]:
    """Merge each addition to a counter into another action on the same item, if the transaction has one."""
    merged: dict[str, _Step] = {}
    rest: list[_Step] = []
    for step in steps:
        first = merged.setdefault(step.identity, step)
        if first is step:
            continue
        combined = None
        if step.derived is not None and step.derived_write.adds:
            assert isinstance(step.action, UpdateItem)
            if first.removes and step.derived_write.needs:
                raise DataError(
                    f"#{step.position + 1} {capitalize(step.write.title)} changes a counter of the item that "
                    f"#{first.position + 1} {first.title} removes; leave one of them out."
                )
            combined = merge_addition(first.action, step.action)
        if combined is None:
            rest.append(step)
        else:
            merged[step.identity] = replace(first, action=combined)
    return [*merged.values(), *rest]


def _without_returns(action: WriteAction) -> WriteAction:
    """Return an action without return values, which transactions do not support."""
    return action if isinstance(action, ConditionCheck) else replace(action, returns="NONE")


def _check_count(count: int) -> None:
    if count > MOST_TRANSACTION_ACTIONS:
        raise DataError(
            f"A transaction takes at most {MOST_TRANSACTION_ACTIONS} actions, got {count}; "
            f"split it, or use a batch if the writes need not be atomic."
        )


def _check_steps(steps: Sequence[_Step]) -> None:
    own = sum(step.derived is None for step in steps)
    if len(steps) > max(own, MOST_TRANSACTION_ACTIONS):
        raise DataError(
            f"A transaction takes at most {MOST_TRANSACTION_ACTIONS} actions, got {len(steps)}: {own} "
            f"of the caller and {len(steps) - own} derived writes, such as locks and snapshots; split it."
        )
    seen: dict[str, _Step] = {}
    total = 0
    for step in steps:
        first = seen.setdefault(step.identity, step)
        if first is not step:
            raise DataError(
                f"A transaction can write an item once, but #{first.position + 1} {first.title} and "
                f"#{step.position + 1} {step.title} have the same key; leave one of them out."
            )
        total += _size(step.action)
    if total > LARGEST_TRANSACTION:
        largest = max(steps, key=lambda step: _size(step.action))
        raise DataError(
            f"A transaction takes at most {LARGEST_TRANSACTION:,} bytes, got {total:,}; split it. "
            f"The largest action is #{largest.position + 1} {largest.title}."
        )


def _size(action: WriteAction) -> int:
    if isinstance(action, PutItem):
        return item_size(action.item) if action.size is None else action.size
    size = item_size(action.key)
    if isinstance(action, UpdateItem):
        size += len(repr(action.update)) // 2
    return size


def _is_outdated(steps: Sequence[_Step], reasons: Sequence[dict[str, Any]]) -> bool:
    """Return whether all failures were caused by items that changed after they were read."""
    # A derived write that fails together with its cause is based on the same outdated read.
    own = [
        (step, reason)
        for step, reason in zip(steps, reasons, strict=True)
        if reason["Code"] != "None" and step.derived is None
    ]
    # Another writer has added a version to the space. The head is read again.
    conflicts = any(
        step.logs and reason["Code"] != "None" for step, reason in zip(steps, reasons, strict=True)
    )
    return (bool(own) or conflicts) and all(
        reason["Code"] == "ConditionalCheckFailed" and step.write.is_outdated(reason.get("Item"))
        for step, reason in own
    )


def _transaction_error(
    scope: Scope, steps: Sequence[_Step], count: int, cancelled: TransactionCancelled, *, single: bool
) -> SolotableError:
    failures = [
        Failure(step.position, reason["Code"], _cause(scope, step, reason))
        for step, reason in zip(steps, cancelled.reasons, strict=True)
        if reason["Code"] != "None"
    ]
    if single and failures:
        # The caller requested one write, so raise its error without the transaction.
        return failures[0].error
    for failure in failures:
        if isinstance(failure.error, LeaseLost):
            return failure.error
    failures.sort(key=lambda failure: failure.position)
    return _failed_transaction(failures, count, cancelled.reasons)


def _failed_transaction(
    failures: list[Failure], count: int, reasons: list[dict[str, Any]]
) -> TransactionFailed:
    causes = "; ".join(str(failure).rstrip(".") for failure in failures)
    return TransactionFailed(
        f"Transaction of {count} failed at {causes}. Nothing was written.", reasons=reasons, failures=failures
    )


def _cause(scope: Scope, step: _Step, reason: dict[str, Any]) -> SolotableError:
    if reason["Code"] == "ConditionalCheckFailed":
        if step.derived is not None:
            return step.derived_write.explain(reason.get("Item"))
        return condition_error(scope, step.write, reason.get("Item"))
    if reason["Code"] == "TransactionConflict":
        return ServiceError(
            "TransactionConflictException",
            f"{capitalize(step.title)}: another transaction wrote the same item at the same time; try again.",
        )
    return _explain(step.write, ServiceError(reason["Code"], reason.get("Message") or reason["Code"]))


def _explain(write: Write, error: ServiceError) -> SolotableError:
    if error.message.startswith(_TOO_LARGE):
        return ItemTooLarge(
            f"{capitalize(write.title)}: the item would exceed 400 KB; split it, "
            f"or store its largest fields elsewhere.",
            size=0,
            largest=[],
        )
    if error.message.startswith(_BAD_PATH):
        assert isinstance(write.action, UpdateItem)
        plan = write.plan
        nested = [action.path for action in write.action.update.actions if len(action.path) > 1]
        shown = " or ".join(f"{plan.name}.{plan.by_wire[str(path[0])].field}" for path in nested)
        return DataError(
            f"{capitalize(write.title)}: {shown} has no stored value, so a nested field cannot be set; "
            f"set the whole field first."
        )
    return error
