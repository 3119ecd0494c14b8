"""Consumed capacity: what replies report, summed by table and index for the calls of a block."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from solotable._protocol import requests
from solotable._protocol.requests import Request

#: Their ConsumedCapacity does not say read or write; the request does.
_READS = (requests.GetItem, requests.Query, requests.Scan, requests.BatchGetItem, requests.TransactGetItems)


# One lock for all: a lock of each instance would slow down every observed request.
_lock = threading.Lock()


@dataclass(slots=True)
class Units:
    """Read and write capacity units."""

    rcu: float = 0.0
    wcu: float = 0.0

    def add(self, rcu: float, wcu: float) -> None:
        """Add units."""
        self.rcu += rcu
        self.wcu += wcu


@dataclass(slots=True)
class Consumed(Units):
    """The capacity units that requests consumed: all of them, by table and by index.

    The units of a table include those of its indexes. An index is named `table/index`. An error reports no
    units, although DynamoDB charges for a write whose condition failed.
    """

    requests: int = 0
    tables: dict[str, Units] = field(default_factory=dict)
    indexes: dict[str, Units] = field(default_factory=dict)

    def include(self, other: Consumed) -> None:
        """Add the units of other requests; threads may do it at the same time."""
        with _lock:
            self.requests += other.requests
            self.add(other.rcu, other.wcu)
            for mine, theirs in ((self.tables, other.tables), (self.indexes, other.indexes)):
                for name, units in theirs.items():
                    mine.setdefault(name, Units()).add(units.rcu, units.wcu)


def units_of(request: Request[Any], reply: Any) -> Consumed:
    """Return the units that a reply reports."""
    reported = reply.get("ConsumedCapacity") if isinstance(reply, dict) else getattr(reply, "capacity", None)
    tables: Sequence[Mapping[str, Any]] = [reported] if isinstance(reported, dict) else reported or []
    consumed = Consumed(requests=1)
    for table in tables:
        name = table.get("TableName", "")
        rcu, wcu = _split(request, table)
        consumed.add(rcu, wcu)
        consumed.tables.setdefault(name, Units()).add(rcu, wcu)
        for kind in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
            for index, units in table.get(kind, {}).items():
                consumed.indexes.setdefault(f"{name}/{index}", Units()).add(*_split(request, units))
    return consumed


def _split(request: Request[Any], units: Mapping[str, Any]) -> tuple[float, float]:
    # DynamoDB: transactions report both; a repeated one with the same token only reads.
    if "ReadCapacityUnits" in units or "WriteCapacityUnits" in units:
        return units.get("ReadCapacityUnits", 0.0), units.get("WriteCapacityUnits", 0.0)
    total = units.get("CapacityUnits", 0.0)
    return (total, 0.0) if _reads(request) else (0.0, total)


def _reads(request: Request[Any]) -> bool:
    match request:
        case requests.ExecuteStatement():
            return _selects(request.statement)
        case requests.BatchExecuteStatement() | requests.ExecuteTransaction():
            return all(map(_selects, request.statements))
        case _:
            return isinstance(request, _READS)


def _selects(statement: requests.Statement) -> bool:
    return statement.text.lstrip()[:6].upper() == "SELECT"


#: The open blocks of this task or thread, each with its engine.
METERS: ContextVar[tuple[tuple[object, Consumed], ...]] = ContextVar("solotable_meters", default=())


@contextmanager
def metered(engine: object) -> Iterator[Consumed]:
    """Sum what the flows of a block consume on an engine; blocks may be nested."""
    consumed = Consumed()
    token = METERS.set((*METERS.get(), (engine, consumed)))
    try:
        yield consumed
    finally:
        METERS.reset(token)
