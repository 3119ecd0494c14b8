"""An engine with declared faults, and what each fault does.

The errors are those of a real engine, with AWS's texts where DynamoDB has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NoReturn, Protocol

from solotable._protocol.engine import Engine
from solotable._protocol.replies import BatchGot, BatchWrote
from solotable._protocol.requests import (
    BatchDelete,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ExecuteTransaction,
    GetItem,
    Query,
    Request,
    Scan,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
)
from solotable.errors import OutcomeUnknown, ServiceError, Throttled, TransactionCancelled, TransportError

from .wrapper import EngineWrapper

Handler = Callable[[Request[Any]], Any]
#: Handles a request in place of the engine's handler.
FaultAction = Callable[[Handler, Request[Any]], Any]

_READS: Final = (GetItem, Query, Scan, BatchGetItem, TransactGetItems)
_ONGOING: Final = "Transaction is ongoing for the item"


class MatchedFault(Protocol):
    """A fault that hits a request."""

    @property
    def act(self) -> FaultAction:
        """What the fault does."""


class FaultPlan(Protocol):
    """Decides which faults hit a request."""

    def matching(self, request: Request[Any], /) -> Iterable[MatchedFault]:
        """Yield the faults that hit the request."""


class FaultyEngine(EngineWrapper):
    """Answers as the inner engine does, except for requests with a fault."""

    def __init__(self, engine: Engine, faults: FaultPlan) -> None:
        super().__init__(engine)
        self.faults = faults

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request, with the faults that hit it."""
        handle: Handler = self.inner.handle
        for fault in self.faults.matching(request):
            handle = partial(fault.act, handle)
        return handle(request)


def throttle(_handle: Handler, _request: Request[Any]) -> NoReturn:
    """Reject a request for lack of capacity."""
    raise Throttled(
        "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded. "
        "Consider increasing your provisioning level with the UpdateTable API.",
    )


def internal_error(_handle: Handler, _request: Request[Any]) -> NoReturn:
    """Raise InternalServerError without executing the request."""
    raise ServiceError("InternalServerError", "Internal server error", status=500)


def internal_error_after(handle: Handler, request: Request[Any]) -> NoReturn:
    """Execute the request, then raise InternalServerError."""
    handle(request)
    internal_error(handle, request)


def unreachable(_handle: Handler, _request: Request[Any]) -> NoReturn:
    """Fail to connect."""
    raise TransportError("Cannot connect to the endpoint (injected fault); nothing was sent.")


def timeout_before(_handle: Handler, request: Request[Any]) -> NoReturn:
    """Lose the request."""
    if isinstance(request, _READS):
        raise TransportError("The endpoint sent no response in time (injected fault).")
    token = isinstance(request, TransactWriteItems | ExecuteTransaction) and request.token is not None
    raise OutcomeUnknown(
        "The endpoint received a write and sent no response in time (injected fault): "
        "the write may have been executed.",
        retryable=token,
    )


def timeout_after(handle: Handler, request: Request[Any]) -> NoReturn:
    """Execute the request, then lose the reply."""
    handle(request)
    timeout_before(handle, request)


def transaction_conflict(_handle: Handler, request: Request[Any]) -> NoReturn:
    """Reject a request because of another transaction."""
    if isinstance(request, TransactWriteItems | TransactGetItems):
        others = len(request.actions if isinstance(request, TransactWriteItems) else request.gets) - 1
        conflict = {"Code": "TransactionConflict", "Message": _ONGOING}
        raise TransactionCancelled([conflict, *({"Code": "None"} for _ in range(others))])
    raise ServiceError("TransactionConflictException", _ONGOING)


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """Executes the first entries of a batch, or half of them, and returns the rest unprocessed."""

    processed: int | None

    def __call__(self, handle: Handler, request: Request[Any]) -> Any:
        """Execute the first entries."""
        if isinstance(request, BatchWriteItem):
            return self._write(handle, request)
        assert isinstance(request, BatchGetItem)
        return self._get(handle, request)

    def covers(self, request: Request[Any]) -> bool:
        """Whether the batch has no entry beyond the first ones."""
        return self._split(_entries(request)) >= _entries(request)

    def _split(self, entries: int) -> int:
        return max(1, entries // 2) if self.processed is None else self.processed

    def _write(self, handle: Handler, request: BatchWriteItem) -> BatchWrote:
        limit = self._split(_entries(request))
        processed: list[tuple[str, tuple[BatchPut | BatchDelete, ...]]] = []
        unprocessed: dict[str, list[dict[str, Any]]] = {}
        for table, writes in request.tables:
            if writes[:limit]:
                processed.append((table, writes[:limit]))
            if writes[limit:]:
                unprocessed[table] = [_wire(write) for write in writes[limit:]]
            limit = max(0, limit - len(writes))
        reply: BatchWrote = handle(replace(request, tables=tuple(processed)))
        for table, more in reply.unprocessed.items():
            unprocessed[table] = [*more, *unprocessed.get(table, [])]
        return replace(reply, unprocessed=unprocessed)

    def _get(self, handle: Handler, request: BatchGetItem) -> BatchGot:
        limit = self._split(_entries(request))
        processed: list[TableKeys] = []
        unprocessed: dict[str, dict[str, Any]] = {}
        for part in request.tables:
            if part.keys[:limit]:
                processed.append(replace(part, keys=part.keys[:limit]))
            if part.keys[limit:]:
                unprocessed[part.table] = {**part.wire, "Keys": list(part.keys[limit:])}
            limit = max(0, limit - len(part.keys))
        reply: BatchGot = handle(replace(request, tables=tuple(processed)))
        for table, more in reply.unprocessed.items():
            unprocessed[table] = {
                **more,
                "Keys": [*more["Keys"], *unprocessed.get(table, {}).get("Keys", [])],
            }
        return replace(reply, unprocessed=unprocessed)


def applies_to(act: FaultAction, request: Request[Any]) -> bool:
    """Whether a fault can hit a request."""
    return not (isinstance(act, PartialBatch) and act.covers(request))


def _entries(request: Request[Any]) -> int:
    if isinstance(request, BatchWriteItem):
        return sum(len(writes) for _, writes in request.tables)
    assert isinstance(request, BatchGetItem)
    return sum(len(part.keys) for part in request.tables)


def _wire(write: BatchPut | BatchDelete) -> dict[str, Any]:
    if isinstance(write, BatchPut):
        return {"PutRequest": {"Item": write.item}}
    return {"DeleteRequest": {"Key": write.key}}
