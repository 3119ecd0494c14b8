"""One process of a crowd: does what the lines of its standard input say, and prints each result as JSON.

Run as `python -m tests.systems.limiter.member URL NUMBER`. A line is `[seconds, stage, arguments]`: the time
comes from the test, so a run is the same on every machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from solotable import connect
from solotable.systems.limiter import AsyncLimiter, Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.http.middleware import RateLimitMiddleware
from solotable.systems.limiter.table import limiter as table

NAMESPACE = "acme"
THREADS = 8


class Member:
    """A process with its own memory, and a clock that the test sets."""

    def __init__(self, url: str, number: int) -> None:
        self.number, self.seconds, self.ahead = number, 0.0, 0.0
        self.url = url
        db = connect(url, table, clock=self.clock)
        self.limiter = Limiter(db, NAMESPACE, shard_above=20, remember_rejections=0.0, cache_seconds=86_400)
        self.pool = ThreadPoolExecutor(THREADS)

    def clock(self) -> float:
        return self.seconds + self.ahead

    def crowd(self, entity: str, calls: int, large: int = 0) -> int:
        """Call from several threads, once for many tokens if so; return the admitted tokens."""
        amounts = [1] * calls + [large] * bool(large)
        return sum(self.pool.map(lambda amount: self.take(entity, rpm=amount), amounts))

    def take(self, entity: str, **amounts: int) -> int:
        try:
            with self.limiter.acquire(entity, "api", amounts) as lease:
                return amounts["rpm"] if lease.limited else 10**9
        except RateLimitExceeded:
            return 0

    def adjust(self, times: int, **amounts: int) -> None:
        """Settle more than was asked for, with the limits that this process remembers."""
        for _ in range(times):
            with self.limiter.acquire(f"user-{self.number}", "api", {"rpm": 1}) as lease:
                if amounts:
                    lease.adjust(amounts)

    def refused(self, **amounts: int) -> float:
        """Return the wait of a refusal."""
        try:
            with self.limiter.acquire(f"user-{self.number}", "api", amounts):
                return 0.0
        except RateLimitExceeded as error:
            return error.retry_after_seconds

    def time_until(self, **amounts: int) -> float:
        return self.limiter.time_until(f"user-{self.number}", "api", amounts)

    def forget(self) -> None:
        self.limiter.invalidate_config_cache()

    def set_ahead(self, seconds: float) -> None:
        self.ahead = seconds

    def statuses(self, entity: str, requests: int) -> list[int]:
        """Return the statuses of requests to an application behind the middleware."""

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        async def ask() -> list[int]:
            limited = RateLimitMiddleware(
                app,
                AsyncLimiter.open(self.url, NAMESPACE, limits=[Limit.per_day("rpm", 5)]),
                entity=lambda _: entity,
            )
            found: list[int] = []

            async def send(message: Any) -> None:
                if message["type"] == "http.response.start":
                    found.append(message["status"])

            async def receive() -> Any:
                return {"type": "http.request", "body": b"", "more_body": False}

            scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "client": ("192.0.2.7", 1)}
            for _ in range(requests):
                await limited({**scope}, receive, send)
            return found

        return asyncio.run(ask())


def main() -> None:
    member = Member(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        member.seconds, stage, arguments = json.loads(line)
        named = arguments if isinstance(arguments, dict) else {}
        sys.stdout.write(f"{json.dumps(getattr(member, stage)(**named))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
