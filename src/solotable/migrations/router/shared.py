"""What blocking and asyncio routers share: their sides, their scopes, and the steps of each operation."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, TypeVar

from solotable._flows.retry import Flow, Sleep
from solotable._flows.scope import Scope
from solotable._protocol.requests import Request
from solotable.migrations.migration import Migration

from .dispatch.dispatcher import Dispatcher, Pauses, Place, Reading, Served, Step, Steps, on_side, only_reads
from .dispatch.routing import Routing, SideName, other_side
from .dispatch.routing_source import RoutingSource
from .mirror import Mirror, MirrorReport, is_same

AdapterT = TypeVar("AdapterT")
ResultT = TypeVar("ResultT")

#: The side of tenants that the migration does not move.
_UNMOVED: SideName = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterOptions:
    """How a router behaves; the defaults fit an application."""

    #: How long this process relies on the routing record that it read; `switch-writes` waits as long.
    lease_seconds: float = 1.0
    #: How long a write waits for a switch before it raises WritesPaused.
    wait_seconds: float = 30.0
    #: Whether every write carries the check of the fence, not only those during a switch.
    always_check: bool = False
    #: The tenants that move; None for all. Other tenants stay on the source.
    tenants: Collection[str] | None = None
    #: The wait before a difference of a mirrored read is read again.
    settle_seconds: float = 1.0
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)


@dataclass(frozen=True, slots=True)
class RouterStatus:
    """What a router has seen in this process."""

    epoch: int
    state: str
    writes: SideName
    pauses: Pauses
    mirror: MirrorReport


class RouterParts(Generic[AdapterT]):
    """The parts of a router; one object serves all tenants and threads."""

    def __init__(
        self,
        migration: Migration,
        adapters: Mapping[SideName, Callable[[Scope], AdapterT]],
        databases: Mapping[SideName, Any],
        options: RouterOptions,
    ) -> None:
        self.dispatcher = Dispatcher(
            RoutingSource.of(migration),
            clock=options.clock,
            lease_seconds=options.lease_seconds,
            wait_seconds=options.wait_seconds,
            always_check=options.always_check,
            random=options.random,
        )
        self.mirror = Mirror()
        self.options = options
        self._adapters = adapters
        # A side without entities is an engine, whose adapter gets the scope of the target.
        target: Scope = databases["target"].scope
        self._scopes = {side: getattr(each, "scope", target) for side, each in databases.items()}
        engines = {side: getattr(each, "engine", each) for side, each in databases.items()}
        self.engines: dict[Place, Any] = {
            "source": engines["source"],
            "target": engines["target"],
            "control": engines["target"],
        }

    def scope(self, side: SideName, tenant: str | None) -> Scope:
        """Return the scope of a tenant on one side."""
        scope = self._scopes[side]
        return scope if tenant is None else scope.of_tenant(tenant)

    def adapter(self, side: SideName, tenant: str | None) -> AdapterT:
        """Return the application's adapter of a side, for one tenant."""
        return self._adapters[side](self.scope(side, tenant))

    def moves(self, tenant: str | None) -> bool:
        """Return whether the migration moves a tenant."""
        return self.options.tenants is None or tenant in self.options.tenants

    def write(self, tenant: str | None, run: Callable[[AdapterT], Flow[ResultT]]) -> Steps[ResultT]:
        """Return the steps of a write."""
        if not self.moves(tenant):
            return on_side(_UNMOVED, run(self.adapter(_UNMOVED, tenant)))
        return self.dispatcher.write(lambda side: run(self.adapter(side, tenant)))

    def read(
        self, tenant: str | None, run: Callable[[AdapterT], Flow[ResultT]], reading: Reading
    ) -> Steps[Served[ResultT]]:
        """Return the steps of a read."""
        if not self.moves(tenant):
            return self._read_unmoved(tenant, run)
        return self.dispatcher.read(lambda side: run(self.adapter(side, tenant)), reading)

    def _read_unmoved(
        self, tenant: str | None, run: Callable[[AdapterT], Flow[ResultT]]
    ) -> Steps[Served[ResultT]]:
        flow = only_reads(run(self.adapter(_UNMOVED, tenant)))
        result = yield from on_side(_UNMOVED, flow)
        return Served(result, _UNMOVED, 0.0, self.routing)

    def is_mirrored(self, tenant: str | None, served: Served[Any], reading: Reading) -> bool:
        """Return whether a served read is to be repeated on the other side."""
        routing = served.routing
        if not routing.mirror_percent or routing.has_ended or reading.side or not self.moves(tenant):
            return False
        chosen = self.options.random.random() * 100 < routing.mirror_percent
        return chosen and self.mirror.admit()

    def compare(
        self,
        tenant: str | None,
        run: Callable[[AdapterT], Flow[Any]],
        served: Served[Any],
        described: str,
    ) -> Steps[None]:
        """Read on the other side and compare; read both again before a difference counts."""
        clock = self.options.clock
        other = other_side(served.side)

        def read(side: SideName) -> Steps[Any]:
            return on_side(side, only_reads(run(self.adapter(side, tenant))))

        try:
            started = clock()
            mirrored = yield from read(other)
            self.mirror.timed(clock() - started - served.seconds)
            if is_same(served.result, mirrored):
                return
            yield Step("control", Sleep(self.options.settle_seconds))
            again = yield from read(served.side)
            mirrored = yield from read(other)
            if is_same(again, mirrored):
                self.mirror.lags()
            else:
                self.mirror.differs(described)
        except Exception as error:  # noqa: BLE001 - a mirrored read never fails the application
            self.mirror.fails(error)
        finally:
            self.mirror.done()

    @property
    def routing(self) -> Routing:
        """The routing that was read last."""
        return self.dispatcher.route.known or Routing()

    def status(self) -> RouterStatus:
        """Return what this process has seen."""
        routing = self.routing
        return RouterStatus(
            routing.epoch, routing.state, routing.writes, self.dispatcher.pauses, self.mirror.report
        )


def once(request: Request[Any]) -> Flow[Any]:
    """Return the flow of one request."""
    return (yield request)
