"""Send requests with retries. A wait is a request too.

After an unknown outcome, a write is sent again only if applying it twice has no further effect.
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


@dataclass(frozen=True, slots=True)
class SaveBlobs(Request[None]):
    """Store the contents of offloaded fields; the runner calls the storages."""

    #: The blob, its storage and the name of the object.
    blobs: tuple[tuple[Any, Any, str], ...]


@dataclass(frozen=True, slots=True)
class LoadKeys(Request[None]):
    """Fill the caches of subject keys; the runner calls the functions, which block."""

    loads: tuple[Callable[[], None], ...]


@dataclass(frozen=True, slots=True)
class WaitForTurns(Request[Any]):
    """Wait for the other writers of spaces in this process; the reply has `end()`, which ends the turns."""

    #: A text for each space.
    queues: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """The number of attempts of a request, and the source of randomness for the waits between them."""

    random: Callable[[], float]
    attempts: int = _ATTEMPTS

    def wait(self, attempt: int) -> Sleep:
        """Return the wait before an attempt: exponential backoff with full jitter."""
        ceiling: float = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
        return Sleep(self.random() * ceiling)


def send(request: Request[ReplyT], retries: Retries) -> Flow[ReplyT]:
    """Send a request; retry while its error is transient and a repetition is safe."""
    attempt = 0
    while True:
        try:
            reply: ReplyT = yield request
        except TableNotFound as error:
            raise _name_table(request, error) from error
        except (ServiceError, TransportError) as error:
            attempt += 1
            if attempt >= retries.attempts or not _may_repeat(request, error):
                raise
        else:
            return reply
        yield retries.wait(attempt)


def _name_table(request: Request[Any], error: TableNotFound) -> TableNotFound:
    """Return an error that names the table and how to create it, which DynamoDB's text does not."""
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
    """Send several reads at once and retry those with a transient error; replies keep the order."""
    if len(reads) == 1:
        return [(yield from send(reads[0], retries))]
    replies: dict[int, ReplyT] = {}
    pending = list(range(len(reads)))
    attempt = 0
    while pending:
        if attempt:
            yield retries.wait(attempt)
        outcomes: list[Any] = yield ConcurrentReads(tuple(reads[number] for number in pending))
        attempt += 1
        failed = []
        for number, outcome in zip(pending, outcomes, strict=True):
            if not isinstance(outcome, (ServiceError, TransportError)):
                replies[number] = outcome
            elif attempt >= retries.attempts or not _may_repeat(reads[number], outcome):
                raise outcome
            else:
                failed.append(number)
        pending = failed
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
