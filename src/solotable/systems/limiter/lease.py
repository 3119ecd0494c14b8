"""Leases: what a call has taken, until its block ends. Blocking and awaited.

Whatever ends the block with an exception, also a cancellation or an interrupt, gives everything back (C1.14).
A block that ends well writes what was adjusted and released, in one write for each bucket.

When the table cannot be asked, `on_unavailable` decides at both ends of the block: "block" raises
LimiterUnavailable, "allow" goes on without limits. An exception of the block itself is never replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

from solotable._flows.retry import Flow
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.runner import Inline, arun, run
from solotable.errors import DataError, EngineError, ServiceError, SolotableError, TransportError

from .admin.entities import OnUnavailable
from .admin.limits import MILLI, Amount, Limit, in_tokens, wanted
from .buckets.acquire import Grant, LimiterContext, acquire, adjust, back
from .errors import LeaseExpired, LimiterUnavailable, LimitStatus

ResultT = TypeVar("ResultT")

log = logging.getLogger("solotable.limiter")
#: What goes on after its caller was cancelled twice; a task that nobody holds may vanish.
_going_on: set[asyncio.Future[Any]] = set()


@dataclass(frozen=True, slots=True)
class AcquireRequest:
    """What a call asks for."""

    entity: str
    resource: str
    consume: Mapping[str, Amount]
    limits: Iterable[Limit] | None
    #: None: as the system's settings say, or the limiter's own.
    on_unavailable: OnUnavailable | None


def is_unavailable(error: BaseException) -> bool:
    """Whether an error says that the table could not be asked, and not that a call was wrong."""
    if isinstance(error, ServiceError):
        return error.retryable
    return isinstance(error, (TransportError, EngineError, LimiterUnavailable))


class _Lease:
    """What both kinds of leases know."""

    def __init__(self, context: LimiterContext, order: AcquireRequest) -> None:
        self._context = context
        self._order = order
        #: What was taken, the first for the call itself; none where no limits could be asked.
        self._grants: list[Grant] = []
        self._begun = self._open = False
        self._consumed: dict[str, int] = {}
        self._pending: dict[str, int] = {}

    @property
    def consumed(self) -> dict[str, float]:
        """What was taken so far, adjustments included, in tokens."""
        names = {**self._consumed, **self._pending}
        return {name: (self._consumed.get(name, 0) + self._pending.get(name, 0)) / MILLI for name in names}

    @property
    def limited(self) -> bool:
        """Whether limits were asked; not where the table could not be, and that is allowed."""
        return bool(self._grants)

    @property
    def grant(self) -> Grant | None:
        """What was taken and from where, for whoever settles it after the block; None without limits."""
        return self._grants[0] if self._grants else None

    @property
    def statuses(self) -> list[LimitStatus]:
        """Every limit of the call as it was left, and those of a parent that is charged too."""
        return self._grants[-1].statuses(self._context.writer.now()) if self._grants else []

    def adjust(self, **amounts: Amount) -> None:
        """Take more than was asked for, or less; never refused. Written when the block ends."""
        self._note(amounts, 1)

    def release(self, **amounts: Amount) -> None:
        """Give some back. Written when the block ends."""
        self._note(amounts, -1)

    def _note(self, amounts: Mapping[str, Amount], sign: int) -> None:
        self._judge_open()
        if not self._grants:
            return
        known = self._grants[0].taken[0].ask.rules.limits
        noted = dict(self._pending)
        for name, amount in wanted(known, amounts, signed=True).items():
            taken = self._consumed.get(name, 0) + noted.get(name, 0)
            if taken + sign * amount < 0:
                raise DataError(
                    f"This call has taken {in_tokens(taken)} {name}; no more than that can be given back."
                )
            noted[name] = noted.get(name, 0) + sign * amount
        self._pending = noted

    def _judge_open(self) -> None:
        if not self._open:
            raise LeaseExpired

    def _begin(self) -> Flow[Grant]:
        if self._begun:
            raise LeaseExpired
        self._begun = True
        return self._asking(self._order.consume)

    def _passes(self) -> bool:
        """Whether to go on without asking: nobody answered a moment ago, and that is allowed."""
        if not self._context.outage.is_on() or self._choice() != "allow" or self._begun:
            return False
        self._begun = True
        return True

    def _asking(self, amounts: Mapping[str, Amount]) -> Flow[Grant]:
        order = self._order
        return acquire(self._context, order.entity, order.resource, amounts, order.limits)

    def _began(self, grant: Grant | None) -> None:
        self._open = True
        if grant is not None:
            self._context.outage.end()
            self._took(grant)

    def _more(self, amounts: Mapping[str, Amount]) -> Flow[Grant] | None:
        self._judge_open()
        return self._asking(amounts) if self._grants else None

    def _took(self, grant: Grant) -> None:
        self._grants.append(grant)
        self._add(grant.amounts)

    def _add(self, amounts: Mapping[str, int]) -> None:
        for name, amount in amounts.items():
            self._consumed[name] = self._consumed.get(name, 0) + amount

    def _end(self, failed: bool) -> Flow[None] | None:
        """Return what is still to be written: everything back, or what was adjusted."""
        self._open = False
        pending, self._pending = self._pending, {}
        writer = self._context.writer
        if failed:
            self._consumed = {}
            return back(writer, self._grants) if self._grants else None
        self._add(pending)
        return adjust(writer, self._grants[0], pending) if any(pending.values()) else None

    def _allows(self, error: SolotableError) -> bool:
        """Whether to go on without limits; otherwise it is raised what a caller sees."""
        if not is_unavailable(error):
            raise error from None
        self._context.outage.note(error)
        if self._choice() == "allow":
            log.warning("The limiter is unavailable, and calls are allowed: %s", error)
            return True
        if isinstance(error, LimiterUnavailable):
            raise error
        raise LimiterUnavailable(
            f'The limiter\'s table could not be asked ({error}); try again, or choose on_unavailable="allow".'
        ) from error

    def _choice(self) -> OnUnavailable:
        return (
            self._order.on_unavailable or self._context.cache.on_unavailable or self._context.on_unavailable
        )


class Lease(_Lease):
    """What a call has taken: `with limiter.acquire(...) as lease`."""

    def __init__(self, engine: Engine, context: LimiterContext, order: AcquireRequest) -> None:
        super().__init__(context, order)
        self._engine = engine

    def __enter__(self) -> Self:
        try:
            self._began(None if self._passes() else run(self._begin(), self._engine))
        except SolotableError as error:
            self._allows(error)
            self._began(None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owed = self._end(failed=error is not None)
        if owed is None:
            return
        try:
            run(owed, self._engine)
        except SolotableError as trouble:
            if error is not None:
                error.add_note(f"The limiter could not take back what this call had taken: {trouble}")
                return
            self._allows(trouble)

    def consume(self, **amounts: Amount) -> None:
        """Take more, or raise RateLimitExceeded and take none of it."""
        flow = self._more(amounts)
        if flow is None:
            return
        try:
            self._took(run(flow, self._engine))
        except SolotableError as error:
            self._allows(error)


class AsyncLease(_Lease):
    """What a call has taken: `async with limiter.acquire(...) as lease`."""

    def __init__(self, engine: AsyncEngine, context: LimiterContext, order: AcquireRequest) -> None:
        super().__init__(context, order)
        self._engine = engine

    async def __aenter__(self) -> Self:
        try:
            if self._passes():
                self._began(None)
                return self
            grant = await self._whole(self._begin(), self._back)
        except SolotableError as error:
            self._allows(error)
            self._began(None)
        else:
            self._began(grant)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owed = self._end(failed=error is not None)
        if owed is None:
            return
        try:
            await self._whole(owed)
        except SolotableError as trouble:
            if error is not None:
                error.add_note(f"The limiter could not take back what this call had taken: {trouble}")
                return
            self._allows(trouble)

    async def consume(self, **amounts: Amount) -> None:
        """Take more, or raise RateLimitExceeded and take none of it."""
        flow = self._more(amounts)
        if flow is None:
            return
        try:
            taken = await self._whole(flow, self._back)
        except SolotableError as error:
            self._allows(error)
        else:
            self._took(taken)

    def _back(self, grant: Grant) -> Flow[None]:
        return back(self._context.writer, [grant])

    async def _whole(
        self, flow: Flow[ResultT], undo: Callable[[ResultT], Flow[None]] | None = None
    ) -> ResultT:
        """Run a flow to its end though the caller is cancelled meanwhile; then what it did is undone."""
        work: asyncio.Future[ResultT] | None = None
        try:
            if type(self._engine) is Inline:
                # It answers at once; only while a flow waits to ask again can anybody come between.
                return await arun(flow, self._engine)
            work = asyncio.ensure_future(arun(flow, self._engine))
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if work is None:
                work = asyncio.ensure_future(arun(flow, self._engine))
            if not work.cancelled():
                ending = asyncio.ensure_future(self._ended(work, undo))
                _going_on.add(ending)
                ending.add_done_callback(_going_on.discard)
                await asyncio.shield(ending)
            raise

    async def _ended(
        self, work: asyncio.Future[ResultT], undo: Callable[[ResultT], Flow[None]] | None
    ) -> None:
        try:
            done = await work
            if undo is not None:
                await arun(undo(done), self._engine)
        except SolotableError as error:
            log.warning("A cancelled call of the limiter could not be undone: %s", error)
