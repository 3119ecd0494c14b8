"""Maintenance of spaces: new epochs after writes without a log, and deletion of old log records."""

from __future__ import annotations

from collections.abc import Sequence

from solotable._entities.declare.table import Table
from solotable._expressions.ast import Assign, Attr, Compare, Const, Exists, KeyTerm, Update
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.sync.entries import find_space
from solotable._flows.sync.log import (
    MOST_VERSIONS,
    Head,
    LogRecord,
    head_put,
    last_version,
    read_heads,
    record_put,
)
from solotable._flows.sync.snapshot import highest_version
from solotable._flows.sync.spaces import HEAD, TAG, Space, log_sort
from solotable._flows.transactions.conflicts import retry_conflicts
from solotable._flows.writes.batch import delete_items
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Query, Scan, TransactWriteItems, UpdateItem
from solotable._values import AttributeValue, Item
from solotable.errors import ConditionFailed, StoredDataError


def reset_spaces(scope: Scope, root: Space, spaces: Sequence[Space]) -> Flow[None]:
    """Give spaces a new epoch, and mark the clients of a tenant, whose ids may be ahead of the table."""
    yield from _mark_clients(scope, root)
    for space in spaces:
        yield from retry_conflicts(scope, lambda space=space: _new_epoch(scope, space))  # type: ignore[misc]


def _new_epoch(scope: Scope, space: Space) -> Flow[None]:
    try:
        (head,) = yield from read_heads(scope, [space])
    except StoredDataError:
        key = space.key(HEAD)
        yield from send(DeleteItem(table=scope.table(space.table), key=key), scope.retries)
        head = Head(space)
    # A restore may have brought back records without their head.
    last = max(head.version, (yield from last_version(scope, space)))
    # An import may have brought items of a later version, and a pull would wait for it.
    version = max(last, (yield from highest_version(scope, space))) + 1
    actions = (
        head_put(scope, head, version, scope.tokens()),
        record_put(scope, space, LogRecord(version=version, after=last)),
    )
    token = scope.token(None)
    sent = TransactWriteItems(actions=actions, token=token, fingerprint=token.encode())
    yield from send(sent, scope.retries)


def _mark_clients(scope: Scope, root: Space) -> Flow[None]:
    table = root.table
    assert table.sort is not None
    terms = (
        KeyTerm(table.partition.name, "=", ({"S": root.partition},)),
        KeyTerm(table.sort.name, "begins_with", ({"S": "CLIENT#"},)),
    )
    start: Item | None = None
    while True:
        request = Query(table=scope.table(table), key=terms, start=start, consistent=True)
        page = yield from send(request, scope.retries)
        for item in decode_items(page.items or ()):
            yield from _mark(scope, table, {name: item[name] for name in table.key_names})
        start = page.last_key
        if not start:
            return


def _mark(scope: Scope, table: Table, key: Item) -> Flow[None]:
    update = Update((Assign(("reset",), Const({"BOOL": True})),), creates=True)
    exists = Exists((table.partition.name,))
    try:
        yield from send(
            UpdateItem(table=scope.table(table), key=key, update=update, condition=exists), scope.retries
        )
    except ConditionFailed:
        return


def reset_all(scope: Scope, table: Table) -> Flow[int]:
    """Reset every space of a table that has a head or an item; return their number."""
    # By tenant; a dictionary keeps the order.
    found: dict[str | None, dict[Space, None]] = {}
    start: Item | None = None
    while True:
        request = Scan(table=scope.table(table), start=start, consistent=True)
        page = yield from send(request, scope.retries)
        for item in decode_items(page.items or ()):
            space = find_space(table, item)
            if space is not None:
                spaces = found.setdefault(space.tenant, {})
                if not _is_client(table, item):
                    spaces[space] = None
        start = page.last_key
        if not start:
            break
    for tenant, spaces in found.items():
        yield from reset_spaces(scope, Space(table, tenant), list(spaces))
    return sum(len(spaces) for spaces in found.values())


def _is_client(table: Table, item: Item) -> bool:
    """Return whether an item is the record of a client or a group, which are in the tenant's own space."""
    assert table.sort is not None
    is_internal = item.get(table.internal_tag) == {"S": TAG}
    return is_internal and item[table.sort.name]["S"].startswith(("CLIENT#", "GROUP#"))


def trim_logs(scope: Scope, spaces: Sequence[Space], seconds: float) -> Flow[int]:
    """Delete log records that are older than some seconds; return their number."""
    deleted = 0
    for space in spaces:
        table = space.table
        assert table.sort is not None
        terms = (
            KeyTerm(table.partition.name, "=", ({"S": space.partition},)),
            KeyTerm(table.sort.name, "BETWEEN", ({"S": log_sort(0)}, {"S": log_sort(MOST_VERSIONS)})),
        )
        until: AttributeValue = {"N": str(int((scope.clock() - seconds) * 1000))}
        old = Compare("<", Attr(("at",)), Const(until))
        start: Item | None = None
        while True:
            request = Query(table=scope.table(table), key=terms, filter=old, start=start)
            page = yield from send(request, scope.retries)
            keys = [{name: item[name] for name in table.key_names} for item in decode_items(page.items or ())]
            deleted += yield from delete_items(scope, table, keys)
            start = page.last_key
            if not start:
                break
    return deleted
