"""Asking an engine, with retries of what may be retried. Waiting is a request too.

What was perhaps applied is not sent again unless sending it twice does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from solotable._protocol.requests import (
    BatchGetItem,
    Control,
    GetItem,
    Query,
    Request,
    Scan,
    TransactGetItems,
    TransactWriteItems,
)
from solotable.errors import OutcomeUnknown, ServiceError, TableNotFound, TransportError

ResultT = TypeVar("ResultT")
ReplyT = TypeVar("ReplyT")

#: A flow: yields requests, gets replies, returns a result.
Flow = Generator[Request[Any], Any, ResultT]

_READS = (GetItem, Query, Scan, BatchGetItem, TransactGetItems)
_ATTEMPTS = 8
_FIRST_WAIT_SECONDS = 0.025
_LONGEST_WAIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Sleep(Request[None]):
    """Wait before the next request."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ConcurrentReads(Request[list[Any]]):
    """Reads that may be sent at once; each is answered by its reply, or by the error that refused it."""

    reads: tuple[Request[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a request is tried, and the dice for the waiting between."""

    random: Callable[[], float]
    attempts: int = _ATTEMPTS

    def wait(self, attempt: int) -> Sleep:
        """Return the wait before the attempt with this number: full jitter under a doubling ceiling."""
        ceiling: float = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
        return Sleep(self.random() * ceiling)


def send(request: Request[ReplyT], retries: Retries) -> Flow[ReplyT]:
    """Ask once, and again while the refusal will pass and the same request does no harm twice."""
    attempt = 0
    while True:
        try:
            reply: ReplyT = yield request
        except TableNotFound as refused:
            raise _named(request, refused) from refused
        except (ServiceError, TransportError) as refused:
            attempt += 1
            if attempt >= retries.attempts or not _may_repeat(request, refused):
                raise
        else:
            return reply
        yield retries.wait(attempt)


def _named(request: Request[Any], refused: TableNotFound) -> TableNotFound:
    """Return a refusal that names the table and says how it is made; DynamoDB's own names neither."""
    table = getattr(request, "table", None)
    if table is None:
        return refused
    index = getattr(request, "index", None)
    what = f"Table {table!r}" if index is None else f"Table {table!r} or its index {index!r}"
    message = f"{what} is not there; make it with `solotable schema apply`, or open another URL."
    named = TableNotFound(message)
    named.args = (message,)
    return named


def send_all(reads: Sequence[Request[ReplyT]], retries: Retries) -> Flow[list[ReplyT]]:
    """Ask several reads at once, and again those alone whose refusal will pass; replies in their order."""
    if len(reads) == 1:
        return [(yield from send(reads[0], retries))]
    replies: dict[int, ReplyT] = {}
    waiting = list(range(len(reads)))
    attempt = 0
    while waiting:
        if attempt:
            yield retries.wait(attempt)
        outcomes: list[Any] = yield ConcurrentReads(tuple(reads[number] for number in waiting))
        attempt += 1
        again = []
        for number, outcome in zip(waiting, outcomes, strict=True):
            if not isinstance(outcome, (ServiceError, TransportError)):
                replies[number] = outcome
            elif attempt >= retries.attempts or not _may_repeat(reads[number], outcome):
                raise outcome
            else:
                again.append(number)
        waiting = again
    return [replies[number] for number in range(len(reads))]


def _may_repeat(request: Request[Any], refused: ServiceError | TransportError) -> bool:
    if isinstance(refused, ServiceError):
        return refused.retryable and (refused.status < 500 or _harmless(request))
    return not isinstance(refused, OutcomeUnknown) or _harmless(request)


def _harmless(request: Request[Any]) -> bool:
    """Whether the request may be applied twice: a read, or a transaction under its token."""
    if isinstance(request, TransactWriteItems):
        return request.token is not None
    if isinstance(request, Control):
        return request.operation.startswith(("Describe", "Get", "List"))
    return isinstance(request, _READS)
