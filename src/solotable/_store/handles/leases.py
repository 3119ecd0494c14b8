"""Leases as they are held: blocking, and awaited. What they do is in `flows.leases`."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from solotable._flows.scope import Scope
from solotable._flows.traits import leases
from solotable._flows.traits.leases import HeldLease, LeaseTerms
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.runner import arun, run
from solotable.errors import LeaseLost


class LeaseState:
    """A lease, held or not."""

    def __init__(self, scope: Scope, terms: LeaseTerms, wait_seconds: float) -> None:
        self._scope = scope
        self._terms = terms
        self._wait_seconds = wait_seconds
        self._held: HeldLease | None = None

    @property
    def name(self) -> str:
        """The name of the lease."""
        return self._terms.name

    @property
    def owner(self) -> str:
        """The owner of the lease."""
        return self._terms.owner

    @property
    def held(self) -> HeldLease:
        """The state after the last acquire or renew; raises LeaseLost if the lease is not held."""
        if self._held is None:
            raise LeaseLost(
                f"Lease {self.name!r} is not held; acquire it first, or use it in a with block.",
                name=self.name,
                token=0,
            )
        return self._held

    @property
    def token(self) -> int:
        """The fencing token, which grows with every holder."""
        return self.held.token

    @property
    def is_valid(self) -> bool:
        """Whether the lease is held and has not expired on this process's clock."""
        return self._held is not None and self._scope.clock() < self._held.until

    def __repr__(self) -> str:
        state = "not held" if self._held is None else f"token {self._held.token}"
        return f"{type(self).__name__}({self.name!r}, {state})"


class Lease(LeaseState):
    """A lease: `with db.lease("nightly", seconds=30) as lease`."""

    def __init__(self, engine: Engine, scope: Scope, terms: LeaseTerms, *, wait_seconds: float) -> None:
        super().__init__(scope, terms, wait_seconds)
        self._engine = engine

    def acquire(self) -> Self:
        """Acquire the lease, or raise LeaseHeld."""
        flow = leases.acquire(self._scope, self._terms, wait_seconds=self._wait_seconds)
        self._held = run(flow, self._engine)
        return self

    def renew(self) -> Self:
        """Extend the lease to its full duration from now, or raise LeaseLost."""
        self._held = run(leases.renew(self._scope, self.held), self._engine)
        return self

    def release(self) -> None:
        """Release it; a lost lease is not an error."""
        if self._held is not None:
            held, self._held = self._held, None
            run(leases.release(self._scope, held), self._engine)

    def __enter__(self) -> Self:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class AsyncLease(LeaseState):
    """A lease: `async with db.lease("nightly", seconds=30) as lease`."""

    def __init__(self, engine: AsyncEngine, scope: Scope, terms: LeaseTerms, *, wait_seconds: float) -> None:
        super().__init__(scope, terms, wait_seconds)
        self._engine = engine

    async def acquire(self) -> Self:
        """Acquire the lease, or raise LeaseHeld."""
        flow = leases.acquire(self._scope, self._terms, wait_seconds=self._wait_seconds)
        self._held = await arun(flow, self._engine)
        return self

    async def renew(self) -> Self:
        """Extend the lease to its full duration from now, or raise LeaseLost."""
        self._held = await arun(leases.renew(self._scope, self.held), self._engine)
        return self

    async def release(self) -> None:
        """Release it; a lost lease is not an error."""
        if self._held is not None:
            held, self._held = self._held, None
            await arun(leases.release(self._scope, held), self._engine)

    async def __aenter__(self) -> Self:
        return await self.acquire()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.release()
