"""Read and write the items of a table in wire form."""

from __future__ import annotations

from collections.abc import Iterable

from solotable import Database, flow
from solotable._values import Item
from solotable.flow.requests import PutItem, Scan


def stored_items(db: Database, table: str) -> list[Item]:
    """Return all items of a table."""
    scope, found, start = flow.scope_of(db), list[Item](), None
    while True:
        request = Scan(table=table, start=start, consistent=True)
        reply = flow.run(flow.send(scope, request), db)
        found += flow.decode_items(reply.items or ())
        start = reply.last_key
        if start is None:
            return found


def put_items(db: Database, table: str, items: Iterable[Item]) -> None:
    """Write items without a condition."""
    scope = flow.scope_of(db)
    for item in items:
        flow.run(flow.send(scope, PutItem(table=table, item=item)), db)
