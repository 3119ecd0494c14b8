"""How a figure is taken: contenders in turn, many short rounds, the median of the rounds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[int], object]
Clock = Callable[[], float]


def race(
    contenders: Mapping[str, Work], *, rounds: int, calls: int, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """Return the median microseconds of a call for each contender.

    The contenders take turns in every round, so that a slow moment of the machine hits all of them.
    With `clock=time.process_time` it is this process's own work that counts, not its waiting.
    """
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        _round(work, 0, max(1, calls // 4), clock)
    for number in range(rounds):
        for name, work in contenders.items():
            taken[name].append(_round(work, number * calls, calls, clock))
    return {name: statistics.median(times) for name, times in taken.items()}


def _round(work: Work, first: int, calls: int, clock: Clock) -> float:
    gc.collect()
    gc.disable()
    try:
        start = clock()
        for number in range(first, first + calls):
            work(number)
        return (clock() - start) / calls * 1e6
    finally:
        gc.enable()
