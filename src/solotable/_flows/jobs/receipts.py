"""Receipts of purged items, written in the transaction that removes them.

A receipt holds the entity and a digest of the key, never the key, so it holds no personal data. To find
the receipt of a key, compare `digest_of` the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from solotable._entities.declare.table import Table
from solotable._flows.internal_items import internal_key, partition_terms
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope
from solotable._flows.traits.outbox import read_stamp, stamp
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import PutItem, Query
from solotable._values import Item

TAG = "_receipt"
#: Why an item was purged: its grace period ended, its parent was purged, or its time to live passed.
Why = Literal["deleted", "cascade", "expired"]
_PARTITION = "RECEIPT"
#: The attribute that holds the receipt; one attribute cannot collide with a table's key names.
_FACTS = "_facts"


class Receipt(BaseModel):
    """One permanently removed item; `history` is the number of its removed former versions."""

    model_config = ConfigDict(frozen=True)

    run: str
    entity: str
    digest: str
    purged_at: datetime
    why: Why
    history: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptEntry:
    """The entry of one item in a receipt."""

    entity: str
    digest: str
    why: Why
    history: int = 0


def receipt_put(scope: Scope, table: Table, run: str, entries: Iterable[ReceiptEntry]) -> PutItem:
    """Return the put of the receipt of a transaction."""
    at = stamp(scope.now())
    listed: list[Any] = [
        {
            "M": {
                "entity": {"S": entry.entity},
                "digest": {"S": entry.digest},
                "why": {"S": entry.why},
                **({"history": {"N": str(entry.history)}} if entry.history else {}),
            }
        }
        for entry in entries
    ]
    item: Item = {
        **internal_key(table, _PARTITION, f"{at}#{scope.tokens()}"),
        table.internal_tag: {"S": TAG},
        _FACTS: {"M": {"run": {"S": run}, "purged_at": {"S": at}, "entries": {"L": listed}}},
    }
    return PutItem(table=scope.table(table), item=item)


def receipts(scope: Scope, table: Table, start: Item | None) -> Flow[tuple[list[Receipt], Item | None]]:
    """Return the next receipts, oldest first, and the key to continue after; None at the end."""
    request = Query(
        table=scope.table(table), key=partition_terms(table, _PARTITION), start=start, consistent=True
    )
    reply = yield from send(request, scope.retries)
    found = [
        Receipt(
            run=item[_FACTS]["M"]["run"]["S"],
            entity=entry["M"]["entity"]["S"],
            digest=entry["M"]["digest"]["S"],
            purged_at=read_stamp(item[_FACTS]["M"]["purged_at"]["S"]),
            why=entry["M"]["why"]["S"],
            history=int(entry["M"].get("history", {"N": "0"})["N"]),
        )
        for item in decode_items(reply.items or ())
        if item.get(table.internal_tag) == {"S": TAG}
        for entry in item[_FACTS]["M"]["entries"]["L"]
    ]
    return found, reply.last_key or None
