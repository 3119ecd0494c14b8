"""A table with DynamoDB's documented isolation and no more, in simulated time.

Conditions of writes see the last commit. Reads see each item of a transaction at a different time; eventually
consistent reads and indexes lag behind that. Requests are throttled, cancelled, and lost before or after
they are applied.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from solotable._protocol import requests
from solotable._protocol.engine import Capabilities, Engine
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Request
from solotable._values import Item
from solotable.errors import TransactionCancelled
from solotable.testing.clock import Clock
from solotable.testing.engines import faulty
from solotable.testing.engines.wrapper import EngineWrapper

Key = tuple[str, str]
#: The items before and after a write, by key; None where there is none.
Images = dict[Key, tuple[Item | None, Item | None]]
#: No item takes longer to become visible.
LONGEST_LAG = 0.5


class Visible:
    """A copy of the table that gets each item of a commit at a time of its own."""

    def __init__(self, engine: Engine, table: str) -> None:
        self.engine = engine
        self._table = table
        self._pending: list[tuple[float, int, Key, Item | None]] = []
        self._due: dict[Key, float] = {}
        self._count = 0

    def add(self, key: Key, item: Item | None, due: float) -> None:
        """Show an item at a time, after all older states of it."""
        due = max(due, self._due.get(key, 0.0))
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._pending, (due, self._count, key, item))

    def show(self, key: Key, item: Item | None) -> None:
        """Show an item at once, in place of all older states of it."""
        self._pending = [each for each in self._pending if each[2] != key]
        heapq.heapify(self._pending)
        self._due.pop(key, None)
        self._apply(key, item)

    def awaits(self, key: Key) -> bool:
        """Return whether a state of an item is not visible yet."""
        return any(each[2] == key for each in self._pending)

    def settle(self, now: float) -> None:
        """Show the items that are due."""
        while self._pending and self._pending[0][0] <= now:
            _, _, key, item = heapq.heappop(self._pending)
            self._apply(key, item)

    def _apply(self, key: Key, item: Item | None) -> None:
        if item is None:
            wire: Item = {"PK": {"S": key[0]}, "SK": {"S": key[1]}}
            self.engine.handle(requests.DeleteItem(table=self._table, key=wire))
        else:
            self.engine.handle(requests.PutItem(table=self._table, item=item))


class HostileEngine(EngineWrapper):
    """Answers from the truth, from what is visible, or not at all."""

    def __init__(
        self, truth: Engine, strong: Engine, lagging: Engine, *, table: str, clock: Clock, seed: str
    ) -> None:
        super().__init__(truth)
        self._strong, self._lagging = Visible(strong, table), Visible(lagging, table)
        self._table, self._clock = table, clock
        self._random = random.Random(seed)  # reproducible, not secret
        self._applied: set[str] = set()
        self._outage = 0
        #: Whether requests fail, lag and interleave.
        self.is_hostile = True
        #: Called before a request: another program may use the table first.
        self.before: Callable[[], None] = lambda: None
        #: Called after each write that was applied.
        self.committed: Callable[[Images], None] = lambda images: None
        #: The items as committed.
        self.items: dict[Key, Item] = {}

    @property
    def capabilities(self) -> Capabilities:
        """Waits advance the simulated clock."""
        return Capabilities(instant=True, sleep=self._sleep)

    def handle(self, request: Request[Any], /) -> Any:
        """Answer one request."""
        if isinstance(request, requests.Control):
            for visible in (self._strong, self._lagging):
                visible.engine.handle(request)
            return self.inner.handle(request)
        if self.is_hostile:
            self.before()
            self._clock.tick(self._random.uniform(0, 0.004))
        self.settle()
        return self._fault(request) if self.is_hostile else self._answer(request)

    @property
    def copies(self) -> tuple[Engine, Engine]:
        """The engines that answer reads."""
        return self._strong.engine, self._lagging.engine

    def settle(self) -> None:
        """Show what is due."""
        now = self._clock()
        self._strong.settle(now)
        self._lagging.settle(now)

    def store(self, key: Key, item: Item | None) -> None:
        """Store or delete an item as a tool without a store does, visible at once; no commit is noted."""
        Visible(self.inner, self._table).show(key, item)
        for visible in (self._strong, self._lagging):
            visible.show(key, item)
        if item is None:
            self.items.pop(key, None)
        else:
            self.items[key] = item

    def _sleep(self, seconds: float) -> None:
        self._clock.tick(seconds)

    def _fault(self, request: Request[Any]) -> Any:
        roll = self._random.random()
        writes = isinstance(request, requests.TransactWriteItems)
        if self._outage:
            self._outage -= 1
            fault = faulty.timeout_after if writes and roll < 0.3 else faulty.throttle
        elif roll < 0.004:
            self._outage = self._random.choice((9, 20))
            fault = faulty.timeout_after if writes else faulty.throttle
        elif roll < 0.02:
            fault = faulty.throttle
        elif writes and roll < 0.05 and getattr(request, "token", None) not in self._applied:
            fault = faulty.transaction_conflict
        elif writes and roll < 0.10:
            fault = faulty.timeout_after
        elif writes and roll < 0.12:
            fault = faulty.timeout_before
        else:
            return self._answer(request)
        return fault(self._answer, request)

    def _answer(self, request: Request[Any]) -> Any:
        match request:
            case requests.GetItem() | requests.Query() | requests.Scan():
                is_strong = request.consistent and getattr(request, "index", None) is None
                if not isinstance(request, requests.GetItem) and self.is_hostile:
                    # A page may end anywhere.
                    request = replace(request, limit=min(request.limit or 9, self._random.randint(2, 9)))
                return (self._strong if is_strong else self._lagging).engine.handle(request)
            case requests.BatchGetItem():
                is_strong = all(part.consistent for part in request.tables)
                return (self._strong if is_strong else self._lagging).engine.handle(request)
            case requests.TransactGetItems():
                if any(self._strong.awaits(_key(get.key)) for get in request.gets):
                    # A commit holds its items until all of it is visible.
                    raise TransactionCancelled([{"Code": "TransactionConflict"} for _ in request.gets])
                return self.inner.handle(request)
            case requests.TransactWriteItems():
                if request.token is not None and request.token in self._applied:
                    return self.inner.handle(request)
                reply = self.inner.handle(request)
                if request.token is not None:
                    self._applied.add(request.token)
            case _:
                reply = self.inner.handle(request)
        self._note(request)
        return reply

    def _note(self, request: Request[Any]) -> None:
        """Schedule when readers see the items of a write."""
        images: Images = {}
        for key in _written(request):
            wire: Item = {"PK": {"S": key[0]}, "SK": {"S": key[1]}}
            found = self.inner.handle(requests.GetItem(table=self._table, key=wire, consistent=True)).item
            after = None if found is None else decode_items([found])[0]
            images[key] = self.items.get(key), after
            if after is None:
                self.items.pop(key, None)
            else:
                self.items[key] = after
        now, is_torn = self._clock(), isinstance(request, requests.TransactWriteItems)
        is_torn = is_torn and self.is_hostile and self._random.random() < 0.65
        for key, (_, after) in images.items():
            lag = self._lag() if is_torn else 0.0
            self._strong.add(key, after, now + lag)
            self._lagging.add(key, after, now + lag + (self._lag() if self.is_hostile else 0.0))
        self.settle()
        self.committed(images)

    def _lag(self) -> float:
        roll = self._random.random()
        if roll < 0.45:
            return 0.0
        return self._random.uniform(0, 0.12 if roll < 0.95 else LONGEST_LAG / 2)


def _written(request: Request[Any]) -> Iterator[Key]:
    match request:
        case requests.TransactWriteItems():
            for action in request.actions:
                if not isinstance(action, requests.ConditionCheck):
                    yield from _written(action)
        case requests.PutItem():
            yield _key(request.item)
        case requests.UpdateItem() | requests.DeleteItem():
            yield _key(request.key)
        case requests.BatchWriteItem():
            for _, writes in request.tables:
                for write in writes:
                    yield _key(write.item if isinstance(write, requests.BatchPut) else write.key)
        case _:
            raise TypeError(f"The model has no {type(request).__name__}.")


def _key(item: Item) -> Key:
    return item["PK"]["S"], item["SK"]["S"]
