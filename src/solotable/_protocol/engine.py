"""The port that every engine implements, blocking or async, and what an engine declares about itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from solotable._values.lazy_dataclass import dataclass

from .error_texts import LATEST, ErrorTexts
from .heat import HeatLog
from .requests import Request

ReplyT = TypeVar("ReplyT")

#: Called before a step of a long request, with the bytes that the step reads. It may wait, so that other
#: requests run, or raise TooLong to end the request without an answer.
Pause = Callable[[int], None]


class TooLong(Exception):
    """A read takes longer than its caller allows; the same read can be made again, elsewhere."""


class Outcome(Protocol):
    """The outcome of one request of several."""

    def get(self) -> Any:
        """Return the reply, or raise the error."""
        ...


class AsyncEngine(Protocol):
    """Answers DynamoDB requests on an event loop."""

    async def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer one request, or raise the ServiceError that DynamoDB would."""
        ...

    async def sleep(self, seconds: float, /) -> None:
        """Wait before the next attempt of a flow."""
        ...

    async def close(self) -> None:
        """Release what the engine holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSnapshot:
    """The items of a table, all as of one commit."""

    #: Seconds since the epoch, by the engine's clock.
    time: float
    #: Each item as DynamoDB JSON, and its size in bytes as DynamoDB counts it.
    items: Iterator[tuple[bytes, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can do beside answering one request; the defaults fit any blocking engine."""

    #: Whether every answer takes microseconds, so that an event loop may call the engine itself.
    instant: bool = False
    #: Whether one item, or a small page, is read faster than a thread is woken.
    short_reads: bool = False
    #: Answer several requests, and commit their writes together.
    handle_together: Callable[[Sequence[Request[Any]]], Sequence[Outcome]] | None = None
    #: Return the engine for use with `await`, or None where it can only block.
    make_async: Callable[[], AsyncEngine | None] | None = None
    #: Wait in place of the runner: an engine of a test advances its clock.
    sleep: Callable[[float], None] | None = None
    #: Whether Amazon's own service answers, which throttles a partition; not a local server or a file.
    amazon: bool = False
    #: Return the seconds by which the server's clock is ahead of this machine's, as far as responses tell.
    clock_offset: Callable[[], float] | None = None
    #: The year of AWS's error texts that the engine answers with.
    error_texts: ErrorTexts = LATEST
    #: Return a context with a whole table, by name, in one snapshot.
    table_snapshot: Callable[[str], AbstractContextManager[TableSnapshot]] | None = None
    #: Return the traffic of partitions since a time in seconds since the epoch; None if it is not recorded.
    heat: Callable[[float], HeatLog | None] | None = None


class Engine(Protocol):
    """Answers DynamoDB requests, blocking."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine declares about itself."""
        return Capabilities()

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer one request, or raise the ServiceError that DynamoDB would."""
        ...

    def close(self) -> None:
        """Release what the engine holds."""
        ...


def capabilities_of(engine: Engine | AsyncEngine) -> Capabilities:
    """Return what an engine declares about itself; the defaults for an async one that declares nothing."""
    found: Capabilities = getattr(engine, "capabilities", None) or Capabilities()
    return found
