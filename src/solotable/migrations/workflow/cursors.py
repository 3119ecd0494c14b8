"""Fenced cursors: the position of a worker, saved in the transaction that writes its data.

Every transaction of a worker ends with an update of its cursor that requires the `step` which the worker
knows, and increments it. So a worker that lost its cursor, and a request that arrives late or twice, write
nothing. The time in `until` decides only when another worker may take the cursor, never whether a write is
safe. So clocks may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from solotable._expressions.ast import (
    And,
    Arithmetic,
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Exists,
    IfNotExists,
    KeyTerm,
    Not,
    Or,
    Remove,
    Update,
)
from solotable._flows.retry import Flow, send
from solotable._flows.scope import decode_item
from solotable._protocol.replies import Capacity, decode_items
from solotable._protocol.requests import (
    DeleteItem,
    GetItem,
    Query,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._values import Item, dump, load
from solotable.errors import (
    ConditionFailed,
    LeaseLost,
    OutcomeUnknown,
    ServiceError,
    SolotableError,
    Throttled,
    TransactionCancelled,
    TransportError,
)

from .control import damaged, write_while
from .sides import Side, control_key
from .states import State

#: A worker that has not written for so long loses its cursor to the next one.
LEASE_SECONDS = 10.0
#: DynamoDB: a transaction has at most 100 actions; the cursor is one of them.
MOST_ACTIONS = 99
_ATTEMPTS = 10
_NEXT_STEP = Assign(("step",), Arithmetic("+", IfNotExists(("step",), Const({"N": "0"})), Const({"N": "1"})))
_META = frozenset({"PK", "SK", "step", "owner", "until", "window", "_type"})


class WritesRejected(SolotableError):
    """Some actions of a transaction cannot be executed; `rejected` has their numbers and causes."""

    def __init__(self, rejected: Mapping[int, str], *, invalid: bool) -> None:
        super().__init__(f"{len(rejected)} actions of a transaction were rejected: {dict(rejected)}.")
        self.rejected = dict(rejected)
        #: Whether an item is invalid. Otherwise a condition failed, and another decision may succeed.
        self.invalid = invalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A cursor as its owner knows it."""

    migration: str
    kind: str
    step: int
    owner: str | None
    until: float = 0.0
    #: The copy window in which it was taken or seized.
    window: int = 0
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Item:
        """The key of the cursor's item."""
        return control_key(self.migration, self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The outcome of a transaction: the cursor after it, the units it used, and the throttled attempts."""

    cursor: Cursor
    units: float
    throttled: int = 0


def load_cursors(side: Side, migration: str, kind: str) -> Flow[list[Cursor]]:
    """Return the cursors of a migration whose kind begins with a text."""
    found: list[Cursor] = []
    start = None
    terms = (
        KeyTerm("PK", "=", (control_key(migration, kind)["PK"],)),
        KeyTerm("SK", "begins_with", ({"S": kind},)),
    )
    while True:
        request = Query(table=side.control, key=terms, start=start, consistent=True)
        reply = yield from send(request, side.scope.retries)
        found += [decode_cursor(migration, item) for item in decode_items(reply.items or ())]
        start = reply.last_key
        if not start:
            return found


def take(
    side: Side, migration: str, kind: str, *, owner: str, window: int | None = None
) -> Flow[Cursor | None]:
    """Take a cursor that is free or whose owner has stopped; None if another worker has it.

    With `window`, a cursor of a later copy window is not taken: this worker's knowledge is out of date.
    """
    now = side.clock()
    free: Condition = Or(
        (
            Not(Exists(("owner",))),
            Compare("<", Attr(("until",)), Const(dump(now))),
            Compare("=", Attr(("owner",)), Const({"S": owner})),
        )
    )
    # A cursor that was deleted must not come back.
    free = And((Exists(("PK",)), free))
    if window is not None:
        free = And((free, Compare("<=", Attr(("window",)), Const(dump(window)))))
    try:
        return (yield from _own(side, migration, kind, owner, free, window=window))
    except ConditionFailed:
        return None


def create(
    side: Side, migration: str, kind: str, *, state: State, window: int | None = None, **data: Any
) -> Flow[None]:
    """Create a free cursor, or replace one, while the migration is in a state; else raise MigrationConflict.

    It is on the engine of the control record.
    """
    actions = [_NEXT_STEP, Assign(("until",), Const({"N": "0"})), Remove(("owner",)), *_assign(data)]
    if window is not None:
        actions.append(Assign(("window",), Const(dump(window))))
    update = UpdateItem(
        table=side.control,
        key=control_key(migration, kind),
        update=Update(tuple(actions), creates=True),
    )
    yield from write_while(side, migration, update, state)


def seize(
    side: Side,
    migration: str,
    kind: str,
    *,
    owner: str,
    window: int | None = None,
    creates: bool = False,
    **data: Any,
) -> Flow[Cursor]:
    """Take a cursor from any owner, whose writes fail from now on; `data` replaces parts of the position.

    Raises LeaseLost if the cursor does not exist, because the migration has ended, unless it `creates` it.
    """
    exists = None if creates else Exists(("PK",))
    try:
        return (yield from _own(side, migration, kind, owner, exists, window=window, data=data))
    except ConditionFailed as error:
        raise LeaseLost(
            f"The cursor {kind!r} of migration {migration!r} does not exist any more: the migration was "
            f"cancelled or completed; nothing was written.",
            name=kind,
            token=0,
        ) from error


def _own(
    side: Side,
    migration: str,
    kind: str,
    owner: str,
    condition: Condition | None,
    *,
    window: int | None,
    data: Mapping[str, Any] | None = None,
) -> Flow[Cursor]:
    until = side.clock() + LEASE_SECONDS
    actions: list[Assign | Remove] = [
        _NEXT_STEP,
        Assign(("owner",), Const({"S": owner})),
        Assign(("until",), Const(dump(until))),
    ]
    if window is not None:
        actions.append(Assign(("window",), Const(dump(window))))
    actions += _assign(data or {})
    request = UpdateItem(
        table=side.control,
        key=control_key(migration, kind),
        update=Update(tuple(actions), creates=True),
        condition=condition,
        returns="ALL_NEW",
    )
    try:
        reply = yield from send(request, side.scope.retries)
        item = decode_item(reply.attributes or {})
    except OutcomeUnknown:
        # Taking it once more is harmless: the step grows again.
        reply = yield from send(request, side.scope.retries)
        item = decode_item(reply.attributes or {})
    return decode_cursor(migration, item)


def decode_cursor(migration: str, item: Item) -> Cursor:
    """Return the cursor of an item, or raise MigrationError if another program has damaged it."""
    try:
        return _decode_cursor(migration, item)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(item, f"{type(error).__name__}: {error}") from error


def _decode_cursor(migration: str, item: Item) -> Cursor:
    return Cursor(
        migration=migration,
        kind=item["SK"]["S"],
        step=int(item["step"]["N"]),
        owner=item.get("owner", {}).get("S"),
        until=float(item.get("until", {}).get("N", "0")),
        window=int(item.get("window", {}).get("N", "0")),
        data={name: load(value) for name, value in item.items() if name not in _META},
    )


def release(side: Side, cursor: Cursor) -> Flow[None]:
    """Give a cursor back, unless it is lost."""
    update = Update((Assign(("until",), Const({"N": "0"})), Remove(("owner",))), creates=True)
    try:
        yield from send(
            UpdateItem(table=side.control, key=cursor.key, update=update, condition=_is_at(cursor)),
            side.scope.retries,
        )
    except (ConditionFailed, OutcomeUnknown):
        return


def delete_cursor(side: Side, migration: str, kind: str) -> Flow[None]:
    """Delete a cursor: every worker that has it loses it."""
    key = control_key(migration, kind)
    yield from send(DeleteItem(table=side.control, key=key), side.scope.retries)


def write(side: Side, cursor: Cursor, actions: Sequence[WriteAction], **data: Any) -> Flow[Written]:
    """Execute actions and move the cursor, in one transaction.

    Raises LeaseLost if another worker has the cursor, and WritesRejected if an action cannot be executed.
    """
    following = replace(
        cursor, step=cursor.step + 1, until=side.clock() + LEASE_SECONDS, data={**cursor.data, **data}
    )
    moved = UpdateItem(
        table=side.control,
        key=cursor.key,
        update=Update(
            (
                Assign(("step",), Const(dump(following.step))),
                Assign(("until",), Const(dump(following.until))),
                *_assign(data),
            ),
            creates=True,
        ),
        condition=_is_at(cursor),
    )
    request = TransactWriteItems(actions=(*actions, moved), capacity="TOTAL")
    throttled = 0
    attempt = 0
    while True:
        attempt += 1
        try:
            reply = yield request
            return Written(cursor=following, units=_units(reply.capacity), throttled=throttled)
        except TransactionCancelled as error:
            if not error.is_transient:
                if (yield from _was_written(side, cursor, error)):
                    return Written(cursor=following, units=0.0, throttled=throttled)
                raise _rejection(cursor, error) from error
            if attempt == _ATTEMPTS:
                raise
            throttled += 1
        except (ServiceError, TransportError) as error:
            if not _is_repeatable(error) or attempt == _ATTEMPTS:
                raise
            throttled += isinstance(error, Throttled)
        yield side.scope.retries.wait(attempt)


def _was_written(side: Side, cursor: Cursor, error: TransactionCancelled) -> Flow[bool]:
    """Return whether an earlier attempt of the same transaction was executed, whose reply was lost."""
    if error.reasons[-1]["Code"] != "ConditionalCheckFailed":
        return False
    reply = yield from send(GetItem(table=side.control, key=cursor.key, consistent=True), side.scope.retries)
    if reply.item is None:
        return False
    stored = decode_cursor(cursor.migration, decode_item(reply.item))
    return stored.owner == cursor.owner and stored.step == cursor.step + 1


def _rejection(cursor: Cursor, error: TransactionCancelled) -> SolotableError:
    if error.reasons[-1]["Code"] == "ConditionalCheckFailed":
        return lost(cursor)
    rejected = {
        number: str(reason.get("Message", reason["Code"]))
        for number, reason in enumerate(error.reasons)
        if reason["Code"] != "None"
    }
    codes = {reason["Code"] for reason in error.reasons} - {"None"}
    return WritesRejected(rejected, invalid=codes != {"ConditionalCheckFailed"})


def lost(cursor: Cursor) -> LeaseLost:
    """Return the error for a cursor that another worker has."""
    return LeaseLost(
        f"The cursor {cursor.kind!r} of migration {cursor.migration!r} was taken by another worker after "
        f"step {cursor.step}; nothing was written.",
        name=cursor.kind,
        token=cursor.step,
    )


def _is_repeatable(error: ServiceError | TransportError) -> bool:
    # The condition on the step makes a repetition safe, whatever became of the first attempt.
    return isinstance(error, TransportError) or error.retryable


def _is_at(cursor: Cursor) -> Condition:
    owner = Compare("=", Attr(("owner",)), Const({"S": cursor.owner or ""}))
    return And((Compare("=", Attr(("step",)), Const(dump(cursor.step))), owner))


def _assign(data: Mapping[str, Any]) -> list[Assign | Remove]:
    return [
        Remove((name,)) if value is None else Assign((name,), Const(dump(value)))
        for name, value in data.items()
    ]


def _units(capacity: Sequence[Capacity] | None) -> float:
    return sum(float(each.get("CapacityUnits", 0)) for each in capacity or ())
