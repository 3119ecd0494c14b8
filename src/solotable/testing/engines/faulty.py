"""An engine that goes wrong as declared, and what each fault looks like to whoever asks.

The errors are those that a real engine raises, with Amazon's words where Amazon says them.
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

from .layer import Layer

Answer = Callable[[Request[Any]], Any]
#: Steps in between a request and its answer.
Act = Callable[[Answer, Request[Any]], Any]

_READS: Final = (GetItem, Query, Scan, BatchGetItem, TransactGetItems)
_ONGOING: Final = "Transaction is ongoing for the item"


class Striking(Protocol):
    """A fault that is to strike."""

    @property
    def act(self) -> Act:
        """What then happens."""


class Plan(Protocol):
    """Says which faults strike a request."""

    def due(self, request: Request[Any], /) -> Iterable[Striking]:
        """Give the faults that strike."""


class FaultyEngine(Layer):
    """Answers as the engine inside does, except where a fault strikes."""

    def __init__(self, engine: Engine, faults: Plan) -> None:
        super().__init__(engine)
        self.faults = faults

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request, or go wrong."""
        answer: Answer = self.inner.handle
        for fault in self.faults.due(request):
            answer = partial(fault.act, answer)
        return answer(request)


def throttle(_answer: Answer, _request: Request[Any]) -> NoReturn:
    """Refuse for want of capacity."""
    raise Throttled(
        "ProvisionedThroughputExceededException",
        "The level of configured provisioned throughput for the table was exceeded. "
        "Consider increasing your provisioning level with the UpdateTable API.",
    )


def internal_error(_answer: Answer, _request: Request[Any]) -> NoReturn:
    """Answer with a 500, nothing done."""
    raise ServiceError("InternalServerError", "Internal server error", status=500)


def internal_error_after(answer: Answer, request: Request[Any]) -> NoReturn:
    """Do it, then answer with a 500."""
    answer(request)
    internal_error(answer, request)


def unreachable(_answer: Answer, _request: Request[Any]) -> NoReturn:
    """Take no connection."""
    raise TransportError("The endpoint took no connection (a fault of this test); nothing was sent.")


def timeout_before(_answer: Answer, request: Request[Any]) -> NoReturn:
    """Lose the request on its way."""
    if isinstance(request, _READS):
        raise TransportError("The endpoint gave no answer in time (a fault of this test).")
    token = isinstance(request, TransactWriteItems | ExecuteTransaction) and request.token is not None
    raise OutcomeUnknown(
        "The endpoint was sent a write and gave no answer in time (a fault of this test): "
        "it may have been done.",
        retryable=token,
    )


def timeout_after(answer: Answer, request: Request[Any]) -> NoReturn:
    """Do it, then lose the answer."""
    answer(request)
    timeout_before(answer, request)


def transaction_conflict(_answer: Answer, request: Request[Any]) -> NoReturn:
    """Refuse because of another transaction."""
    if isinstance(request, TransactWriteItems | TransactGetItems):
        others = len(request.actions if isinstance(request, TransactWriteItems) else request.gets) - 1
        conflict = {"Code": "TransactionConflict", "Message": _ONGOING}
        raise TransactionCancelled([conflict, *({"Code": "None"} for _ in range(others))])
    raise ServiceError("TransactionConflictException", _ONGOING)


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """Does the first entries of a batch, or half of them, and hands back the rest."""

    processed: int | None

    def __call__(self, answer: Answer, request: Request[Any]) -> Any:
        """Answer a part."""
        if isinstance(request, BatchWriteItem):
            return self._write(answer, request)
        assert isinstance(request, BatchGetItem)
        return self._get(answer, request)

    def spares(self, request: Request[Any]) -> bool:
        """Whether nothing would be left over."""
        return self._split(_entries(request)) >= _entries(request)

    def _split(self, entries: int) -> int:
        return max(1, entries // 2) if self.processed is None else self.processed

    def _write(self, answer: Answer, request: BatchWriteItem) -> BatchWrote:
        room = self._split(_entries(request))
        kept: list[tuple[str, tuple[BatchPut | BatchDelete, ...]]] = []
        left: dict[str, list[dict[str, Any]]] = {}
        for table, writes in request.tables:
            if writes[:room]:
                kept.append((table, writes[:room]))
            if writes[room:]:
                left[table] = [_wire(write) for write in writes[room:]]
            room = max(0, room - len(writes))
        reply: BatchWrote = answer(replace(request, tables=tuple(kept)))
        for table, more in reply.unprocessed.items():
            left[table] = [*more, *left.get(table, [])]
        return replace(reply, unprocessed=left)

    def _get(self, answer: Answer, request: BatchGetItem) -> BatchGot:
        room = self._split(_entries(request))
        kept: list[TableKeys] = []
        left: dict[str, dict[str, Any]] = {}
        for part in request.tables:
            if part.keys[:room]:
                kept.append(replace(part, keys=part.keys[:room]))
            if part.keys[room:]:
                left[part.table] = {**part.wire, "Keys": list(part.keys[room:])}
            room = max(0, room - len(part.keys))
        reply: BatchGot = answer(replace(request, tables=tuple(kept)))
        for table, more in reply.unprocessed.items():
            left[table] = {**more, "Keys": [*more["Keys"], *left.get(table, {}).get("Keys", [])]}
        return replace(reply, unprocessed=left)


def fits(act: Act, request: Request[Any]) -> bool:
    """Whether a fault can strike a request of its kind."""
    return not (isinstance(act, PartialBatch) and act.spares(request))


def _entries(request: Request[Any]) -> int:
    if isinstance(request, BatchWriteItem):
        return sum(len(writes) for _, writes in request.tables)
    assert isinstance(request, BatchGetItem)
    return sum(len(part.keys) for part in request.tables)


def _wire(write: BatchPut | BatchDelete) -> dict[str, Any]:
    if isinstance(write, BatchPut):
        return {"PutRequest": {"Item": write.item}}
    return {"DeleteRequest": {"Key": write.key}}
