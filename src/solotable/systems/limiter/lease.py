"""Leases: what a call has taken, until its block ends. Blocking and asyncio.

An exception that ends the block, also a cancellation or an interrupt, gives everything back (C1.14). A block
that ends without one writes what was adjusted and released, in one write per bucket.

When the table is unavailable, `on_unavailable` decides at both ends of the block: "block" raises
LimiterUnavailable, "allow" continues without limits. An exception of the block itself is never replaced.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar, get_args

from solotable.errors import DataError, SolotableError
from solotable.flow import AsyncEngine, Engine, Flow, arun, is_instant, run

from .admin.entities import OnUnavailable, check_on_unavailable
from .admin.limits import MICROSECONDS, MILLI, Amount, Limit, amounts_by_limit, in_tokens
from .admin.names import shorten
from .buckets.acquire import (
    Grant,
    LimiterContext,
    acquire,
    adjust,
    extend,
    give_back,
    merge,
    release_holds,
)
from .buckets.targets import UnknownLimits
from .errors import LeaseExpired, LimiterUnavailable, LimitStatus, is_unavailable
from .observe.observation import observe_acquire, observe_outage
from .records import record

ResultT = TypeVar("ResultT")

log = logging.getLogger("solotable.limiter")
#: Work that continues after its caller was cancelled. The event loop itself keeps only weak references.
_background: set[asyncio.Future[Any]] = set()
_UNKNOWN_LIMITS = get_args(UnknownLimits)


@record(frozen=True, slots=True)
class AcquireRequest:
    """The arguments of an acquire."""

    entity: str
    resource: str
    consume: Mapping[str, Amount]
    limits: Iterable[Limit] | None = None
    #: None: as the system's settings, or the limiter's.
    on_unavailable: OnUnavailable | None = None
    #: What to take from other resources.
    also: Mapping[str, Mapping[str, Amount]] | None = None
    #: "ignore" takes nothing from limits that do not exist, and logs their names.
    unknown_limits: UnknownLimits = "raise"

    def __post_init__(self) -> None:
        if self.unknown_limits not in _UNKNOWN_LIMITS:
            raise DataError(f'unknown_limits is "raise" or "ignore"; got {self.unknown_limits!r}.')
        if self.on_unavailable is not None:
            check_on_unavailable(self.on_unavailable)
        if type(self.consume) is not dict and not isinstance(self.consume, Mapping):
            raise DataError(
                f'consume has amounts by limit, such as {{"rpm": 1}}; got {shorten(self.consume)}.'
            )
        if self.also and self.resource in self.also:
            raise DataError(
                f"also= names {self.resource!r}, the resource of the call; give both amounts in consume."
            )

    @property
    def by_resource(self) -> dict[str, Mapping[str, Amount]]:
        """What to take from each resource, the call's own first."""
        return {self.resource: self.consume, **self.also} if self.also else {self.resource: self.consume}

    def digest(self) -> str:
        """Return the same text for the same request."""
        limits = None if self.limits is None else sorted(map(str, self.limits))
        amounts = sorted((name, str(amount)) for name, amount in self.consume.items())
        parts: list[Any] = [self.entity, self.resource, amounts, limits]
        if self.also:
            parts.append(
                sorted(
                    (resource, sorted((name, str(amount)) for name, amount in each.items()))
                    for resource, each in self.also.items()
                )
            )
        text = json.dumps(parts)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


async def _logged(work: Awaitable[Any]) -> None:
    try:
        await work
    except Exception:
        log.exception("A callback of the limiter failed")


class LeaseState:
    """What both kinds of leases share."""

    def __init__(self, context: LimiterContext, request: AcquireRequest) -> None:
        self._context = context
        self._request = request
        #: What was taken, the first by the acquire itself; empty without limits.
        self._grants: list[Grant] = []
        self._started = self._is_open = False
        #: Whether what it holds of concurrency limits outlives the block: a stored lease ends it later.
        self.keeps_holds = False
        #: By resource and limit, in thousandths of a token.
        self._consumed: dict[str, dict[str, int]] = {}
        self._pending: dict[str, dict[str, int]] = {}

    @property
    def consumed(self) -> dict[str, float]:
        """What was taken so far from the call's resource, adjustments included, in tokens."""
        return self.consumed_of(self._request.resource)

    def consumed_of(self, resource: str) -> dict[str, float]:
        """Return what was taken so far from a resource, adjustments included, in tokens."""
        done, pending = self._consumed.get(resource, {}), self._pending.get(resource, {})
        return {name: (done.get(name, 0) + pending.get(name, 0)) / MILLI for name in {**done, **pending}}

    @property
    def limited(self) -> bool:
        """Whether limits apply; not if they are disabled or bypassed, or the table was unavailable."""
        return self.grant is not None

    @property
    def grant(self) -> Grant | None:
        """What was taken and from which buckets, for a settlement after the block; None without limits."""
        return self._grants[0] if self._grants and self._grants[0].taken else None

    @property
    def statuses(self) -> list[LimitStatus]:
        """Every limit after the last charge, and those of a parent that is charged too."""
        return self._grants[-1].statuses(self._context.writer.now()) if self._grants else []

    @property
    def exceeded(self) -> list[LimitStatus]:
        """The soft limits that had too few tokens; the call was admitted all the same."""
        return [status for grant in self._grants for status in grant.exceeded]

    @property
    def shadow_refusal(self) -> SolotableError | None:
        """The error that the call would have got if a level were not in shadow mode."""
        return next((grant.spared for grant in self._grants if grant.spared is not None), None)

    def adjust(
        self,
        amounts: Mapping[str, Amount] | None = None,
        /,
        *,
        resource: str | None = None,
        **by_name: Amount,
    ) -> None:
        """Take more than was asked for, or less; never refused. Written when the block ends."""
        self._note({**(amounts or {}), **by_name}, 1, resource)

    def release(
        self,
        amounts: Mapping[str, Amount] | None = None,
        /,
        *,
        resource: str | None = None,
        **by_name: Amount,
    ) -> None:
        """Give some back. Written when the block ends."""
        self._note({**(amounts or {}), **by_name}, -1, resource)

    def _note(self, amounts: Mapping[str, Amount], sign: int, resource: str | None) -> None:
        if not self._is_open:
            raise LeaseExpired
        if not self._grants:
            return
        of = resource or self._request.resource
        asked = self._grants[0].amounts
        if not any(of in grant.amounts for grant in self._grants):
            raise DataError(f"This call takes nothing from {of!r}; it takes from {', '.join(asked)}.")
        known = set[str]().union(*(grant.names(of) for grant in self._grants))
        if not known:
            return
        if self._request.unknown_limits == "ignore" and (unknown := amounts.keys() - known):
            self._ignore((of, name) for name in unknown)
            amounts = {name: amount for name, amount in amounts.items() if name in known}
        pending, done = dict(self._pending.get(of, {})), self._consumed.get(of, {})
        for name, amount in amounts_by_limit(known, amounts, signed=True).items():
            taken = done.get(name, 0) + pending.get(name, 0)
            if taken + sign * amount < 0:
                raise DataError(
                    f"This call has taken {in_tokens(taken)} {name}; it cannot give back more than that."
                )
            pending[name] = pending.get(name, 0) + sign * amount
        self._pending[of] = pending

    def _start(self) -> Flow[Grant] | None:
        """Return the acquire; None to continue without limits, as the table did not respond a moment ago."""
        if self._started:
            raise LeaseExpired
        self._started = True
        if self._context.circuit_breaker.is_open and self._choice() == "allow":
            if self._context.observer is not None:
                observe_outage(self._context.observer, self._request.resource)
            return None
        return self._acquire(self._request.by_resource)

    def _acquire(self, amounts: Mapping[str, Mapping[str, Amount]]) -> Flow[Grant]:
        request = self._request
        # Limits of the call are those of its resource.
        limits = request.limits if request.resource in amounts else None
        flow = acquire(self._context, request.entity, amounts, limits, unknown_limits=request.unknown_limits)
        observer = self._context.observer
        return flow if observer is None else observe_acquire(observer, next(iter(amounts)), flow)

    def _open(self, grant: Grant | None) -> None:
        self._is_open = True
        if grant is not None:
            self._context.circuit_breaker.record_success()
            self._add(grant)

    def _take_more(self, amounts: Mapping[str, Amount], resource: str | None) -> Flow[Grant] | None:
        if not self._is_open:
            raise LeaseExpired
        return self._acquire({resource or self._request.resource: amounts}) if self._grants else None

    def _add(self, grant: Grant) -> None:
        self._grants.append(grant)
        self._count(grant.amounts)
        if grant.ignored:
            self._ignore(grant.ignored)
        if grant.exceeded:
            self._call(self._context.on_soft_limit, list(grant.exceeded))
        if grant.spared is not None:
            self._call(self._context.on_shadow_refusal, grant.spared)

    def _ignore(self, limits: Iterable[tuple[str, str]]) -> None:
        """Log limits that do not exist, each of an entity once a minute."""
        warned, entity = self._context.warned, self._request.entity
        for resource, name in limits:
            if warned.get((entity, resource, name)) is None:
                warned.put((entity, resource, name), True)
                log.warning("%r has no limit %r for %r; nothing was taken from it.", entity, name, resource)

    def _call(self, callback: Callable[[Any], Any] | None, given: Any) -> None:
        """Call a callback of the limiter's owner; the call that it is about never fails by it."""
        if callback is None:
            return
        try:
            self._await(callback(given))
        except Exception:
            log.exception("A callback of the limiter failed")

    def _await(self, result: Any) -> None:
        """Finish what a callback returned."""

    def _count(self, amounts: Mapping[str, Mapping[str, int]]) -> None:
        for resource, by_name in amounts.items():
            total = self._consumed.get(resource)
            if total is None:
                self._consumed[resource] = dict(by_name)
                continue
            for name, amount in by_name.items():
                total[name] = total.get(name, 0) + amount

    def _close(self, *, failed: bool) -> Flow[None] | None:
        """Return what is still to be written: everything back, or the adjustments."""
        self._is_open = False
        pending, self._pending = self._pending, {}
        writer = self._context.writer
        if failed:
            self._consumed = {}
            return give_back(writer, self._grants) if self._grants else None
        is_adjusted = False
        if pending:
            self._count(pending)
            is_adjusted = any(amount for by_name in pending.values() for amount in by_name.values())
        is_held = not self.keeps_holds and self._has_holds()
        return (
            self._settle(pending if is_adjusted else {}, is_held=is_held) if is_adjusted or is_held else None
        )

    def _has_holds(self) -> bool:
        for grant in self._grants:
            for taken in grant.taken:
                if taken.charge.hold:
                    return True
        return False

    def _settle(self, pending: Mapping[str, Mapping[str, int]], *, is_held: bool) -> Flow[None]:
        """Write the adjustments, and end what the lease holds of concurrency limits."""
        if pending:
            yield from adjust(self._context.writer, merge(self._grants), pending)
        if is_held:
            yield from release_holds(self._context.writer, self._grants)

    def _extend(self) -> Flow[datetime | None]:
        if not self._is_open:
            raise LeaseExpired
        expires = yield from extend(self._context.writer, self._grants)
        return None if expires is None else datetime.fromtimestamp(expires / MICROSECONDS, UTC)

    def _not_settled(self, error: SolotableError, cause: BaseException | None) -> None:
        """Note a failed settlement on the exception of the block; without one, allow or raise it."""
        if cause is None:
            self._allow(error)
        else:
            cause.add_note(f"The limiter could not take back what this call had taken: {error}")

    def _allow(self, error: SolotableError) -> None:
        """Continue without limits, or raise what the caller sees."""
        if not is_unavailable(error):
            raise error from None
        self._context.circuit_breaker.record_failure(error)
        if self._choice() == "allow":
            log.warning("The limiter is unavailable, and calls are allowed: %s", error)
            return
        if isinstance(error, LimiterUnavailable):
            raise error
        raise LimiterUnavailable(
            f'The limiter\'s table is unavailable ({error}); try again, or choose on_unavailable="allow".'
        ) from error

    def _choice(self) -> OnUnavailable:
        context = self._context
        return self._request.on_unavailable or context.cache.on_unavailable or context.on_unavailable


class Lease(LeaseState):
    """What a call has taken: `with limiter.acquire(...) as lease`."""

    def __init__(self, engine: Engine, context: LimiterContext, request: AcquireRequest) -> None:
        super().__init__(context, request)
        self._engine = engine

    def __enter__(self) -> Self:
        try:
            flow = self._start()
            grant = None if flow is None else run(flow, self._engine)
        except SolotableError as error:
            self._allow(error)
            grant = None
        self._open(grant)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        flow = self._close(failed=cause is not None)
        if flow is not None:
            try:
                run(flow, self._engine)
            except SolotableError as error:
                self._not_settled(error, cause)

    def consume(
        self,
        amounts: Mapping[str, Amount] | None = None,
        /,
        *,
        resource: str | None = None,
        **by_name: Amount,
    ) -> None:
        """Take more, or raise RateLimitExceeded and take none of it."""
        flow = self._take_more({**(amounts or {}), **by_name}, resource)
        if flow is not None:
            try:
                self._add(run(flow, self._engine))
            except SolotableError as error:
                self._allow(error)

    def extend(self) -> datetime | None:
        """Hold the tokens of concurrency limits for their whole time from now, or raise LeaseExpired.

        Return when the first of them expires; None without concurrency limits.
        """
        return run(self._extend(), self._engine)


class AsyncLease(LeaseState):
    """What a call has taken: `async with limiter.acquire(...) as lease`."""

    def __init__(self, engine: AsyncEngine, context: LimiterContext, request: AcquireRequest) -> None:
        super().__init__(context, request)
        self._engine = engine

    async def __aenter__(self) -> Self:
        try:
            flow = self._start()
            grant: Grant | None = None
            if flow is not None:
                grant = await self._finish(flow, self._undo)
        except SolotableError as error:
            self._allow(error)
            grant = None
        self._open(grant)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, cause: BaseException | None, trace: TracebackType | None
    ) -> None:
        flow = self._close(failed=cause is not None)
        if flow is not None:
            try:
                await self._finish(flow)
            except SolotableError as error:
                self._not_settled(error, cause)

    async def consume(
        self,
        amounts: Mapping[str, Amount] | None = None,
        /,
        *,
        resource: str | None = None,
        **by_name: Amount,
    ) -> None:
        """Take more, or raise RateLimitExceeded and take none of it."""
        flow = self._take_more({**(amounts or {}), **by_name}, resource)
        if flow is not None:
            try:
                self._add(await self._finish(flow, self._undo))
            except SolotableError as error:
                self._allow(error)

    async def extend(self) -> datetime | None:
        """Hold the tokens of concurrency limits for their whole time from now, or raise LeaseExpired.

        Return when the first of them expires; None without concurrency limits.
        """
        return await self._finish(self._extend())

    def _await(self, result: Any) -> None:
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(_logged(result))
            _background.add(task)
            task.add_done_callback(_background.discard)

    def _undo(self, grant: Grant) -> Flow[None]:
        return give_back(self._context.writer, [grant])

    async def _finish(
        self, flow: Flow[ResultT], undo: Callable[[ResultT], Flow[None]] | None = None
    ) -> ResultT:
        """Run a flow to its end even if the caller is cancelled; then undo it."""
        work: asyncio.Future[ResultT] | None = None
        try:
            if is_instant(self._engine):
                # It replies without awaiting: a cancellation can only arrive while the flow sleeps.
                return await arun(flow, self._engine)
            work = asyncio.ensure_future(arun(flow, self._engine))
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if work is None:
                work = asyncio.ensure_future(arun(flow, self._engine))
            if not work.cancelled():
                ending = asyncio.ensure_future(self._finish_undo(work, undo))
                _background.add(ending)
                ending.add_done_callback(_background.discard)
                await asyncio.shield(ending)
            raise

    async def _finish_undo(
        self, work: asyncio.Future[ResultT], undo: Callable[[ResultT], Flow[None]] | None
    ) -> None:
        try:
            done = await work
            if undo is not None:
                await arun(undo(done), self._engine)
        except SolotableError as error:
            log.warning("A cancelled call of the limiter could not be undone: %s", error)
