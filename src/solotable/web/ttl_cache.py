"""Answers that are asked for once and remembered for a while: bounded in time and in size.

Whoever asks while an answer is on its way waits for that one. Errors are not remembered.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Remembers up to `most` answers, or as many as weigh that much together."""

    def __init__(
        self,
        *,
        ttl_seconds: float,
        most: int,
        weigh: Callable[[V], int] = lambda _: 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl = ttl_seconds
        self._most = most
        self._weigh = weigh
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, int, V]] = OrderedDict()
        self._weight = 0
        self._asking: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return the answer for a key, from memory while it is fresh."""
        known = self._kept.get(key)
        if known is not None and self._clock() < known[0]:
            self._kept.move_to_end(key)
            return known[2]
        asking = self._asking.get(key)
        if asking is None or asking.get_loop() is not asyncio.get_running_loop():
            asking = asyncio.create_task(ask())
            self._asking[key] = asking
            asking.add_done_callback(lambda done: self._answered(key, done))
        # One caller that gives up must not take the answer from the others.
        return await asyncio.shield(asking)

    def forget(self, match: Callable[[K], bool]) -> None:
        """Forget the answers for some keys, also those that are on their way: ask again."""
        for key in [key for key in self._kept if match(key)]:
            self._drop(key)
        for key in [key for key in self._asking if match(key)]:
            del self._asking[key]

    def _answered(self, key: K, done: asyncio.Task[V]) -> None:
        failed = done.cancelled() or done.exception() is not None
        # What was forgotten meanwhile was asked before the change, and is not remembered.
        if self._asking.get(key) is not done:
            return
        del self._asking[key]
        if not failed:
            self._keep(key, done.result())

    def _keep(self, key: K, value: V) -> None:
        self._drop(key)
        weight = self._weigh(value)
        if weight > self._most:
            return
        self._kept[key] = (self._clock() + self._ttl, weight, value)
        self._weight += weight
        while self._weight > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: K) -> None:
        known = self._kept.pop(key, None)
        if known is not None:
            self._weight -= known[1]
