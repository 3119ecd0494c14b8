"""The record of an acquire for observers: names of resources and limits, numbers, and the outcome.

An observation never has the entity, which may be personal data. A limiter without an observer pays nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Literal

from solotable.errors import DataError, SolotableError
from solotable.flow import Flow
from solotable.flow.requests import UpdateItem
from solotable.systems.limiter.buckets.acquire import Grant
from solotable.systems.limiter.errors import (
    EntityDenied,
    LimitStatus,
    NeverSatisfiable,
    RateLimitExceeded,
    is_unavailable,
)

#: "shadow_refused" is admitted: a level in shadow mode would have refused it. "error" is a wrong call.
AcquireOutcome = Literal[
    "admitted", "shadow_refused", "refused", "never_satisfiable", "denied", "unavailable", "error"
]
#: A resource and the name of a limit.
LimitPair = tuple[str, str]

log = logging.getLogger("solotable.limiter")


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireObservation:
    """One acquire, or one `lease.consume`."""

    #: The resource of the call; `limits`, `exceeded` and `ignored` name their own.
    resource: str
    outcome: AcquireOutcome
    #: From the first request to the decision, in seconds.
    seconds: float
    #: How many conditional writes were sent: more than the buckets of the call if writers compete.
    attempts: int
    #: The limits that refused, or would have in shadow mode.
    limits: tuple[LimitPair, ...] = ()
    #: The soft limits that had too few tokens.
    exceeded: tuple[LimitPair, ...] = ()
    #: The limits that the entity does not have.
    ignored: tuple[LimitPair, ...] = ()
    #: The name of the error's class; None for a call that is admitted.
    error: str | None = None


#: Called in the thread or task of the caller. What it raises is logged and ignored.
AcquireObserver = Callable[[AcquireObservation], object]


def check_observer(observer: Any) -> AcquireObserver:
    """Return an observer, or raise DataError for one that cannot be called or has to be awaited."""
    if not callable(observer) or iscoroutinefunction(observer):
        raise DataError(f"observer is a function of one argument, and is not awaited; got {observer!r}.")
    found: AcquireObserver = observer
    return found


def observe_acquire(observer: AcquireObserver, resource: str, flow: Flow[Grant]) -> Flow[Grant]:
    """Run an acquire, and tell the observer how it ended."""
    started = time.perf_counter()
    attempts = 0
    grant: Grant | None = None
    reply: Any = None
    error: BaseException | None = None
    try:
        while grant is None:
            try:
                request = flow.send(reply) if error is None else flow.throw(error)
            except StopIteration as done:
                grant = done.value
                continue
            attempts += isinstance(request, UpdateItem)
            reply = error = None
            try:
                reply = yield request
            except GeneratorExit:
                flow.close()
                raise
            except BaseException as raised:  # noqa: BLE001 - the flow decides
                error = raised
    except SolotableError as refusal:
        outcome, limits = outcome_of(refusal)
        seconds = time.perf_counter() - started
        _tell(
            observer,
            AcquireObservation(
                resource=resource,
                outcome=outcome,
                seconds=seconds,
                attempts=attempts,
                limits=limits,
                error=type(refusal).__name__,
            ),
        )
        raise
    spared = grant.spared
    observation = AcquireObservation(
        resource=resource,
        outcome="admitted" if spared is None else "shadow_refused",
        seconds=time.perf_counter() - started,
        attempts=attempts,
        limits=() if spared is None else outcome_of(spared)[1],
        exceeded=_pairs(grant.exceeded) if grant.exceeded else (),
        ignored=grant.ignored,
    )
    _tell(observer, observation)
    return grant


def observe_outage(observer: AcquireObserver, resource: str) -> None:
    """Tell an observer of a call that is allowed without limits, as the table did not respond before."""
    _tell(observer, AcquireObservation(resource=resource, outcome="unavailable", seconds=0.0, attempts=0))


def outcome_of(error: SolotableError) -> tuple[AcquireOutcome, tuple[LimitPair, ...]]:
    """Return how an acquire ended that raised an error, and the limits that refused it."""
    if isinstance(error, RateLimitExceeded):
        return "refused", _pairs(error.violations)
    if isinstance(error, NeverSatisfiable):
        return "never_satisfiable", ((error.resource, error.limit.name),)
    if isinstance(error, EntityDenied):
        return "denied", () if error.limit is None else ((error.resource, error.limit.name),)
    return "unavailable" if is_unavailable(error) else "error", ()


def _pairs(statuses: Iterable[LimitStatus]) -> tuple[LimitPair, ...]:
    # A child and its parent may have limits of the same name.
    return tuple(dict.fromkeys((status.resource, status.limit.name) for status in statuses))


def _tell(observer: AcquireObserver, observation: AcquireObservation) -> None:
    try:
        observer(observation)
    except Exception:
        log.exception("The observer of a limiter raised an error.")


class BoundedNames:
    """Names that become labels: the first ones as they are, all others as `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._names: set[str] = set()

    def __call__(self, name: str) -> str:
        names = self._names
        if name in names:
            return name
        if len(names) >= self._most:
            return "other"
        names.add(name)
        return name
