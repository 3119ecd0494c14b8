"""The work that every rate limiter is given, and how the process that holds one is told and answers.

A driver is a process with one limiter in it. It prints a line of JSON when it is warm, and then one
for each line of orders: how many acquires it has done in how much time. Standard library only: a
peer's driver runs in an environment of its own. What the figures mean is not judged here.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

RESOURCE = "gpt-4"
CONSUME = {"rpm": 1, "tpm": 500}
#: Tokens a minute, and what the bucket holds: in use, never full again and never empty.
RATES = {"rpm": (600, 10**8), "tpm": (300_000, 10**10)}
#: How many entities take turns.
WORKLOADS = {"100 entities": 100, "one hot entity": 1}
#: How many callers there are at a time.
KINDS = {"sync": 1, "async": 16}
#: Acquires of each entity before anything is measured.
_WARM = 3


def entity(number: int, entities: int) -> str:
    """Return the entity whose turn it is.

    >>> entity(101, 100), entity(101, 1)
    ('entity-100-1', 'entity-1-0')
    """
    return f"entity-{entities}-{number % entities}"


def serve(acquire: Callable[[str], object], about: dict[str, Any]) -> None:
    """Warm up, say so, and do the rounds that are ordered: one caller."""
    for entities in WORKLOADS.values():
        for number in range(entities * _WARM):
            acquire(entity(number, entities))
    _answer(about)
    for order in map(json.loads, sys.stdin):
        watch, entities, number = _Watch(order["seconds"]), order["entities"], 0
        while watch.runs():
            acquire(entity(number, entities))
            number += 1
        _answer(watch.stopped(number))


async def aserve(acquire: Callable[[str], Awaitable[object]], about: dict[str, Any]) -> None:
    """Do as `serve` does with several callers on one event loop."""
    callers = KINDS["async"]

    async def call(first: int, entities: int, watch: _Watch) -> int:
        number = first
        while watch.runs():
            await acquire(entity(number, entities))
            number += callers
        return (number - first) // callers

    for entities in WORKLOADS.values():
        for number in range(entities * _WARM):
            await acquire(entity(number, entities))
    _answer(about)
    for order in map(json.loads, sys.stdin):
        watch = _Watch(order["seconds"])
        done = await asyncio.gather(*(call(first, order["entities"], watch) for first in range(callers)))
        _answer(watch.stopped(sum(done)))


class _Watch:
    """Wall clock and this process's own CPU, all its threads, from now on."""

    def __init__(self, seconds: float) -> None:
        gc.collect()
        self._cpu = time.process_time()
        self._start = time.perf_counter()
        self._end = self._start + seconds

    def runs(self) -> bool:
        return time.perf_counter() < self._end

    def stopped(self, acquires: int) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self._start, time.process_time() - self._cpu
        return {"acquires": acquires, "wall": wall, "cpu": cpu}


def _answer(members: dict[str, Any]) -> None:
    print(json.dumps(members), flush=True)
