"""The requests that an engine received, their replies and their costs; it sends nothing.

The costs are those that the replies report. An error reports none: DynamoDB charges for a write whose
condition failed, but does not say how much.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from solotable._protocol import requests
from solotable._protocol.requests import Control, Request
from solotable._store.observation import operation_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One request and its outcome."""

    request: Request[Any]
    reply: Any = None
    error: Exception | None = None
    seconds: float = 0.0
    rcu: float = 0.0
    wcu: float = 0.0
    #: Units by index name.
    indexes: dict[str, float]
    is_scan: bool = False

    @property
    def operation(self) -> str:
        """DynamoDB's name of the operation."""
        return operation_of(self.request)

    def __str__(self) -> str:
        parts = [_title(self.request)]
        if self.rcu or not self.wcu:
            parts.append(f"{self.rcu:g} RCU")
        if self.wcu:
            parts.append(f"{self.wcu:g} WCU")
        if self.indexes:
            by_index = ", ".join(f"{name} {units:g}" for name, units in self.indexes.items())
            parts.append(f"(of that {by_index})")
        if self.error is not None:
            parts.append(f"error: {type(self.error).__name__}")
        return "  ".join(parts)


class Journal:
    """The records of one engine, or of all engines of a test, in order."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        #: How long flows have waited between attempts, even if the wait was simulated.
        self.waited_seconds = 0.0

    @property
    def rcu(self) -> float:
        """The read units of all records."""
        return total(record.rcu for record in self.records)

    @property
    def wcu(self) -> float:
        """The write units of all records."""
        return total(record.wcu for record in self.records)

    @property
    def scans(self) -> list[Record]:
        """The requests that scan a table or an index."""
        return [record for record in self.records if record.is_scan]

    def requests(self, operation: str | None = None) -> list[Request[Any]]:
        """Return all requests, or those of one operation."""
        return [
            record.request for record in self.records if operation is None or record.operation == operation
        ]

    def clear(self) -> None:
        """Remove all records."""
        self.records.clear()
        self.waited_seconds = 0.0


def total(units: Iterable[float]) -> float:
    """Return the sum of units; floats add multiples of one half exactly."""
    return sum(units, 0.0)


def _title(request: Request[Any]) -> str:
    match request:
        case requests.Query() | requests.Scan():
            target = request.table if request.index is None else f"{request.table}/{request.index}"
        case requests.BatchGetItem():
            target = ", ".join(f"{part.table} ({len(part.keys)} keys)" for part in request.tables)
        case requests.BatchWriteItem():
            target = ", ".join(f"{table} ({len(writes)} writes)" for table, writes in request.tables)
        case requests.TransactWriteItems():
            target = f"({len(request.actions)} actions)"
        case requests.TransactGetItems():
            target = f"({len(request.gets)} gets)"
        case requests.ExecuteStatement():
            target = request.statement.text
        case Control():
            target = str(request.members.get("TableName", ""))
        case _:
            target = str(getattr(request, "table", ""))
    return f"{operation_of(request)} {target}".rstrip()
