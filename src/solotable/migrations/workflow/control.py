"""The control record of a migration: its state, epoch and routing; every change is conditional.

The record is one item of the control table on the target's engine. A transition requires the epoch that
its author read, and increments it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

from solotable._expressions.ast import And, Attr, Compare, Condition, Const, Exists, Not, Or
from solotable._flows.retry import Flow, send
from solotable._flows.scope import decode_item
from solotable._protocol.requests import ConditionCheck, GetItem, PutItem, TransactWriteItems, WriteAction
from solotable._values import Item, dump, load
from solotable.errors import (
    ConditionFailed,
    DataError,
    MigrationConflict,
    MigrationError,
    OutcomeUnknown,
    TableNotFound,
    TransactionCancelled,
)

from .sides import Side, control_key
from .states import ENDED, STATES, SideName, State, check_transition

CONTROL = "CONTROL"
_FIRST_WINDOW_SECONDS = 1.0
#: Attributes of the control table that are not fields of the record.
#: Attributes without which the side that takes writes would be a guess.
_REQUIRED = ("name", "epoch", "flips", "state", "writes", "generation", "window")
_KEYS = frozenset({"PK", "SK", "_type"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResult:
    """The outcome of the last complete comparison of both sides."""

    at: float
    compared: int
    differences: int
    #: `flips` of the record when the comparison began.
    flips: int

    @property
    def is_green(self) -> bool:
        """Whether both sides were equal."""
        return self.differences == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlRecord:
    """What a migration is doing, and which side serves reads and writes."""

    name: str
    #: Grows with every transition.
    epoch: int = 0
    #: Grows with every change of the side that takes writes, and when changes of the target were lost.
    #: A comparison counts only if it began with the same number.
    flips: int = 0
    state: State = "Created"
    #: The state that Stopped or Error interrupted, or the one before a switch.
    resume: State | None = None
    #: Why the state is Error.
    error: str | None = None
    #: Whether only a new copy can repair the error: the stream dropped changes.
    needs_copy: bool = False
    #: Whether changes of the target were lost, so that the writes return only after a repair.
    needs_repair: bool = False
    #: Why the workers slow down; None if they do not.
    throttled: str | None = None
    writes: SideName = "source"
    reads_percent: float = 0.0
    reads_by_entity: dict[str, float] = field(default_factory=dict)
    mirror_percent: float = 0.0
    #: The write units that the workers may use in a second, together; None without a limit.
    rate: float | None = None
    #: The copy runs in windows: while `copying` no change is applied. `window` counts the changes of it.
    window: int = 0
    copying: bool = False
    window_at: float = 0.0
    #: How long a copy window lasts at most.
    window_seconds: float = 60.0
    #: Segments of each source's Scan.
    segments: int = 4
    #: Grows with every copy; outputs of older copies are removed at the end of a new one.
    generation: int = 0
    #: Whether the target has taken writes of clients.
    has_served: bool = False
    #: Items of each source at the start, from DescribeTable.
    totals: dict[str, int] = field(default_factory=dict)
    #: Whether `totals` are exact: Amazon updates them every six hours.
    totals_exact: bool = True
    created_at: float = 0.0
    started_at: float = 0.0
    #: When the first copy window was opened, and when the copy ended.
    copy_began_at: float | None = None
    #: When the last copy window was opened, with how many copied items, and when it was closed; None after a
    #: pause, which does not count for the pace.
    opened_at: float | None = None
    opened_items: int = 0
    closed_at: float | None = None
    #: The pace of the copy, in which older windows count less: items, seconds of their windows, and seconds
    #: with the changes beside them. See `forecast`.
    paced_items: float = 0.0
    paced_copying: float = 0.0
    paced_seconds: float = 0.0
    copied_at: float | None = None
    switched_at: float | None = None
    #: When a switch undoes itself.
    deadline: float | None = None
    #: How long the switch may take. A process that observes it for longer undoes it, whatever the clocks say.
    switch_seconds: float | None = None
    diff: DiffResult | None = None
    #: The mapping's fingerprint: a changed mapping needs a new copy.
    fingerprint: str = ""
    #: The streams that the migration enabled, as "side:table".
    streams: list[str] = field(default_factory=list)
    #: When parked sources may be deleted.
    parked_until: float | None = None

    @property
    def open_seconds(self) -> float:
        """How long this copy window lasts: the first ones are short, so that the pace is known early."""
        elapsed = self.window_at - (self.copy_began_at or self.window_at)
        return min(self.window_seconds, max(_FIRST_WINDOW_SECONDS, elapsed))

    @property
    def serving(self) -> SideName:
        """The side that takes writes."""
        return self.writes


def encode_record(record: ControlRecord) -> Item:
    """Return the record as an item of the control table."""
    item = control_key(record.name, CONTROL)
    item["_type"] = {"S": "_migration"}
    for each in fields(ControlRecord):
        value = getattr(record, each.name)
        if isinstance(value, DiffResult):
            value = {"at": value.at, "compared": value.compared, "differences": value.differences}
            value["flips"] = record.diff.flips if record.diff else 0
        if value is not None:
            item[each.name] = dump(value)
    return item


def decode_record(item: Item) -> ControlRecord:
    """Return the record of an item, or raise MigrationError if another program has damaged it."""
    try:
        record = _decode_record(item)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged(item, f"{type(error).__name__}: {error}") from error
    missing = [name for name in _REQUIRED if name not in item]
    if missing:
        raise damaged(item, f"{missing[0]} is missing")
    if record.state not in STATES or record.writes not in ("source", "target"):
        raise damaged(item, f"state is {record.state!r} and writes is {record.writes!r}")
    for name in ("epoch", "flips", "window", "generation", "segments"):
        if type(getattr(record, name)) is not int:
            raise damaged(item, f"{name} is {getattr(record, name)!r}, not a whole number")
    return record


def damaged(item: Item, cause: str) -> MigrationError:
    """Return the error for an item of the control table that no version of this program writes."""
    key = "|".join(str(next(iter(item[name].values()), "")) for name in ("PK", "SK") if name in item)
    return MigrationError(
        f"The item {key!r} of the control table is damaged: {cause}. Restore it from a backup of the table; "
        f"no worker, command or router continues without it."
    )


def _decode_record(item: Item) -> ControlRecord:
    known = {each.name: each for each in fields(ControlRecord)}
    values: dict[str, Any] = {}
    for name, value in item.items():
        if name in _KEYS or name not in known:
            continue
        values[name] = _plain(load(value))
    if isinstance(values.get("diff"), dict):
        diff = values["diff"]
        values["diff"] = DiffResult(
            at=float(diff["at"]),
            compared=int(diff["compared"]),
            differences=int(diff["differences"]),
            flips=int(diff["flips"]),
        )
    return ControlRecord(**values)


def _plain(value: Any) -> Any:
    """Return numbers as int or float, not as Decimal."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (bool, str, int, list)) or value is None:
        return value
    return float(value)


def load_record(side: Side, name: str) -> Flow[ControlRecord | None]:
    """Read the record consistently; None if the migration does not exist."""
    request = GetItem(table=side.control, key=control_key(name, CONTROL), consistent=True)
    try:
        reply = yield from send(request, side.scope.retries)
    except TableNotFound:
        # The first migration creates the control table.
        return None
    return None if reply.item is None else decode_record(decode_item(reply.item))


def require_record(side: Side, name: str) -> Flow[ControlRecord]:
    """Read the record, or raise MigrationError."""
    record = yield from load_record(side, name)
    if record is None:
        raise MigrationError(
            f"Migration {name!r} does not exist on {side.label}; create it with `solotable migrate create`."
        )
    return record


def create_record(side: Side, record: ControlRecord) -> Flow[ControlRecord]:
    """Store a new record, or raise MigrationConflict."""
    absent: Condition = Not(Exists(("PK",)))
    try:
        yield from _write(side, record, absent)
    except ConditionFailed as error:
        raise MigrationConflict(
            f"Migration {record.name!r} exists; show it with `solotable migrate status {record.name}`."
        ) from error
    return record


def transition(
    side: Side, record: ControlRecord, state: State | None = None, **changes: Any
) -> Flow[ControlRecord]:
    """Change the record and increment its epoch; raise MigrationConflict if its epoch is an older one."""
    if state is not None:
        check_transition(record.name, record.state, state)
        changes["state"] = state
    changed = replace(record, epoch=record.epoch + 1, **changes)
    unchanged = has_epoch(record)
    try:
        yield from _write(side, changed, unchanged)
    except ConditionFailed as error:
        raise conflict(record) from error
    return changed


def has_epoch(record: ControlRecord) -> Condition:
    """Return the condition that a record was not changed since it was read."""
    return Compare("=", Attr(("epoch",)), Const({"N": str(record.epoch)}))


def write_while(side: Side, name: str, action: WriteAction, *states: State) -> Flow[None]:
    """Write an item of the control table while the migration is in one of these states.

    Without states, it must not have ended: a process that paused while another one cancelled the migration
    leaves nothing behind. Raises MigrationConflict. The action must be harmless if it is repeated.
    """
    terms: list[Condition] = [_is_in(state) for state in states]
    allowed: Condition = Or(tuple(terms)) if len(terms) > 1 else terms[0] if terms else _GOES_ON
    check = ConditionCheck(table=side.control, key=control_key(name, CONTROL), condition=allowed)
    request = TransactWriteItems(actions=(check, action))
    try:
        try:
            yield from send(request, side.scope.retries)
        except OutcomeUnknown:
            yield from send(request, side.scope.retries)
    except TransactionCancelled as error:
        if error.reasons[0]["Code"] != "ConditionalCheckFailed":
            raise
        wanted = " or ".join(states) or "going on"
        raise MigrationConflict(
            f"Migration {name!r} is no longer {wanted}: another process changed it. Read its status and "
            f"decide again."
        ) from error


def _is_in(state: State) -> Condition:
    return Compare("=", Attr(("state",)), Const({"S": state}))


_GOES_ON: Condition = And((Exists(("PK",)), *(Not(_is_in(state)) for state in sorted(ENDED))))


def conflict(record: ControlRecord) -> MigrationConflict:
    """Return the error for a record that another process changed first."""
    return MigrationConflict(
        f"Migration {record.name!r} is no longer in the state {record.state} at epoch {record.epoch}: "
        f"another process changed it. Read its status and decide again."
    )


def _write(side: Side, record: ControlRecord, condition: Condition) -> Flow[None]:
    item = encode_record(record)
    request = PutItem(table=side.control, item=item, condition=condition)
    try:
        yield from send(request, side.scope.retries)
    except OutcomeUnknown:
        # The put may have been executed: the stored item says so.
        stored = yield from load_record(side, record.name)
        if stored is None or encode_record(stored) != item:
            yield from send(request, side.scope.retries)


def check_percent(name: str, percent: float) -> float:
    """Return a share in per cent, or raise DataError."""
    if not 0 <= percent <= 100:
        raise DataError(f"{name} is a number from 0 to 100, got {percent}.")
    return float(percent)
