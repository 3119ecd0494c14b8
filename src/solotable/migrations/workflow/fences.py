"""Fences: whether a side takes writes of clients, and the journal of guarded writes.

A side has several fence items, so that the writes which check them do not conflict. At most one side is
open. While writes are switched, a client's write carries `guard`: a check of one fence item, and a journal
entry with the keys that it writes. A write with a guard is either executed before its side is closed, and
then its keys are in the journal, or it is rejected.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from solotable._expressions.ast import (
    Assign,
    Attr,
    Compare,
    Condition,
    Const,
    Exists,
    KeyTerm,
    Not,
    Or,
    Update,
)
from solotable._flows.retry import Flow, send
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import (
    ConditionCheck,
    DeleteItem,
    PutItem,
    Query,
    UpdateItem,
    WriteAction,
)
from solotable._values import Item
from solotable.errors import ConditionFailed, OutcomeUnknown

from .sides import Side

#: Fence items of a side.
FENCES = 8
_OPEN: Condition = Compare("=", Attr(("open",)), Const({"BOOL": True}))


def fence_key(name: str, side: str, number: int) -> Item:
    """Return the key of a fence item."""
    return {"PK": {"S": f"FENCE#{name}#{side}#{number}"}, "SK": {"S": "FENCE"}}


def fences_of(side: Side, name: str) -> list[tuple[str, Item]]:
    """Return the table and the key of each fence item of a side."""
    return [(side.control, fence_key(name, side.name, number)) for number in range(FENCES)]


def fence_check(side: Side, name: str, number: int | None = None) -> ConditionCheck:
    """Return the check that a side takes writes; `number` is the fence item, or a random one."""
    chosen = secrets.randbelow(FENCES) if number is None else number % FENCES
    return ConditionCheck(table=side.control, key=fence_key(name, side.name, chosen), condition=_OPEN)


def set_fences(side: Side, name: str, *, is_open: bool, epoch: int, creates: bool = True) -> Flow[None]:
    """Open or close a side, unless a later epoch has set its fences; `creates` allows missing ones."""
    older: Condition = Compare("<=", Attr(("epoch",)), Const({"N": str(epoch)}))
    if creates:
        older = Or((Not(Exists(("PK",))), older))
    update = Update(
        (
            Assign(("open",), Const({"BOOL": is_open})),
            Assign(("epoch",), Const({"N": str(epoch)})),
        ),
        creates=True,
    )
    for table, key in fences_of(side, name):
        request = UpdateItem(table=table, key=key, update=update, condition=older)
        try:
            try:
                yield from send(request, side.scope.retries)
            except OutcomeUnknown:
                yield from send(request, side.scope.retries)
        except ConditionFailed:
            return


def delete_fences(side: Side, name: str) -> Flow[None]:
    """Delete the fence items of a side."""
    for table, key in fences_of(side, name):
        yield from send(DeleteItem(table=table, key=key), side.scope.retries)


def guard(side: Side, name: str, actions: Sequence[WriteAction]) -> list[WriteAction]:
    """Return the actions that a client's transaction adds while writes are switched.

    `actions` are the writes of the transaction. The result has the check of a fence item, and a put of a
    journal entry with their keys. A check that fails means: the side is closed; read the control record.
    """
    written = [(action.table, _key_of(side, action)) for action in actions]
    return [fence_check(side, name), _journal_entry(side, name, written)]


def journal_keys(side: Side, name: str) -> Flow[list[tuple[str, Item]]]:
    """Return the table and the key, or the whole item, of each write in the journal."""
    found: list[tuple[str, Item]] = []
    for entry in (yield from _journal(side, name)):
        found += [(each["M"]["table"]["S"], each["M"]["key"]["M"]) for each in entry["writes"]["L"]]
    return found


def clear_journal(side: Side, name: str) -> Flow[None]:
    """Delete the journal of a side."""
    for entry in (yield from _journal(side, name)):
        key = {"PK": entry["PK"], "SK": entry["SK"]}
        yield from send(DeleteItem(table=side.control, key=key), side.scope.retries)


def _journal(side: Side, name: str) -> Flow[list[Item]]:
    found: list[Item] = []
    for number in range(FENCES):
        start = None
        while True:
            key = (KeyTerm("PK", "=", ({"S": _journal_partition(side, name, number)},)),)
            request = Query(table=side.control, key=key, start=start, consistent=True)
            reply = yield from send(request, side.scope.retries)
            found += decode_items(reply.items or ())
            start = reply.last_key
            if not start:
                break
    return found


def _journal_entry(side: Side, name: str, written: Iterable[tuple[str, Item]]) -> PutItem:
    writes = [{"M": {"table": {"S": table}, "key": {"M": dict(key)}}} for table, key in written]
    item: Item = {
        "PK": {"S": _journal_partition(side, name, secrets.randbelow(FENCES))},
        "SK": {"S": secrets.token_hex(12)},
        "writes": {"L": writes},
    }
    return PutItem(table=side.control, item=item)


def _journal_partition(side: Side, name: str, number: int) -> str:
    return f"JOURNAL#{name}#{side.name}#{number}"


def _key_of(side: Side, action: WriteAction) -> Item:
    if not isinstance(action, PutItem):
        return action.key
    names = side.key_names.get(action.table)
    return action.item if names is None else {name: action.item[name] for name in names}
