"""An engine that logs its last 1,000 requests with their units and time, for the page of requests.

The reply is the engine's own: units that the caller did not ask for are taken out of it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any, NamedTuple

from solotable._flows.consumption import Consumed, units_of
from solotable._protocol import replies
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.engine import Capabilities, Engine, Outcome, Pause
from solotable._protocol.json_codec import dumps
from solotable._protocol.requests import Control, Request
from solotable.errors import SolotableError

MOST_REQUESTS = 1_000
#: A larger request is listed, but cannot be sent again.
_LARGEST_KEPT_BYTES = 16 * 1024
_WRITES = frozenset(
    {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}
    | {"ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction"}
)
_PAGE: ContextVar[str] = ContextVar("solotable_console_page", default="")
#: The requests of a block, for the page that shows what they cost.
_COLLECTED: ContextVar[list[LoggedRequest] | None] = ContextVar("solotable_console_collected", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request: what it asked, what it cost, and how long it took."""

    id: int
    #: Seconds since the epoch.
    time: float
    operation: str
    tables: tuple[str, ...]
    index: str | None
    #: The page of the console that sent it; empty for a client of the server.
    page: str
    items: int
    scanned: int
    consumed: Consumed
    seconds: float
    error: str | None
    #: The members of the request; None if they are too large to keep.
    members: dict[str, Any] | None

    @property
    def is_write(self) -> bool:
        """Whether sending it again may change data."""
        return self.operation in _WRITES


class RequestLog:
    """The last requests, newest first, and the units of all requests since the start."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ids = count(1)
        self._kept: deque[LoggedRequest] = deque(maxlen=MOST_REQUESTS)
        self.started = clock()

    def add(self, request: Request[Any], reply: Any, seconds: float, error: str | None) -> LoggedRequest:
        """Log one request."""
        operation, members = encode_request(request)
        counted = _count(reply)
        found = LoggedRequest(
            id=next(self._ids),
            time=self._clock(),
            operation=operation,
            tables=tuple(dict.fromkeys(_tables(members))),
            index=getattr(request, "index", None),
            page=_PAGE.get(),
            items=counted.items,
            scanned=counted.scanned,
            consumed=units_of(request, reply) if reply is not None else Consumed(requests=1),
            seconds=seconds,
            error=error,
            members=members if len(dumps(members)) <= _LARGEST_KEPT_BYTES else None,
        )
        with self._lock:
            self._kept.append(found)
        collected = _COLLECTED.get()
        if collected is not None:
            collected.append(found)
        return found

    def newest(self, table: str | None = None, most: int = MOST_REQUESTS) -> list[LoggedRequest]:
        """Return the last requests, newest first; of one table if given."""
        with self._lock:
            kept = list(self._kept)
        return [each for each in reversed(kept) if table is None or table in each.tables][:most]

    def find(self, number: int) -> LoggedRequest | None:
        """Return a request by its number; None if it is no longer kept."""
        return next((each for each in self.newest() if each.id == number), None)

    def rates(self, now: float | None = None, last_seconds: float = 3600.0) -> tuple[float, float, float]:
        """Return read and write units a second over the kept requests, and the seconds that they span."""
        now = self._clock() if now is None else now
        recent = [each for each in self.newest() if each.time > now - last_seconds]
        if not recent:
            return 0.0, 0.0, 0.0
        begin = recent[-1].time if len(recent) == MOST_REQUESTS else max(self.started, now - last_seconds)
        span = max(now - begin, 1.0)
        rcu = sum(each.consumed.rcu for each in recent)
        return rcu / span, sum(each.consumed.wcu for each in recent) / span, span


class _Count(NamedTuple):
    items: int
    scanned: int


class LoggedEngine:
    """An engine whose data requests are logged; everything else is the inner engine's."""

    def __init__(self, engine: Engine, log: RequestLog) -> None:
        self.inner = engine
        self.log = log

    @property
    def capabilities(self) -> Capabilities:
        """What the inner engine declares, except that requests are sent one at a time."""
        return replace(self.inner.capabilities, handle_together=None, make_async=None)

    def handle(self, request: Request[Any], /) -> Any:
        """Answer and log one request."""
        return self._logged(request, self.inner.handle)

    def handle_small(self, request: Request[Any], largest: int, /) -> Any:
        """Answer and log a write, as the server sends it."""
        inner: Any = self.inner
        return self._logged(request, lambda sent: inner.handle_small(sent, largest))

    def handle_in_slices(self, request: Request[Any], pause: Pause, /) -> Any:
        """Answer and log a request, as the server sends it."""
        inner: Any = self.inner
        return self._logged(request, lambda sent: inner.handle_in_slices(sent, pause))

    def handle_together(
        self, requests: Sequence[Request[Any]], /, *, largest: int | None
    ) -> Sequence[Outcome]:
        """Answer requests together and log each with the time of all."""
        inner: Any = self.inner
        began = time.perf_counter()
        outcomes = inner.handle_together([_metered(each) for each in requests], largest=largest)
        seconds = time.perf_counter() - began
        return [
            _LoggedOutcome(self.log, request, outcome, seconds)
            for request, outcome in zip(requests, outcomes, strict=True)
        ]

    def close(self) -> None:
        """Close the inner engine."""
        self.inner.close()

    def __getattr__(self, name: str) -> Any:
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _logged(self, request: Request[Any], send: Callable[[Request[Any]], Any]) -> Any:
        if isinstance(request, Control):
            return send(request)
        began = time.perf_counter()
        try:
            reply = send(_metered(request))
        except SolotableError as error:
            self.log.add(
                request, None, time.perf_counter() - began, getattr(error, "code", type(error).__name__)
            )
            raise
        self.log.add(request, reply, time.perf_counter() - began, None)
        return _as_asked(request, reply)


class _LoggedOutcome:
    """The outcome of one request of several; it is logged when the server takes it."""

    def __init__(self, log: RequestLog, request: Request[Any], inner: Outcome, seconds: float) -> None:
        self._log, self._request, self._inner, self._seconds = log, request, inner, seconds

    def get(self) -> Any:
        """Return the reply, or raise the error."""
        try:
            reply = self._inner.get()
        except SolotableError as error:
            self._log.add(self._request, None, self._seconds, getattr(error, "code", type(error).__name__))
            raise
        self._log.add(self._request, reply, self._seconds, None)
        return _as_asked(self._request, reply)


@contextmanager
def page_of(name: str) -> Iterator[None]:
    """Log the requests of a block under the name of a page."""
    token = _PAGE.set(name)
    try:
        yield
    finally:
        _PAGE.reset(token)


@contextmanager
def collect_requests() -> Iterator[list[LoggedRequest]]:
    """Collect the requests that a block sends."""
    found: list[LoggedRequest] = []
    token = _COLLECTED.set(found)
    try:
        yield found
    finally:
        _COLLECTED.reset(token)


def _metered(request: Request[Any]) -> Request[Any]:
    if getattr(request, "capacity", None) != "NONE":
        return request
    return replace(request, capacity="INDEXES")  # type: ignore[type-var]  # a record


def _as_asked(request: Request[Any], reply: Any) -> Any:
    if getattr(request, "capacity", None) != "NONE":
        return reply
    if isinstance(reply, dict):
        return {name: value for name, value in reply.items() if name != "ConsumedCapacity"}
    if any(each.name == "capacity" for each in fields(reply)):
        return replace(reply, capacity=None)
    return reply


def _count(reply: Any) -> _Count:
    match reply:
        case replies.Page(count=counted, scanned=scanned):
            return _Count(counted, scanned)
        case replies.GotItem(item=item):
            return _Count(int(item is not None), int(item is not None))
        case replies.WroteItem():
            return _Count(1, 0)
        case replies.BatchGot(responses=responses):
            found = sum(len(each) for each in responses.values())
            return _Count(found, found)
        case _:
            return _Count(0, 0)


def _tables(members: Any) -> Iterator[str]:
    """Yield the tables that a request names, in its members or in its parts."""
    if isinstance(members.get("TableName"), str):
        yield members["TableName"]
        return
    yield from members.get("RequestItems", ())
    for each in members.get("TransactItems", ()):
        for part in each.values():
            yield part["TableName"]
