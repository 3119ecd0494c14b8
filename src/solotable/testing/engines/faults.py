"""Declare faults: which requests they hit, how often, and what happens.

    faults.throttle("UpdateItem", times=2)                  throttle the first two
    faults.throttle("Query", probability=0.2, seed=7)       the same fifth of them in every run
    faults.run_before("PutItem", lambda: other.put(item))   another writer is faster

Counters and seeded random numbers decide; only declared faults occur.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypedDict, Unpack

from solotable._protocol.constraints.operations import CONSTRAINTS, ITEMS
from solotable._protocol.requests import Request
from solotable._store.observation import operation_of

from . import faulty
from .faulty import FaultAction

_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")
_BATCHES: Final = ("BatchGetItem", "BatchWriteItem")
_CONFLICTING: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems")


class FaultSchedule(TypedDict, total=False):
    """When a fault occurs."""

    #: How often; the default is once, or without limit with a probability.
    times: int | None
    #: How many requests pass first.
    after: int
    probability: float
    seed: int


class Fault:
    """One declared fault; `fired` counts its occurrences."""

    def __init__(
        self,
        act: FaultAction,
        operations: tuple[str, ...],
        *,
        times: int | None,
        after: int,
        dice: Callable[[], bool],
    ) -> None:
        self.act = act
        self.fired = 0
        self._operations = frozenset(operations)
        self._times = times
        self._after = after
        self._dice = dice
        self._seen = 0

    def matches(self, request: Request[Any]) -> bool:
        """Count a request, and return whether the fault hits it."""
        if operation_of(request) not in self._operations:
            return False
        self._seen += 1
        if self._seen <= self._after or (self._times is not None and self.fired >= self._times):
            return False
        if not faulty.applies_to(self.act, request) or not self._dice():
            return False
        self.fired += 1
        return True


class Faults:
    """The declared faults, in order.

    Each method takes the operation's name (None: every operation that can have the fault), and `times` (how
    often), `after` (how many requests pass first), or `probability` with a `seed`.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._suspended = threading.local()

    def throttle(self, operation: str | None = None, **when: Unpack[FaultSchedule]) -> Fault:
        """Raise Throttled, as a table without capacity does; the request is not executed."""
        return self._declare(faulty.throttle, operation, tuple(ITEMS), **when)

    def internal_error(
        self, operation: str | None = None, *, applied: bool = False, **when: Unpack[FaultSchedule]
    ) -> Fault:
        """Raise InternalServerError, before or after the request is executed (`applied`)."""
        act = faulty.internal_error_after if applied else faulty.internal_error
        return self._declare(act, operation, tuple(ITEMS), **when)

    def unreachable(self, operation: str | None = None, **when: Unpack[FaultSchedule]) -> Fault:
        """Raise TransportError, as without a connection; the request is not executed."""
        return self._declare(faulty.unreachable, operation, tuple(CONSTRAINTS), **when)

    def timeout(self, operation: str | None = None, *, applied: bool, **when: Unpack[FaultSchedule]) -> Fault:
        """Lose the reply, before or after the request is executed (`applied`).

        The caller cannot know which: a write raises OutcomeUnknown, a read TransportError.
        """
        act = faulty.timeout_after if applied else faulty.timeout_before
        return self._declare(act, operation, tuple(ITEMS), **when)

    def partial_batch(
        self, operation: str | None = None, *, processed: int | None = None, **when: Unpack[FaultSchedule]
    ) -> Fault:
        """Execute only the first entries of a batch (`processed`, or half); return the rest unprocessed.

        A batch of one entry passes: DynamoDB processes at least one entry, or rejects the batch.
        """
        if processed is not None and processed < 1:
            raise ValueError(
                f"processed must be at least 1, got {processed}; use throttle() to reject the whole batch."
            )
        act = faulty.PartialBatch(processed)
        return self._declare(act, operation, _BATCHES, **when)

    def transaction_conflict(self, operation: str | None = None, **when: Unpack[FaultSchedule]) -> Fault:
        """Reject a transaction or write: another transaction is in progress on its first item."""
        return self._declare(faulty.transaction_conflict, operation, _CONFLICTING, **when)

    def run_before(
        self, operation: str | None, writer: Callable[[], object], **when: Unpack[FaultSchedule]
    ) -> Fault:
        """Run `writer` just before a request; the requests of `writer` itself have no faults."""

        def act(handle: faulty.Handler, request: Request[Any]) -> Any:
            with self.suspended():
                writer()
            return handle(request)

        return self._declare(act, operation, _WRITES, **when)

    def matching(self, request: Request[Any]) -> Iterator[Fault]:
        """Yield the faults that hit a request."""
        if not self._faults or getattr(self._suspended, "on", False):
            return
        with self._lock:
            hits = [fault for fault in self._faults if fault.matches(request)]
        yield from hits

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the faults, and their counters, for this thread's requests."""
        before = getattr(self._suspended, "on", False)
        self._suspended.on = True
        try:
            yield
        finally:
            self._suspended.on = before

    def clear(self) -> None:
        """Remove all faults."""
        self._faults.clear()

    def _declare(
        self,
        act: FaultAction,
        operation: str | None,
        supported: tuple[str, ...],
        **when: Unpack[FaultSchedule],
    ) -> Fault:
        times, probability = when.get("times"), when.get("probability")
        if operation is not None and operation not in supported:
            raise ValueError(f"{operation!r} cannot have this fault; expected one of {', '.join(supported)}.")
        if probability is None:
            times = 1 if times is None else times
            dice: Callable[[], bool] = lambda: True  # noqa: E731
        else:
            rolls = random.Random(when.get("seed", 0))  # noqa: S311  # reproducible, not secret
            chance = probability
            dice = lambda: rolls.random() < chance  # noqa: E731
        operations = supported if operation is None else (operation,)
        fault = Fault(act, operations, times=times, after=when.get("after", 0), dice=dice)
        self._faults.append(fault)
        return fault
