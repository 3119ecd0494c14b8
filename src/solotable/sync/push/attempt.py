"""One attempt of a push: run mutators on an overlay, then commit their writes in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._entities.synced import SPACE_VERSION
from solotable._expressions.ast import Condition, Exists, Not
from solotable._flows.jobs.reencode import difference, update_of
from solotable._flows.retry import send
from solotable._flows.scope import Scope
from solotable._flows.sync.entries import LogEntry, item_entries, space_of
from solotable._flows.sync.log import (
    Head,
    LogRecord,
    Operation,
    by_space,
    head_put,
    needs_of,
    operations_of,
    read_heads_to_write,
    record_put,
    with_version,
)
from solotable._flows.sync.spaces import Space
from solotable._flows.transactions.write import all_of, attributes_unchanged
from solotable._protocol.engine import Engine
from solotable._protocol.requests import (
    ConditionCheck,
    DeleteItem,
    PutItem,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable._store.runner import run
from solotable._values import Item
from solotable._values.limits import LARGEST_TRANSACTION, MOST_COMPARISONS, MOST_TRANSACTION_ACTIONS

from .clients import MOST_REJECTED, ClientRecord, client_put, group_put, rejected_key
from .overlay import UNREAD, Identity, ItemChange, Overlay
from .request import Mutation

#: The bytes of items in one commit: their values are also in its log record.
_LARGEST_COMMIT = 250_000
#: Actions of a transaction that are kept free, for spaces that show up late.
_RESERVE = 4
#: The bytes of two operations in a log record beside their keys and values.
_OPERATION_BYTES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a mutation was rejected."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a push writes: the engine, the scope of the tenant, and the spaces that its user reads."""

    engine: Engine
    scope: Scope
    root: Space
    group: str
    user: str
    readable: Sequence[Space]
    #: Whether the group has no record yet.
    new_group: bool


class TooManyItems(Exception):
    """A single mutation writes more items, or larger ones, than one transaction takes."""


class Attempt:
    """The mutations of one transaction: add them one by one, then commit."""

    def __init__(self, target: Target, records: dict[str, ClientRecord]) -> None:
        self._target = target
        self._before = dict(records)
        self._after: dict[str, ClientRecord] = {}
        self._operations: list[Operation] = []
        self._checks: set[Identity] = set()
        self._bytes = 0
        scope = target.scope
        # Read the head before any item: a later commit then fails the condition on the head.
        self._heads: dict[Space, Head] = {target.readable[0]: self._head(target.readable[0])}
        tables = {scope.table(table): table for table in scope.tables}
        self.overlay = Overlay(target.engine, tables, self._sees)
        self.count = 0

    def _head(self, space: Space) -> Head:
        (head,) = run(read_heads_to_write(self._target.scope, [space]), self._target.engine)
        return head

    def _sees(self, table: Table, item: Item) -> bool:
        """Read the head of a space that an item shows first; return True if the item must be read again."""
        plan = table.recognise(item)
        if plan is None or plan.synced is None:
            return False
        arguments = plan.arguments_of(item)
        if arguments is None:
            return False
        space = space_of(plan, arguments)
        if space in self._heads:
            return False
        self._heads[space] = self._head(space)
        return True

    def confirm_again(self, clients: Iterable[str]) -> None:
        """Confirm the last ids of clients that a reset has marked."""
        for client in clients:
            self._after[client] = replace(self._before[client], is_reset=False)

    def add(self, mutation: Mutation, mutate: Callable[[], Refusal | None]) -> bool:
        """Run a mutation; return False, without its effects, if the transaction has no room for it."""
        mark = self.overlay.mark()
        refusal = mutate()
        written, size = self.overlay.weight(mark)
        checks: set[Identity] = set()
        if refusal is not None:
            self.overlay.roll_back(mark)
            # A rejection is final, so what it is based on must still be true when it commits.
            checks = self.overlay.looked_at
            written, size = self.overlay.weight(0)[0], self._rejection_size(mutation, refusal)
        clients = {*self._after, mutation.client}
        taken = written + len(self._checks | checks) + len(clients) + 1 + 2 * len(self._heads) + _RESERVE
        is_too_much = taken > MOST_TRANSACTION_ACTIONS or size > LARGEST_TRANSACTION // 2
        if is_too_much or self._bytes + size > _LARGEST_COMMIT:
            if self.count:
                self.overlay.roll_back(mark)
                return False
            if is_too_much and refusal is None:
                self.overlay.roll_back(mark)
                raise TooManyItems
            if is_too_much:
                checks = set()
        self._bytes += size
        self._checks |= checks
        self._confirm(mutation, refusal)
        self.count += 1
        return True

    def _rejection_size(self, mutation: Mutation, refusal: Refusal) -> int:
        """Return the bytes of a rejection in the log: its value, and the later deletion of its key."""
        key = rejected_key(mutation.client, mutation.id)
        names = len(key.encode()) + len(self._target.group.encode())
        return len(_json(_rejection(mutation, refusal)).encode()) + 2 * names + _OPERATION_BYTES

    def _confirm(self, mutation: Mutation, refusal: Refusal | None) -> None:
        record = self._after.get(mutation.client, self._before[mutation.client])
        record = replace(record, last=mutation.id, is_reset=False)
        if refusal is not None:
            value = _rejection(mutation, refusal)
            kept = (*record.rejected, value)
            record = replace(record, rejected=kept[-MOST_REJECTED:])
            group = self._target.group
            self._operations.append(
                Operation(key=rejected_key(mutation.client, mutation.id), value=_json(value), group=group)
            )
            self._operations += (
                Operation(key=rejected_key(mutation.client, int(each["id"])), group=group)
                for each in kept[:-MOST_REJECTED]
            )
        self._after[mutation.client] = record

    def commit(self) -> tuple[dict[str, ClientRecord], list[Space]]:
        """Write everything in one transaction; return the new client records and the changed spaces."""
        target, scope = self._target, self._target.scope
        changes = list(self.overlay.changes())
        entries = {id(change): list(_entries(change)) for change in changes}
        grouped = by_space(entry for some in entries.values() for entry in some)
        confirming = [space for space in target.readable if space in grouped] or [target.readable[0]]
        for space in (*grouped, *confirming):
            if space not in self._heads:
                self._heads[space] = self._head(space)
        spaces = list(dict.fromkeys((*grouped, *confirming)))
        versions = {space: self._heads[space].version + 1 for space in spaces}
        actions: list[WriteAction] = []
        for change in changes:
            entry = next((each for each in entries[id(change)] if each.item_key == change.key), None)
            actions.append(_action(change, None if entry is None else versions[entry.space]))
        actions += self._check_actions()
        seen = {space.name: versions[space] for space in confirming if space.table is target.root.table}
        for client, record in self._after.items():
            self._after[client] = replace(record, versions=seen, at=scope.clock())
            actions.append(client_put(scope, target.root, self._before[client], self._after[client]))
        if target.new_group:
            actions.append(group_put(scope, target.root, target.group, target.user))
        for space in spaces:
            actions += self._log(space, versions, grouped.get(space, []), first=space == confirming[0])
        token = scope.token(None)
        sent = TransactWriteItems(actions=tuple(actions), token=token, fingerprint=token.encode())
        run(send(sent, scope.retries), target.engine)
        return self._after, spaces

    def _log(
        self, space: Space, versions: Mapping[Space, int], entries: Iterable[LogEntry], *, first: bool
    ) -> tuple[PutItem, PutItem]:
        scope, some, version = self._target.scope, list(entries), versions[space]
        # An id confirms all mutations before it, and the last ones may be in other spaces.
        needs: dict[str, int] = {}
        for client in self._after:
            for name, at in self._before[client].versions.items():
                if name != space.name:
                    needs[name] = max(at, needs.get(name, 0))
        needs |= needs_of(space, versions)
        clients = [(self._target.group, each.client, each.last) for each in self._after.values()]
        record = LogRecord(
            version=version,
            operations=[*operations_of(some), *(self._operations if first else ())],
            clients=clients if space in self._target.readable else (),
            needs=needs,
            days=max((each.log_days for each in some), default=30),
            after=self._heads[space].lost,
        )
        return head_put(scope, self._heads[space], version), record_put(scope, space, record)

    def _check_actions(self) -> Iterable[ConditionCheck]:
        for identity in self._checks:
            found = self.overlay.stored(identity)
            if found is not None:
                name, key, item = found
                table = next(
                    each for each in self._target.scope.tables if self._target.scope.table(each) == name
                )
                yield ConditionCheck(table=name, key=key, condition=_unchanged(table, key, item))


def _rejection(mutation: Mutation, refusal: Refusal) -> dict[str, Any]:
    """Return what a client sees of a rejected mutation."""
    return {
        "id": mutation.id,
        "client": mutation.client,
        "name": mutation.name[:100],
        "code": _storable(refusal.code[:100]),
        "reason": _storable(refusal.reason[:500]),
    }


def _storable(text: str) -> str:
    """Return a text without lone surrogates, which a reason may quote and no database stores."""
    return text.encode(errors="replace").decode()


def _entries(change: ItemChange) -> Iterable[LogEntry]:
    before = None if change.before is UNREAD else change.before
    item = change.after if change.after is not None else before
    plan = None if item is None else change.table.recognise(item)
    if plan is None and before is not None:
        plan = change.table.recognise(before)
    if plan is None or plan.synced is None:
        return ()
    if before is not None and change.after is not None and _is_maintenance(plan, before, change.after):
        return ()
    own = [None if each is None or not plan.recognises(each) else each for each in (before, change.after)]
    return item_entries(plan, own[0], own[1])


def _is_maintenance(plan: Plan, before: Item, after: Item) -> bool:
    """Return whether only counters and internal attributes differ, which clients do not see."""
    counters = {plan.attributes[name].wire for name in plan.counters}
    touched = difference(before, after).keys() - {SPACE_VERSION}
    return all(name in counters for name in touched)


def _action(change: ItemChange, version: int | None) -> WriteAction:
    """Return the action that writes a changed item, if it is still as the mutators read it."""
    before, after = change.before, change.after
    action: WriteAction
    if before is UNREAD:
        if after is None:
            action = DeleteItem(table=change.name, key=change.key)
        else:
            action = PutItem(table=change.name, item=after)
    elif after is None:
        condition = _unchanged(change.table, change.key, before)
        action = DeleteItem(table=change.name, key=change.key, condition=condition)
    elif before is None:
        condition = _unchanged(change.table, change.key, None)
        action = PutItem(table=change.name, item=after, condition=condition)
    else:
        touched = difference(before, after)
        touched.pop(SPACE_VERSION, None)
        condition = _unchanged(change.table, change.key, before, touched)
        if not touched:
            # The same values again: nothing to write, if they still are what is stored.
            return ConditionCheck(table=change.name, key=change.key, condition=condition)
        action = UpdateItem(table=change.name, key=change.key, update=update_of(touched), condition=condition)
    return action if version is None else with_version(action, version)


def _unchanged(table: Table, key: Item, item: Item | None, touched: Iterable[str] = ()) -> Condition:
    """Return the condition that an item is as it was read."""
    exists = Exists((table.partition.name,))
    if item is None:
        return Not(exists)
    plan = table.recognise(item)
    if plan is not None and plan.synced is not None:
        # Every change of a synced item sets its version, except those of its counters.
        counters = {plan.attributes[name].wire for name in plan.counters}
        names = {SPACE_VERSION, *(name for name in touched if name in counters)}
    elif plan is not None and plan.version is not None and plan.attributes[plan.version].wire in item:
        counters = {plan.attributes[name].wire for name in plan.counters}
        names = {plan.attributes[plan.version].wire, *(name for name in touched if name in counters)}
    else:
        names = {*item, *touched} - key.keys()
        names = set(sorted(names)[:MOST_COMPARISONS])
    condition = all_of([exists, *attributes_unchanged({name: item.get(name) for name in sorted(names)})])
    assert condition is not None
    return condition


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
