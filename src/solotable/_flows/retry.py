"""Send requests with retries. Waiting is a request too.

A write that may have been applied is sent again only if a second application has no effect.
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
    """Reads that may be sent at once; each gets its reply or its error."""

    reads: tuple[Request[Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often a request is attempted, and the randomness of the waits between."""

    random: Callable[[], float]
    attempts: int = _ATTEMPTS

    def wait(self, attempt: int) -> Sleep:
        """Return the wait before the attempt with this number: full jitter under a doubling ceiling."""
        ceiling: float = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
        return Sleep(self.random() * ceiling)


def send(request: Request[ReplyT], retries: Retries) -> Flow[ReplyT]:
    """Send a request, and again while its error passes and repeating it is safe."""
    attempt = 0
    while True:
        try:
            reply: ReplyT = yield request
        except TableNotFound as error:
            raise _named(request, error) from error
        except (ServiceError, TransportError) as error:
            attempt += 1
            if attempt >= retries.attempts or not _may_repeat(request, error):
                raise
        else:
            return reply
        yield retries.wait(attempt)


def _named(request: Request[Any], error: TableNotFound) -> TableNotFound:
    """Return an error that names the table and how to create it; DynamoDB's text does neither."""
    table = getattr(request, "table", None)
    if table is None:
        return error
    index = getattr(request, "index", None)
    what = f"Table {table!r}" if index is None else f"Table {table!r} or its index {index!r}"
    message = f"{what} does not exist; create it with `solotable schema apply`, or open another URL."
    named = TableNotFound(message)
    named.args = (message,)
    return named


def send_all(reads: Sequence[Request[ReplyT]], retries: Retries) -> Flow[list[ReplyT]]:
    """Send several reads at once, and those again whose error passes; replies in their order."""
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


def _may_repeat(request: Request[Any], error: ServiceError | TransportError) -> bool:
    if isinstance(error, ServiceError):
        return error.retryable and (error.status < 500 or _is_idempotent(request))
    return not isinstance(error, OutcomeUnknown) or _is_idempotent(request)


def _is_idempotent(request: Request[Any]) -> bool:
    """Return whether a request may be applied twice: a read, or a transaction with a token."""
    if isinstance(request, TransactWriteItems):
        return request.token is not None
    if isinstance(request, Control):
        return request.operation.startswith(("Describe", "Get", "List"))
    return isinstance(request, _READS)
