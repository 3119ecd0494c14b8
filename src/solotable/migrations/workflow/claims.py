"""Claims: a table takes part in one migration at a time."""

from __future__ import annotations

from solotable._expressions.ast import Attr, Compare, Const, Exists, Not, Or
from solotable._flows.retry import Flow, send
from solotable._flows.scope import decode_item
from solotable._protocol.requests import DeleteItem, GetItem, PutItem
from solotable._values import Item
from solotable.errors import ConditionFailed, MigrationConflict, TableNotFound

from .sides import Side


def check_claims(side: Side, migration: str) -> Flow[None]:
    """Raise MigrationConflict if a table of a side takes part in another migration."""
    for table in side.names.values():
        other = yield from _claimant(side, table)
        if other not in (None, migration):
            raise _conflict(table, repr(other), migration)


def _claimant(side: Side, table: str) -> Flow[str | None]:
    request = GetItem(table=side.control, key=_key(table), consistent=True)
    try:
        reply = yield from send(request, side.scope.retries)
    except TableNotFound:
        # The first migration creates the control table.
        return None
    return None if reply.item is None else str(decode_item(reply.item)["migration"]["S"])


def _conflict(table: str, other: str, migration: str) -> MigrationConflict:
    return MigrationConflict(
        f"Table {table!r} takes part in the migration {other}; complete or cancel it before you "
        f"create {migration!r}."
    )


def claim_tables(side: Side, migration: str) -> Flow[None]:
    """Claim the tables of a side, or raise MigrationConflict with the other migration."""
    for table in side.names.values():
        item: Item = {**_key(table), "migration": {"S": migration}}
        free = Or((Not(Exists(("PK",))), _is_mine(migration)))
        try:
            yield from send(PutItem(table=side.control, item=item, condition=free), side.scope.retries)
        except ConditionFailed as error:
            other = yield from _claimant(side, table)
            raise _conflict(table, "another" if other is None else repr(other), migration) from error


def release_claims(side: Side, migration: str) -> Flow[None]:
    """Release the tables of a side."""
    for table in side.names.values():
        request = DeleteItem(table=side.control, key=_key(table), condition=_is_mine(migration))
        try:
            yield from send(request, side.scope.retries)
        except ConditionFailed:
            continue


def _is_mine(migration: str) -> Compare:
    return Compare("=", Attr(("migration",)), Const({"S": migration}))


def _key(table: str) -> Item:
    return {"PK": {"S": f"TABLE#{table}"}, "SK": {"S": "CLAIM"}}
