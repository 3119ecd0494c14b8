"""Send writes: one alone, or several as one transaction, all or nothing.

An error names the entity and its condition, in the caller's order. More actions than DynamoDB takes are
an error, never several transactions. A write that was derived from an outdated read is planned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
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

from .conflicts import Conflicts
from .idempotency import CallerToken, is_done, token_put
from .merge import with_addition
from .write import Write, capitalize, refusal

_BAD_PATH = "The document path provided in the update expression is invalid for update"
_TOO_LARGE = "Item size to update has exceeded the maximum allowed size"

#: Plans a write; it may read first, and is called again when that read is outdated.
Planner = Callable[[], Flow[Write]]


@dataclass(frozen=True, slots=True)
class Failure:
    """One refused action of a transaction; `position` counts the caller's own actions from 0."""

    position: int
    write: Write
    code: str
    error: SolotableError

    def __str__(self) -> str:
        return f"#{self.position + 1} {self.error}"


def perform(scope: Scope, planner: Planner) -> Flow[Any]:
    """Do one write and return the entity: as stored, or for a delete as it was (None: nothing was)."""
    conflicts: Conflicts | None = None
    while True:
        write = yield from planner()
        try:
            if isinstance(write.action, ConditionCheck):
                # What was read has answered it: there is nothing to write.
                return write.after
            if write.derived_writes:
                yield from _send(scope, [write], token=scope.token(None), ours=True)
                return write.after
            return (yield from send_write(scope, write))
        except _Outdated as outdated:
            planner = outdated.instead.get(0, planner)
            conflicts = conflicts or Conflicts(scope, when=_always)
            yield from conflicts.wait_after(outdated.error)


def transact(
    scope: Scope, planners: Sequence[Planner], *, token: CallerToken | None = None
) -> Flow[list[Write]]:
    """Do all writes as one transaction and return them; without writes nothing is sent.

    With a caller's token it is done once, however often it is requested; then nothing is returned.
    """
    if not planners:
        return []
    _check_count(len(planners))
    conflicts = Conflicts(scope, when=_always)
    while True:
        if token is not None and (yield from is_done(scope, token)):
            return []
        writes: list[Write] = []
        for planner in planners:
            write = yield from planner()
            writes.append(write)
        if token is not None:
            derived = (*writes[0].derived_writes, token_put(scope, token))
            writes[0] = replace(writes[0], derived_writes=derived)
        try:
            yield from _send(scope, writes, token=scope.token(None))
        except _Outdated as outdated:
            planners = [outdated.instead.get(at, planner) for at, planner in enumerate(planners)]
            yield from conflicts.wait_after(outdated.error)
        except TransactionFailed:
            # Another request with the same token may have done it.
            if token is not None and (yield from is_done(scope, token)):
                return []
            raise
        else:
            return writes


def _always(_: SolotableError) -> bool:
    return True


class _Outdated(Exception):
    """What a write was derived from has changed; `error` is raised after the last attempt.

    `instead` has other plans for some of the writes, by their positions.
    """

    def __init__(self, error: SolotableError, instead: Mapping[int, Planner]) -> None:
        super().__init__(str(error))
        self.error = error
        self.instead = instead


def send_write(scope: Scope, write: Write) -> Flow[Any]:
    """Send a write that has no derived writes, and return the entity as `perform` does."""
    assert not isinstance(write.action, ConditionCheck)
    try:
        reply = yield from send(write.action, scope.retries)
    except ConditionFailed as refused:
        error = refusal(scope, write, refused.item)
        if write.is_outdated(refused.item):
            raise _Outdated(error, _instead([(0, write, refused.item)])) from refused
        raise error from refused
    except ServiceError as refused:
        raise _explained(write, refused) from refused
    if isinstance(write.action, PutItem):
        return write.after
    if not reply.attributes:
        return None
    item = decode_item(reply.attributes)
    if isinstance(write.action, DeleteItem):
        return scope.admit(write.plan, item)
    # Also when the update has set a time to live that has passed: it is what is stored.
    entity = write.plan.decode(item)
    scope.check_tenant(write.plan, entity)
    return entity


def _send(scope: Scope, writes: Sequence[Write], *, token: str, ours: bool = False) -> Flow[None]:
    """Send writes as one transaction; `ours` when the caller asked for one write and knows of none."""
    steps = [_Step(position, write, write.action, None) for position, write in enumerate(writes)]
    steps += [
        _Step(position, write, derived.action, index)
        for position, write in enumerate(writes)
        for index, derived in enumerate(write.derived_writes)
    ]
    steps = _merged(steps)
    _check_steps(steps)
    actions = tuple(_bare(step.action) for step in steps)
    sent = TransactWriteItems(
        actions=actions,
        token=token,
        fingerprint=blake2b(repr(actions).encode(), digest_size=16).digest(),
    )
    try:
        yield from send(sent, scope.retries)
    except TransactionCancelled as refused:
        error = _failed(scope, steps, len(writes), refused, ours=ours)
        if _outdated(steps, refused.reasons) or refused.is_transient:
            met = [
                (step.position, step.write, reason.get("Item"))
                for step, reason in zip(steps, refused.reasons, strict=True)
                if step.derived is None
            ]
            raise _Outdated(error, _instead(met)) from refused
        raise error from refused


def _instead(met: Iterable[tuple[int, Write, Item | None]]) -> dict[int, Planner]:
    """Return other plans for the writes that met an item of another schema version."""
    return {
        position: write.instead
        for position, write, item in met
        if write.instead is not None and item is not None and write.meets_other_schema_version(item)
    }


@dataclass(frozen=True, slots=True)
class _Step:
    """One action of a transaction: a write's own, or its derived write with this index."""

    position: int
    write: Write
    action: WriteAction
    derived: int | None

    @property
    def identity(self) -> str:
        holder = self.action.item if isinstance(self.action, PutItem) else self.action.key
        names = [each.name for each in (self.table.partition, self.table.sort) if each is not None]
        return repr((self.action.table, [(name, holder[name]) for name in names]))

    @property
    def table(self) -> Table:
        """The declared table of the item; a derived write may lie in another than its cause."""
        if self.derived is None:
            return self.write.plan.table
        return self.write.derived_writes[self.derived].table or self.write.plan.table

    @property
    def removes(self) -> bool:
        """Whether the item is gone afterwards, or hidden by a delete that can be taken back."""
        if isinstance(self.action, DeleteItem):
            return True
        return self.derived is None and self.write.verb == "delete" and isinstance(self.action, UpdateItem)

    @property
    def title(self) -> str:
        if self.derived is None:
            return self.write.title
        return f"{self.write.derived_writes[self.derived].title} ({self.write.title})"


def _merged(steps: Sequence[_Step]) -> list[_Step]:
    """Return the steps with additions put into the other action on their item, if there is one."""
    merged: dict[str, _Step] = {}
    rest: list[_Step] = []
    for step in steps:
        first = merged.setdefault(step.identity, step)
        if first is step:
            continue
        together = None
        if step.derived is not None and step.write.derived_writes[step.derived].adds:
            assert isinstance(step.action, UpdateItem)
            if first.removes and step.write.derived_writes[step.derived].needs:
                raise DataError(
                    f"#{step.position + 1} {capitalize(step.write.title)} is counted by what "
                    f"#{first.position + 1} {first.title} removes; leave one of them out."
                )
            together = with_addition(first.action, step.action)
        if together is None:
            rest.append(step)
        else:
            merged[step.identity] = replace(first, action=together)
    return [*merged.values(), *rest]


def _bare(action: WriteAction) -> WriteAction:
    """Return an action as transactions take it: they return nothing."""
    return action if isinstance(action, ConditionCheck) else replace(action, returns="NONE")


def _check_count(count: int) -> None:
    if count > MOST_TRANSACTION_ACTIONS:
        raise DataError(
            f"A transaction has at most {MOST_TRANSACTION_ACTIONS} actions; this one has {count}: "
            f"make several, or use a batch if they need not go together."
        )


def _check_steps(steps: Sequence[_Step]) -> None:
    own = sum(step.derived is None for step in steps)
    if len(steps) > max(own, MOST_TRANSACTION_ACTIONS):
        raise DataError(
            f"A transaction has at most {MOST_TRANSACTION_ACTIONS} actions; this one has {len(steps)}: {own} "
            f"of yours, and {len(steps) - own} that are written along with them, as locks and snapshots are; "
            f"make several."
        )
    seen: dict[str, _Step] = {}
    total = 0
    for step in steps:
        first = seen.setdefault(step.identity, step)
        if first is not step:
            raise DataError(
                f"A transaction takes an item once: #{first.position + 1} {first.title} and "
                f"#{step.position + 1} {step.title} are the same item."
            )
        total += _weight(step.action)
    if total > LARGEST_TRANSACTION:
        heaviest = max(steps, key=lambda step: _weight(step.action))
        raise DataError(
            f"A transaction has at most {LARGEST_TRANSACTION:,} bytes; this one has {total:,}, "
            f"the heaviest is #{heaviest.position + 1} {heaviest.title}."
        )


def _weight(action: WriteAction) -> int:
    if isinstance(action, PutItem):
        return item_size(action.item)
    size = item_size(action.key)
    if isinstance(action, UpdateItem):
        size += len(repr(action.update)) // 2
    return size


def _outdated(steps: Sequence[_Step], reasons: Sequence[dict[str, Any]]) -> bool:
    """Whether every refusal came only of what changed after it was read."""
    refused = [(step, why) for step, why in zip(steps, reasons, strict=True) if why["Code"] != "None"]
    own = [(step, why) for step, why in refused if step.derived is None]
    # A derived write that is refused beside its cause follows from the same outdated reading.
    return bool(own) and all(
        why["Code"] == "ConditionalCheckFailed" and step.write.is_outdated(why.get("Item"))
        for step, why in own
    )


def _failed(
    scope: Scope, steps: Sequence[_Step], count: int, refused: TransactionCancelled, *, ours: bool
) -> SolotableError:
    failures = [
        Failure(step.position, step.write, reason["Code"], _cause(scope, step, reason))
        for step, reason in zip(steps, refused.reasons, strict=True)
        if reason["Code"] != "None"
    ]
    if ours and failures:
        # The caller asked for one write, so the cause alone is its error.
        return failures[0].error
    for failure in failures:
        if isinstance(failure.error, LeaseLost):
            return failure.error
    failures.sort(key=lambda failure: failure.position)
    causes = "; ".join(str(failure).rstrip(".") for failure in failures)
    return TransactionFailed(
        f"Transaction of {count} failed at {causes}. Nothing was written.",
        reasons=refused.reasons,
        failures=failures,
    )


def _cause(scope: Scope, step: _Step, reason: dict[str, Any]) -> SolotableError:
    if reason["Code"] == "ConditionalCheckFailed":
        if step.derived is not None:
            return step.write.derived_writes[step.derived].explain(reason.get("Item"))
        return refusal(scope, step.write, reason.get("Item"))
    if reason["Code"] == "TransactionConflict":
        return ServiceError(
            "TransactionConflictException",
            f"{capitalize(step.title)}: another transaction was writing the same item; try again.",
        )
    return _explained(step.write, ServiceError(reason["Code"], reason.get("Message") or reason["Code"]))


def _explained(write: Write, refused: ServiceError) -> SolotableError:
    if refused.message.startswith(_TOO_LARGE):
        return ItemTooLarge(
            f"{capitalize(write.title)}: the item would have more than 400 KB; split it, "
            f"or keep its largest parts elsewhere.",
            size=0,
            largest=[],
        )
    if refused.message.startswith(_BAD_PATH):
        assert isinstance(write.action, UpdateItem)
        plan = write.plan
        nested = [action.path for action in write.action.update.actions if len(action.path) > 1]
        shown = " or ".join(f"{plan.name}.{plan.by_wire[str(path[0])].field}" for path in nested)
        return DataError(
            f"{capitalize(write.title)}: {shown} is absent, so nothing can be set inside it; "
            f"set it whole first."
        )
    return refused
