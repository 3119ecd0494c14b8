"""A simulated crowd on one bucket: how much a limiter admits of what an exact token bucket would.

Several processes with their own memory call at random times. Each request takes a few milliseconds, during
which the others go on. The clock is simulated, so a run is the same on every machine; nothing sleeps.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count, product
from typing import Any

from solotable import Database
from solotable._connect import over
from solotable._flows.retry import Retries, Sleep
from solotable.engines import sqlite
from solotable.errors import ServiceError, SolotableError
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.buckets.acquire import acquire
from solotable.systems.limiter.table import limiter

#: One way to the server, in seconds: from, to.
_LATENCY = (0.001, 0.003)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """Callers of one bucket."""

    limit: Limit
    #: Calls per second, and for how long.
    calls: float
    seconds: float
    processes: int = 8
    #: Each call asks for one token; this share of them asks for `large`.
    large_share: float = 0.0
    large: int = 1
    shard_above: int | None = 700
    seed: int = 1
    #: Seconds of one call every half second after the crowd, until the bucket is whole again.
    calm_seconds: float = 0.0


@dataclass(slots=True)
class Result:
    """What became of a crowd."""

    #: Tokens that were admitted, and that an exact bucket would have admitted.
    admitted: float = 0.0
    ideal: float = 0.0
    calls: int = 0
    errors: int = 0
    #: Requests of all processes, and the most shards.
    requests: int = 0
    shards: int = 1
    #: Items of the bucket at the end.
    left_items: int = 0
    slowest_seconds: float = 0.0

    @property
    def share(self) -> float:
        """What was admitted, in per cent of the ideal."""
        return 100.0 * self.admitted / self.ideal


@dataclass(slots=True)
class _Exact:
    """A token bucket of floats, for the ideal."""

    limit: Limit
    tokens: float
    at: float

    def take(self, amount: float, now: float) -> bool:
        rate = self.limit.refill / self.limit.period_seconds
        self.tokens = min(self.limit.capacity, self.tokens + (now - self.at) * rate)
        self.at = now
        if self.tokens < amount:
            return False
        self.tokens -= amount
        return True


@dataclass
class _World:
    crowd: Crowd
    now: float = 2_000_000_000.0
    result: Result = field(default_factory=Result)

    def __post_init__(self) -> None:
        crowd = self.crowd
        self.dice = random.Random(crowd.seed)
        self.engine = sqlite.open(sqlite.MEMORY, clock=lambda: self.now)
        self.table = over(self.engine, [limiter], clock=lambda: self.now)
        scope = replace(self.table.scope, retries=Retries(random=self.dice.random))
        self.clients = [
            Limiter(Database(self.engine, scope), limits=[crowd.limit], shard_above=crowd.shard_above)
            for _ in range(crowd.processes)
        ]
        for client in self.clients:
            client.effective_limits("u", "r")
        self.exact = _Exact(crowd.limit, crowd.limit.capacity, self.now)
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.order = count()

    def at(self, when: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.order), what))

    def run(self) -> Result:
        crowd, start = self.crowd, self.now
        when = start
        while (when := when + self.dice.expovariate(crowd.calls)) < start + crowd.seconds:
            self.at(when, self.call)
        for step in range(int(crowd.calm_seconds * 2)):
            self.at(start + crowd.seconds + step / 2, self.call)
        while self.events:
            self.now, _, what = heapq.heappop(self.events)
            what()
        self.result.left_items = len(self._known())
        self.engine.close()
        return self.result

    def call(self) -> None:
        crowd, result = self.crowd, self.result
        amount = crowd.large if self.dice.random() < crowd.large_share else 1
        result.calls += 1
        if self.exact.take(amount, self.now):
            result.ideal += amount
        client = self.dice.choice(self.clients)
        flow = acquire(client.context, "u", {"r": {crowd.limit.name: amount}})
        self.step(lambda: flow.send(None), flow, amount, self.now)

    def step(self, resume: Callable[[], Any], flow: Any, amount: int, begun: float) -> None:
        """Go on with a flow until its next request is on its way."""
        try:
            request = resume()
        except StopIteration:
            self.result.admitted += amount
        except RateLimitExceeded:
            pass
        except SolotableError:
            self.result.errors += 1
        else:
            if isinstance(request, Sleep):
                self.at(
                    self.now + request.seconds,
                    lambda: self.step(lambda: flow.send(None), flow, amount, begun),
                )
            else:
                self.at(
                    self.now + self.dice.uniform(*_LATENCY), lambda: self.arrive(request, flow, amount, begun)
                )
            return
        self.result.slowest_seconds = max(self.result.slowest_seconds, self.now - begun)

    def arrive(self, request: Any, flow: Any, amount: int, begun: float) -> None:
        self.result.requests += 1
        resume: Callable[[], Any]
        try:
            reply = self.engine.handle(request)
            resume = lambda: flow.send(reply)  # noqa: E731 - one of two
        except ServiceError as failed:
            error = failed
            resume = lambda: flow.throw(error)  # noqa: E731 - one of two
        if self.result.requests % 64 == 0:
            self.result.shards = max(self.result.shards, len(self._known()))
        self.at(self.now + self.dice.uniform(*_LATENCY), lambda: self.step(resume, flow, amount, begun))

    def _known(self) -> dict[int, Any]:
        """Return the shards that the best informed process knows."""
        known = [client.context.writer.cache.bucket("u", "r").shards for client in self.clients]
        return max(known, key=len)


def simulate(crowd: Crowd) -> Result:
    """Let a crowd call, and return what became of it."""
    return _World(crowd).run()


def cases(*, rate: int = 3000, seconds: float = 6.0) -> dict[str, Crowd]:
    """Return the crowds that are measured, on so many tokens per second and on a limit per day."""
    shard_above = rate * 7 // 30
    found: dict[str, Crowd] = {}
    for burst, shards in product((1.0, 0.1), (shard_above, None)):
        limit = Limit.per_second("rpm", rate, burst=round(rate * burst))
        for load in (0.5, 0.9, 1.0, 1.5, 4.0):
            name = f"burst {burst:g} s, load {load:g}{'' if shards else ', one item'}"
            found[name] = Crowd(limit=limit, calls=rate * load, seconds=seconds, shard_above=shards)
    tenth = rate // 10
    found["1 % of calls ask for a tenth, load 0.7"] = Crowd(
        limit=Limit.per_second("rpm", rate),
        calls=0.7 * rate / (0.99 + 0.01 * tenth),
        seconds=seconds * 4,
        large_share=0.01,
        large=tenth,
        # As many shards as the calls of the other cases have.
        shard_above=shard_above // 4,
    )
    found["a day's limit, then two calm minutes"] = Crowd(
        limit=Limit.per_day("rpm", 4 * rate),
        calls=rate,
        seconds=seconds,
        shard_above=shard_above,
        calm_seconds=120,
    )
    return found


def measure(*, quick: bool) -> dict[str, dict[str, float]]:
    """Return the figures of every crowd by its name."""
    chosen = cases(rate=300, seconds=4.0) if quick else cases()
    return {name: {**asdict(result), "share": result.share} for name, result in _results(chosen)}


def _results(chosen: Mapping[str, Crowd]) -> Iterator[tuple[str, Result]]:
    for name, crowd in chosen.items():
        yield name, simulate(crowd)


def table(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the lines of a table."""
    yield f"  {'crowd':<42}{'admitted':>10}{'of ideal':>10}{'requests':>10}{'shards':>8}{'slowest':>10}"
    for name, each in figures.items():
        yield (
            f"  {name:<42}{each['admitted']:>10,.0f}{each['share']:>9.2f}%"
            f"{each['requests'] / each['calls']:>10.2f}{each['shards']:>8.0f}"
            f"{each['slowest_seconds'] * 1000:>7.0f} ms"
        )
