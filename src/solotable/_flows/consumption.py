"""Consumed capacity: what replies report, summed by table and index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from solotable._protocol import requests
from solotable._protocol.requests import Request

from .retry import ConcurrentReads, Flow

ResultT = TypeVar("ResultT")
ParametersT = ParamSpec("ParametersT")

#: Their ConsumedCapacity does not say read or write; the request does.
_READS = (requests.GetItem, requests.Query, requests.Scan, requests.BatchGetItem, requests.TransactGetItems)


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
        """Add the units of other requests."""
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


def measured(
    flow: Callable[ParametersT, Flow[ResultT]],
) -> Callable[ParametersT, Flow[ResultT]]:
    """Set `consumed` of a flow's result to what its requests consumed, if their replies report it."""

    @wraps(flow)
    def measure(*args: ParametersT.args, **kwargs: ParametersT.kwargs) -> Flow[ResultT]:
        inner = flow(*args, **kwargs)
        consumed: Consumed | None = None
        advance, reply = inner.send, None
        while True:
            try:
                request = advance(reply)
            except StopIteration as done:
                result: ResultT = done.value
                # Every result of such a flow is a dataclass with this field.
                return result if consumed is None else replace(result, consumed=consumed)  # type: ignore[type-var]
            advance = inner.send
            try:
                reply = yield request
            except Exception as error:  # noqa: BLE001 - the flow decides
                advance, reply = inner.throw, error
                continue
            if isinstance(request, ConcurrentReads):
                for read, each in zip(request.reads, reply, strict=True):
                    consumed = _included(consumed, read, each)
            else:
                consumed = _included(consumed, request, reply)

    return measure


def _included(consumed: Consumed | None, request: Request[Any], reply: Any) -> Consumed | None:
    if getattr(reply, "capacity", None) is None:
        return consumed
    consumed = consumed or Consumed()
    consumed.include(units_of(request, reply))
    return consumed
