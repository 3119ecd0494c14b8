"""How a router reads, writes and waits: generators of steps, each a request to one side.

One definition serves blocking and asyncio routers. The generators read the clock that they are given; the
routers send the requests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Generic, Literal, TypeVar

from solotable._flows.retry import Flow, Sleep
from solotable._protocol.requests import Request
from solotable.errors import DataError, OutcomeUnknown, TableNotFound, WritesPaused
from solotable.flow import decode_item

from .cursors import check_side
from .fence import FenceMet, is_open, is_write, send_fenced
from .routing import Routing, SideName
from .routing_source import RoutingSource

ResultT = TypeVar("ResultT")

#: The side that answers a step, or the engine of the control record.
Place = Literal["source", "target", "control"]
#: The pause between two looks at a switch that a write waits for.
POLL_SECONDS = 0.02
#: Share of the lease after which one caller renews it, so that the others need not wait.
_RENEW_AFTER = 0.6
#: Pauses that the statistics keep.
_MOST_PAUSES = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """A request to one side."""

    place: Place
    request: Request[Any]


#: A generator of steps: what a router runs.
Steps = Generator[Step, Any, ResultT]
#: Builds the flow of an operation on a side; called again when the operation moves to the other side.
Operation = Callable[[SideName], Flow[ResultT]]


@dataclass(frozen=True, slots=True)
class Served(Generic[ResultT]):
    """The result of a read, the side that served it, and the seconds it took."""

    result: ResultT
    side: SideName
    seconds: float
    routing: Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What decides about the side of a read."""

    entity: str | None
    sticky: str
    consistent: bool = False
    #: The side of the cursor that the read continues.
    side: SideName | None = None

    def of_tenant(self, tenant: str | None) -> Reading:
        """Return the same with the tenant as what keeps it on one side, if there is one."""
        return self if tenant is None else replace(self, sticky=tenant)


@dataclass(slots=True)
class Pauses:
    """How long writes waited for a switch, in seconds."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_MOST_PAUSES))

    def percentile(self, share: float) -> float:
        """Return the pause that this share of the waiting writes did not exceed; 0 without any."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Route:
    """The routing record as this process knows it, and the lease for which it may rely on it."""

    def __init__(self, source: RoutingSource, *, clock: Callable[[], float], lease_seconds: float) -> None:
        self._source = source
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._known: tuple[Routing, float] | None = None
        self._renewing_until = 0.0

    @property
    def known(self) -> Routing | None:
        """The routing that was read last, however long ago."""
        return None if self._known is None else self._known[0]

    @property
    def is_valid(self) -> bool:
        """Whether the lease lasts."""
        return self._known is not None and self._clock() < self._known[1] + self._lease_seconds

    def current(self) -> Steps[Routing]:
        """Return the routing; read it again if the lease has ended, or soon will."""
        if self._known is None or not self.is_valid:
            return (yield from self.read())
        routing, read_at = self._known
        now = self._clock()
        if now > read_at + _RENEW_AFTER * self._lease_seconds and now > self._renewing_until:
            # One caller renews. If two do, both are right.
            self._renewing_until = now + self._lease_seconds
            return (yield from self.read())
        return routing

    def read(self) -> Steps[Routing]:
        """Read the routing record now."""
        asked = self._clock()
        try:
            reply = yield Step("control", self._source.request)
        except TableNotFound:
            # Before the first migration of a database the control table does not exist.
            routing = self._source.decode(None)
        else:
            routing = self._source.decode(reply.item)
        if self._known is None or asked >= self._known[1]:
            self._known = (routing, asked)
        return routing


class Dispatcher:
    """The steps of reads and writes; knows no side's items, and sends nothing."""

    def __init__(
        self,
        source: RoutingSource,
        *,
        clock: Callable[[], float],
        lease_seconds: float = 1.0,
        wait_seconds: float = 30.0,
        always_check: bool = False,
        random: Random | None = None,
    ) -> None:
        self.source = source
        self.route = Route(source, clock=clock, lease_seconds=lease_seconds)
        self.pauses = Pauses()
        self.random = random or Random()  # noqa: S311 - spreads load, protects nothing
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._always_check = always_check

    def write(self, operation: Operation[ResultT]) -> Steps[ResultT]:
        """Run an operation on the side that takes writes; wait while a switch has closed it."""
        met: float | None = None
        while True:
            routing = yield from self.route.current()
            try:
                result = yield from self._write_on(routing.writes, operation(routing.writes), routing.flips)
            except FenceMet as fence:
                if met is None:
                    met = self._clock()
                else:
                    # The record says that the side is open, and its fences follow.
                    yield self._poll()
                yield from self._wait(met, fence)
                continue
            if met is not None:
                self.pauses.seconds.append(self._clock() - met)
            return result

    def read(self, operation: Operation[ResultT], reading: Reading) -> Steps[Served[ResultT]]:
        """Run an operation that reads, on the side that the routing record names for it."""
        while True:
            if reading.consistent or self.route.known is None:
                routing = yield from self.route.current()
            else:
                routing = yield from self._eventual()
            check_side(reading.side, routing, consistent=reading.consistent)
            side = reading.side or routing.read_side(
                reading.entity, reading.sticky, consistent=reading.consistent
            )
            started = self._clock()
            result = yield from on_side(side, only_reads(operation(side)))
            seconds = self._clock() - started
            if not reading.consistent:
                return Served(result, side, seconds, routing)
            if self.route.is_valid and not routing.is_switching:
                return Served(result, side, seconds, routing)
            # The write side may have changed while the read was under way.
            now = yield from self.route.read()
            if now.flips == routing.flips:
                return Served(result, side, seconds, routing)

    def _eventual(self) -> Steps[Routing]:
        """Return the routing for a read that may lag: the last known one if the record cannot be read."""
        known = self.route.known
        try:
            return (yield from self.route.current())
        except Exception:
            if known is None:
                raise
            return known

    def _write_on(self, side: SideName, flow: Flow[ResultT], flips: int) -> Steps[ResultT]:
        """Drive a flow on one side, and check before each write that the side still takes writes."""

        def send(request: Request[Any]) -> Steps[Any]:
            if not is_write(request):
                return (yield Step(side, request))
            routing = yield from self.route.current()
            if routing.flips != flips or routing.writes != side:
                raise FenceMet("The writes moved to the other side.")
            if routing.is_switching:
                guarded = send_fenced(request, lambda actions: self.source.guard(side, actions))
                return (yield from on_side(side, guarded))
            if self._always_check and routing.flips_possible:
                return (yield from on_side(side, send_fenced(request, lambda _: [self.source.check(side)])))
            return (yield from self._send_unchecked(side, request, flips))

        return (yield from drive(flow, send))

    def _send_unchecked(self, side: SideName, request: Request[Any], flips: int) -> Steps[Any]:
        """Send a write without a check; if its lease ended on the way, make sure that the side was open."""
        reply = yield Step(side, request)
        if self.route.is_valid:
            return reply
        routing = yield from self.route.read()
        if routing.flips == flips and (not routing.is_switching or (yield from self._is_open(side))):
            return reply
        raise OutcomeUnknown(
            f"The reply of a write to the {side} came after the lease of its route, and the writes moved to "
            f"the other side in between; read the item before you write it again."
        )

    def _is_open(self, side: SideName) -> Steps[bool]:
        reply = yield Step(side, self.source.fences[side])
        return is_open(None if reply.item is None else decode_item(reply.item))

    def _wait(self, since: float, fence: FenceMet) -> Steps[None]:
        """Wait until no switch is under way, or raise WritesPaused."""
        while True:
            routing = yield from self.route.read()
            waited = self._clock() - since
            if waited > self._wait_seconds:
                raise WritesPaused(
                    f"A switch of the migration has stopped writes for {waited:.1f} s; nothing was written. "
                    f"Try again, or see `solotable migrate status`.",
                    seconds=waited,
                ) from fence
            if not routing.is_switching:
                return
            yield self._poll()

    def _poll(self) -> Step:
        return Step("control", Sleep(POLL_SECONDS * (0.5 + self.random.random())))


def drive(
    flow: Flow[ResultT], send: Callable[[Request[Any]], Generator[Any, Any, Any]]
) -> Generator[Any, Any, ResultT]:
    """Run a flow; `send` performs each of its requests. FenceMet ends the flow, other errors go into it."""
    reply: Any = None
    error: Exception | None = None
    while True:
        try:
            request = flow.send(reply) if error is None else flow.throw(error)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # a generator's result has no type here
        reply = error = None
        try:
            reply = yield from send(request)
        except FenceMet:
            flow.close()
            raise
        except Exception as raised:  # noqa: BLE001 - the flow decides
            error = raised


def on_side(side: SideName, flow: Flow[ResultT]) -> Steps[ResultT]:
    """Run a flow on one side, as it is."""
    return drive(flow, lambda request: _to(side, request))


def only_reads(flow: Flow[ResultT]) -> Flow[ResultT]:
    """Run a flow that may only read; raise DataError in it before it writes."""
    return drive(flow, _read_only)


def _to(side: SideName, request: Request[Any]) -> Steps[Any]:
    return (yield Step(side, request))


def _read_only(request: Request[Any]) -> Flow[Any]:
    if is_write(request):
        raise DataError(f"read() got an operation that sends {type(request).__name__}; use write().")
    return (yield request)
