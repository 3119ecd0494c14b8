"""Flows of several processes, step by step in any order, with faults and clocks that differ.

Every write is weighed: how many tokens the buckets have before and after it, and how much they have counted.
So each flow has a balance, also of writes that arrive when it has long ended: whoever was granted tokens has
used up as many, whoever was refused has brought none into being.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Flow, Retries, Sleep
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Request, Scan, TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.engines import sqlite
from solotable.errors import OutcomeUnknown, ServiceError, SolotableError, Throttled
from solotable.systems.limiter import Limit, Limiter
from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI
from solotable.systems.limiter.buckets.acquire import Grant, acquire, adjust, give_back
from solotable.systems.limiter.buckets.bucket import LANES, ShardState, decode_state
from solotable.systems.limiter.buckets.charge import REPEAT_MICROSECONDS
from solotable.systems.limiter.buckets.local_cache import _WRITERS
from solotable.systems.limiter.buckets.shards.tree import leaves
from solotable.systems.limiter.table import limiter
from tests.store.opening import Clock

from .ground import ACME

_WRITES = (UpdateItem, TransactWriteItems)


@dataclass
class Balance:
    """What a flow's writes have used up and counted, in thousandths of a token."""

    used: Fraction = Fraction(0)
    counted: int = 0
    #: How much less may be used up: a clock that is behind, and a write that was long on its way, take a
    #: bucket to be full as of then, and it has been given more since.
    leeway: Fraction = Fraction(0)


@dataclass
class Running:
    """A flow on its way, and what it is to come to; None while nobody knows."""

    name: str
    flow: Flow[Any]
    amount: int
    #: What is waiting to be sent, and since when.
    asks: Any = None
    since: float = 0.0
    balance: Balance = field(default_factory=Balance)
    result: Any = None
    error: SolotableError | None = None
    done: bool = False
    faulty: bool = False


class World:
    """Some processes on one bucket; everything follows from the seed."""

    def __init__(
        self,
        seed: int,
        *,
        limit: Limit,
        clients: int = 3,
        skew: float = 0.0,
        faults: float = 0.0,
        **options: Any,
    ) -> None:
        self.dice = random.Random(seed)
        self.clock = Clock()
        self.engine = sqlite.open(sqlite.MEMORY, clock=self.clock)
        self.db = over(self.engine, [limiter], clock=self.clock)
        self.limit = limit
        self.faults = faults
        self.skews = [self.dice.uniform(-skew, skew) for _ in range(clients)]
        self.options: dict[str, Any] = {"limits": [limit], "remember_rejections": 0.0} | options
        self.clients = [self._client(skew) for skew in self.skews]
        self.running: list[Running] = []
        self.ended: list[Running] = []
        self.grants: list[tuple[int, Grant]] = []
        self.late: list[tuple[Running, Request[Any], float]] = []

    def _client(self, skew: float) -> Limiter:
        def clock() -> float:
            return self.clock() + skew

        scope = replace(self.db.scope, clock=clock, retries=Retries(random=self.dice.random))
        made = Limiter(Database(self.engine, scope), ACME, **self.options)
        # A process chooses both at random; here they follow from the seed too.
        cache = made.context.writer.cache
        cache.first_lane = self.dice.choice(LANES[:-1])
        cache._process, cache._writer = os.getpid(), self.dice.randrange(_WRITERS)
        made.effective_limits("u", "r")
        return made

    # What goes on -------------------------------------------------------------------------

    def acquire(self, amount: int) -> None:
        """Let one of the processes begin to acquire."""
        who = self.dice.randrange(len(self.clients))
        context = self.clients[who].context
        self._begin("acquire", acquire(context, "u", {"r": {self.limit.name: amount}}), amount, who)

    def give_back(self) -> None:
        """Let the process that holds a grant begin to give it back."""
        if self.grants:
            who, grant = self.grants.pop(self.dice.randrange(len(self.grants)))
            amount = sum(grant.amounts["r"].values()) // MILLI
            self._begin("back", give_back(self.clients[who].context.writer, [grant]), -amount, who)

    def adjust(self, amount: int) -> None:
        """Let the process that holds a grant begin to adjust it."""
        if self.grants:
            who, grant = self.grants.pop(self.dice.randrange(len(self.grants)))
            flow = adjust(self.clients[who].context.writer, grant, {"r": {self.limit.name: amount * MILLI}})
            self._begin("adjust", flow, amount, who)

    def forget(self) -> None:
        """Let a process forget what it knows, or start again."""
        who = self.dice.randrange(len(self.clients))
        if self.dice.random() < 0.5:
            self.clients[who].context.writer.cache.clear()
        else:
            self.clients[who] = self._client(self.skews[who])

    def crash(self) -> None:
        """Let a process die that waits for a response; what it has sent may still arrive."""
        if self.running:
            one = self.dice.choice(self.running)
            if self.dice.random() < 0.5 and isinstance(one.asks, _WRITES):
                self.late.append((one, one.asks, one.since))
            one.error, one.faulty, one.done = SolotableError("The process died."), True, True
            one.flow.close()
            self.running.remove(one)
            self.ended.append(one)
            who = int(one.name.rpartition(" ")[2])
            self.clients[who] = self._client(self.skews[who])

    def _begin(self, name: str, flow: Flow[Any], amount: int, who: int) -> None:
        made = Running(f"{name} by {who}", flow, amount)
        self.running.append(made)
        self._advance(made, lambda: flow.send(None))

    # Steps --------------------------------------------------------------------------------

    def step(self) -> None:
        """Answer what one of the flows has asked, well or not; or let a late write arrive."""
        if self.late and self.dice.random() < 0.1:
            self._arrive(*self.late.pop(self.dice.randrange(len(self.late))))
        if not self.running:
            return
        one = self.dice.choice(self.running)
        request = one.asks
        if isinstance(request, Sleep):
            self._advance(one, lambda: one.flow.send(None))
            return
        try:
            reply = self._answered(one, request)
        except (ServiceError, OutcomeUnknown) as refused:
            error = refused
            self._advance(one, lambda: one.flow.throw(error))
        else:
            self._advance(one, lambda: one.flow.send(reply))

    def finish(self) -> None:
        """Let everything that is on its way come to its end."""
        self.faults = 0.0
        while self.running:
            self.step()
        for write in self.late:
            self._arrive(*write)
        self.late.clear()

    def _arrive(self, of: Running, request: Request[Any], since: float) -> None:
        with contextlib.suppress(ServiceError):
            self._weighed(of, request, since)

    def _advance(self, one: Running, go: Callable[[], Any]) -> None:
        try:
            one.asks, one.since = go(), self.clock()
            return
        except StopIteration as done:
            one.result = done.value
        except SolotableError as error:
            one.error = error
        one.done = True
        self.running.remove(one)
        self.ended.append(one)
        if isinstance(one.result, Grant):
            self.grants.append((int(one.name.rpartition(" ")[2]), one.result))

    def _answered(self, one: Running, request: Request[Any]) -> Any:
        if not isinstance(request, _WRITES) or self.dice.random() >= self.faults:
            return self._weighed(one, request, one.since)
        one.faulty = True
        fate = self.dice.randrange(5)
        if fate == 0:
            raise Throttled("ThrottlingException", "Rate exceeded", retryable=True)
        if fate >= 2:
            self._weighed(one, request, one.since)
        if fate % 2:
            self.late.append((one, request, one.since))
        raise OutcomeUnknown("No answer came.")

    # What every write is weighed by -------------------------------------------------------

    def _weighed(self, one: Running, request: Request[Any], since: float) -> Any:
        before = self.items()
        reply = self.engine.handle(request)
        if isinstance(request, _WRITES):
            after = self.items()
            self.judge(after)
            lost = self.tokens(before) - self.tokens(after)
            one.balance.used += lost
            if before and shape(before) != shape(after) and not any(self.skews):
                # L3: a split or a merge, of which only a merge rounds, to a whole credit.
                assert lost <= Fraction(1, self.limit.period_seconds * MICROSECONDS), (before, after)
            one.balance.counted += self.counted(after) - self.counted(before)
            for key in before.keys() - after.keys():
                # What goes with a shard that is joined was counted, and stays so.
                one.balance.counted += self._count(before[key])
            behind = max(0.0, *self.skews) - min(0.0, *self.skews) + self.clock() - since
            # A write that others preceded is repeated as of its first time.
            behind += (REPEAT_MICROSECONDS + 2) / MICROSECONDS
            one.balance.leeway += Fraction(behind * self.limit.refill * MILLI / self.limit.period_seconds)
        return reply

    def items(self) -> dict[int, Item]:
        """Return the bucket's items by their shards."""
        page = self.engine.handle(Scan(table=self.db.scope.table(limiter), consistent=True))
        found = [
            item for item in decode_items(page.items or ()) if item[limiter.internal_tag]["S"] == "Bucket"
        ]
        return {int(item["shard"]["N"]): item for item in found}

    def tokens(self, items: dict[int, Item]) -> Fraction:
        """Return what the shards have together, in thousandths of a token."""
        if not items:
            return Fraction(self.limit.capacity * MILLI)
        now = int(self.clock() * MICROSECONDS)
        total = Fraction(0)
        for state in whole({shard: decode_state(item, now) for shard, item in items.items()}):
            meter = state.rules.meters[self.limit.name]
            total += Fraction(meter.credits(state.used[self.limit.name], now), meter.price << state.level)
        return total

    def counted(self, items: dict[int, Item]) -> int:
        """Return what the shards have counted together."""
        return sum(map(self._count, items.values()))

    def _count(self, item: Item) -> int:
        return int(item.get(f"consumed_{self.limit.name}", {"N": "0"})["N"])

    def judge(self, items: dict[int, Item]) -> None:
        """Every throw of the dice has one shard; items are whole, and expire."""
        states = {shard: decode_state(item, 0) for shard, item in items.items()}
        throws = [
            state.shard | rest << state.level
            for state in whole(states)
            for rest in range(1 << 6 - state.level)
        ]
        assert sorted(throws) == list(range(64)), states
        for shard, item in items.items():
            state = states[shard]
            assert {
                "PK",
                "SK",
                "entity",
                "resource",
                "namespace",
                "rules",
                "revision",
                "at",
                "writes",
            } <= item.keys()
            assert set(state.used) == set(state.rules.meters)
            assert "expires" in item


def shape(items: Mapping[int, Item]) -> dict[int, tuple[str, bool]]:
    """Return the level of each shard, and whether its split is unfinished; nothing without a bucket."""
    return {shard: (item["level"]["N"], "split" in item) for shard, item in items.items()}


def whole(states: Mapping[int, ShardState]) -> list[ShardState]:
    """Return all shards, also the half of an unfinished split; fail if one is missing."""
    found = leaves(states)
    assert set(states) <= set(found), states
    return [state for state in found.values() if state is not None]
