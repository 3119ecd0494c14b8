"""TransactGetItems and TransactWriteItems: all or nothing, over several items and tables.

Every action is checked before any is written, so the reasons of a cancelled transaction are complete and in
the order of the request. The token is stored in the same transaction as the writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from solotable._protocol.capacity import CapacityMeter, read_units
from solotable._protocol.replies import SomeItem, TransactGot, TransactWrote
from solotable._protocol.requests import GetItem, TransactGetItems, TransactWriteItems, WriteAction
from solotable._values.limits import LARGEST_TRANSACTION, TOKEN_SECONDS
from solotable.engines.sqlite.heat.charges import multiply
from solotable.engines.sqlite.items.keys import check_key, check_not_empty, encode_key
from solotable.engines.sqlite.items.storage import StoredItem, Writer, find
from solotable.engines.sqlite.items.write_capacity import meter_write
from solotable.engines.sqlite.tables.catalog import Table
from solotable.errors import ConditionFailed, ServiceError, TransactionCancelled, invalid

from .batches import collect_metrics, reports
from .get_item import check_key_paths, project_row, record_read
from .writes import ItemWrite, charge, check_item_size, check_write, key_of, prepare, store

if TYPE_CHECKING:
    from solotable.engines.sqlite.engine import SqliteEngine

ActionT = TypeVar("ActionT")

#: How long a token makes its transaction idempotent.
TOKEN_MICROS = TOKEN_SECONDS * 1_000_000

_TWICE = "Transaction request cannot include multiple operations on one item"
_MISMATCH = "Transaction parameters do not match those of the transaction with the same token"
_TOO_LARGE = "Aggregated size of items in a transaction cannot exceed 4 MB"


def transact_get_items(engine: SqliteEngine, request: TransactGetItems) -> TransactGot:
    """Return the items of one snapshot."""
    tables = [engine.table(get.table) for get in request.gets]
    for table, get in zip(tables, request.gets, strict=True):
        check_not_empty(table, get.key)

    def prepare_get(table: Table, get: GetItem) -> bytes:
        check_key(table, get.key)
        check_key_paths(table, get.projection or ())
        return encode_key(table.schema, get.key)

    plan = _prepare(tables, request.gets, prepare_get)
    _check_distinct(plan)
    with engine.database.snapshot() as connection:
        found = [find(connection, table, key) for table, key in plan]
    for table, get, row in zip(tables, request.gets, found, strict=True):
        record_read(engine, table, get.key, read_units(0 if row is None else row.size, True, True))
    if sum(row.size for row in found if row is not None) > LARGEST_TRANSACTION:
        raise invalid(_TOO_LARGE)
    items: list[SomeItem | None] = [
        project_row(engine, row, get.projection) for row, get in zip(found, request.gets, strict=True)
    ]
    return TransactGot(
        items=items,
        capacity=_read_reports([get.table for get in request.gets], found, request.capacity),
    )


def transact_write_items(engine: SqliteEngine, request: TransactWriteItems) -> TransactWrote:
    """Do every action, or none and raise the reasons."""
    sizes = [check_item_size(action) for action in request.actions]
    names = [action.table for action in request.actions]
    tables = [engine.table(name) for name in names]
    for table, action in zip(tables, request.actions, strict=True):
        check_not_empty(table, key_of(action))

    def run(writer: Writer) -> TransactWrote:
        plan = _prepare(tables, request.actions, prepare)
        _check_distinct(plan)
        if request.token is not None and _seen(writer, request.token, request.fingerprint):
            # DynamoDB: a repeated transaction is answered and billed as a read.
            rows = [writer.find(table, key) for table, key in plan]
            for table, action, row in zip(tables, request.actions, rows, strict=True):
                units = read_units(0 if row is None else row.size, True, True)
                record_read(engine, table, key_of(action), units)
            return TransactWrote(capacity=_read_reports(names, rows, request.capacity))
        writes = _check_writes(writer, plan, request.actions, sizes)
        for one, action in zip(writes, request.actions, strict=True):
            store(writer, one, action)
        if writer.charges is not None:
            multiply(writer.charges, 2)
        if request.token is not None:
            _remember(writer, request.token, request.fingerprint)
        return TransactWrote(
            capacity=_write_reports(writes, names, request),
            collections=collect_metrics(writer, writes, names) if request.collection == "SIZE" else None,
        )

    return engine.write(run)


_NONE: dict[str, Any] = {"Code": "None"}


def _prepare(
    tables: list[Table], actions: tuple[ActionT, ...], prepare_action: Callable[[Table, ActionT], bytes]
) -> list[tuple[Table, bytes]]:
    plan: list[tuple[Table, bytes]] = []
    for position, (table, action) in enumerate(zip(tables, actions, strict=True)):
        try:
            plan.append((table, prepare_action(table, action)))
        except ServiceError as error:
            # DynamoDB: only the first action that is invalid for its table has a reason.
            reasons = [_NONE] * len(actions)
            reasons[position] = _reason(error)
            raise TransactionCancelled(reasons) from error
    return plan


def _check_writes(
    writer: Writer, plan: list[tuple[Table, bytes]], actions: tuple[WriteAction, ...], sizes: list[int]
) -> list[ItemWrite]:
    writes: list[ItemWrite] = []
    reasons: list[dict[str, Any]] = []
    for (table, key), action, size in zip(plan, actions, sizes, strict=True):
        try:
            writes.append(check_write(writer, table, key, action, size))
            reasons.append(_NONE)
        except ServiceError as error:
            reasons.append(_reason(error))
    if len(writes) < len(actions):
        if writer.charges is not None:
            for (table, _), action, size in zip(plan, actions, sizes, strict=True):
                charge(writer, table, None, action, size)
            multiply(writer.charges, 2)
        raise TransactionCancelled(reasons)
    return writes


def _reason(error: ServiceError) -> dict[str, Any]:
    if isinstance(error, ConditionFailed):
        return {"Code": "ConditionalCheckFailed", "Message": error.message, **error.members}
    return {"Code": "ValidationError", "Message": error.message}


def _check_distinct(plan: list[tuple[Table, bytes]]) -> None:
    if len({(table.id, key) for table, key in plan}) < len(plan):
        raise invalid(_TWICE)


def _seen(writer: Writer, token: str, fingerprint: bytes) -> bool:
    """Say whether the transaction of this token is done; reject the token of another transaction."""
    row = writer.connection.execute(
        "SELECT fingerprint, until_micros FROM tokens WHERE token = ?", (token,)
    ).fetchone()
    if row is None or row[1] <= writer.now_micros:
        return False
    if row[0] != fingerprint:
        raise ServiceError("IdempotentParameterMismatchException", _MISMATCH)
    return True


def _remember(writer: Writer, token: str, fingerprint: bytes) -> None:
    writer.connection.execute(
        "INSERT OR REPLACE INTO tokens (token, fingerprint, until_micros) VALUES (?, ?, ?)",
        (token, fingerprint, writer.now_micros + TOKEN_MICROS),
    )


def _meters(names: list[str]) -> dict[str, CapacityMeter]:
    return {name: CapacityMeter(name) for name in names}


def _read_reports(names: list[str], rows: list[StoredItem | None], kind: Any) -> list[dict[str, Any]] | None:
    meters = _meters(names)
    for name, row in zip(names, rows, strict=True):
        meters[name].table(read_units(0 if row is None else row.size, True, True))
    return reports(list(meters.values()), kind, "read")


def _write_reports(
    writes: list[ItemWrite], names: list[str], request: TransactWriteItems
) -> list[dict[str, Any]] | None:
    if request.capacity == "NONE":
        return None
    meters = _meters(names)
    for one, name in zip(writes, names, strict=True):
        meter_write(meters[name], one.table, one.old, one.new, one.size, transactional=True)
    return reports(list(meters.values()), request.capacity, "write")
