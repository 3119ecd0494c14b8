"""Faults, declared before they strike: which requests, how often, and what then happens.

    faults.throttle("UpdateItem", times=2)                  the first two are refused
    faults.throttle("Query", probability=0.2, seed=7)       the same fifth of them in every run
    faults.slip_in("PutItem", lambda: other.put(theirs))    another writer is quicker

Everything is counted or drawn from seeded dice. Nothing strikes but what was declared.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypedDict, Unpack

from solotable._protocol.constraints.operations import CONSTRAINTS, ITEMS
from solotable._protocol.requests import Request

from . import faulty
from .faulty import Act
from .journal import operation_of

_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem")
_BATCHES: Final = ("BatchGetItem", "BatchWriteItem")
_CONFLICTING: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "TransactGetItems")


class When(TypedDict, total=False):
    """When a fault strikes."""

    #: How often: once, or without end where there is a probability.
    times: int | None
    #: How many requests are spared first.
    after: int
    probability: float
    seed: int


class Fault:
    """One declared fault; `fired` counts how often it has struck."""

    def __init__(
        self,
        act: Act,
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
        self._met = 0

    def strikes(self, request: Request[Any]) -> bool:
        """Count a request, and say whether this is one to strike."""
        if operation_of(request) not in self._operations:
            return False
        self._met += 1
        if self._met <= self._after or (self._times is not None and self.fired >= self._times):
            return False
        if not faulty.fits(self.act, request) or not self._dice():
            return False
        self.fired += 1
        return True


class Faults:
    """What is going to go wrong, in the order of its declaration.

    Each takes the operation's name (None: every one that it makes sense for), `times` how often,
    `after` how many requests are spared first, or `probability` with a `seed`.
    """

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._silent = threading.local()

    def throttle(self, operation: str | None = None, **when: Unpack[When]) -> Fault:
        """Refuse requests as a table without capacity does; nothing is done."""
        return self._declare(faulty.throttle, operation, tuple(ITEMS), **when)

    def internal_error(
        self, operation: str | None = None, *, applied: bool = False, **when: Unpack[When]
    ) -> Fault:
        """Answer with InternalServerError, before or after the request was done."""
        act = faulty.internal_error_after if applied else faulty.internal_error
        return self._declare(act, operation, tuple(ITEMS), **when)

    def unreachable(self, operation: str | None = None, **when: Unpack[When]) -> Fault:
        """Take no connection: TransportError, and nothing was done."""
        return self._declare(faulty.unreachable, operation, tuple(CONSTRAINTS), **when)

    def timeout(self, operation: str | None = None, *, applied: bool, **when: Unpack[When]) -> Fault:
        """Give no answer, though the request was done (`applied`) or was not.

        The caller cannot tell which: a write raises OutcomeUnknown, a read TransportError.
        """
        act = faulty.timeout_after if applied else faulty.timeout_before
        return self._declare(act, operation, tuple(ITEMS), **when)

    def partial_batch(
        self, operation: str | None = None, *, processed: int | None = None, **when: Unpack[When]
    ) -> Fault:
        """Do only the first entries of a batch (`processed`, or half) and hand back the rest.

        A batch of one is spared: DynamoDB does at least one entry or refuses the whole.
        """
        if processed is not None and processed < 1:
            raise ValueError("DynamoDB does at least one entry of a batch, or refuses it: use throttle().")
        act = faulty.PartialBatch(processed)
        return self._declare(act, operation, _BATCHES, **when)

    def transaction_conflict(self, operation: str | None = None, **when: Unpack[When]) -> Fault:
        """Refuse a transaction or a write because another transaction is at work on its first item."""
        return self._declare(faulty.transaction_conflict, operation, _CONFLICTING, **when)

    def slip_in(self, operation: str | None, writer: Callable[[], object], **when: Unpack[When]) -> Fault:
        """Run `writer` right before a request is done; what it asks itself meets no faults."""

        def act(answer: faulty.Answer, request: Request[Any]) -> Any:
            with self.silenced():
                writer()
            return answer(request)

        return self._declare(act, operation, _WRITES, **when)

    def due(self, request: Request[Any]) -> Iterator[Fault]:
        """Give the faults that strike a request."""
        if not self._faults or getattr(self._silent, "on", False):
            return
        with self._lock:
            struck = [fault for fault in self._faults if fault.strikes(request)]
        yield from struck

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Let what this thread asks in the block meet no faults, nor be counted by them."""
        before = getattr(self._silent, "on", False)
        self._silent.on = True
        try:
            yield
        finally:
            self._silent.on = before

    def clear(self) -> None:
        """Take back everything that was declared."""
        self._faults.clear()

    def _declare(
        self,
        act: Act,
        operation: str | None,
        fitting: tuple[str, ...],
        **when: Unpack[When],
    ) -> Fault:
        times, probability = when.get("times"), when.get("probability")
        if operation is not None and operation not in fitting:
            raise ValueError(f"{operation!r} cannot meet this fault; it is for {', '.join(fitting)}.")
        if probability is None:
            times = 1 if times is None else times
            dice: Callable[[], bool] = lambda: True  # noqa: E731
        else:
            rolls = random.Random(when.get("seed", 0))  # noqa: S311  # the same in every run is the point
            chance = probability
            dice = lambda: rolls.random() < chance  # noqa: E731
        operations = fitting if operation is None else (operation,)
        fault = Fault(act, operations, times=times, after=when.get("after", 0), dice=dice)
        self._faults.append(fault)
        return fault
