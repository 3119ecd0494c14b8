"""Waiting for progress: until a condition holds, or fail with what was seen. Nothing here measures time.

A loaded machine makes a test slow, and must not make it fail. So a test waits for what the program
reports, and a limit only ends a hang.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

#: The limit of every wait: long enough that only a hang reaches it. pytest's own limit is twice as long.
HANG_SECONDS = 300.0
#: How long an absence is watched; see `holds`.
_MOMENT_SECONDS = 0.05
_POLL_SECONDS = 0.005


def wait_until(condition: Callable[[], T], *, seen: Callable[[], object] | None = None) -> T:
    """Return the condition's first true value; `seen` says what to show when there is none."""
    limit = time.monotonic() + HANG_SECONDS
    while not (value := condition()):
        if time.monotonic() > limit:
            _fail(value, seen)
        time.sleep(_POLL_SECONDS)
    return value


async def wait_until_async(
    condition: Callable[[], object], *, seen: Callable[[], object] | None = None
) -> None:
    """Wait on an event loop, whose other tasks run meanwhile; what the condition returns may be awaited."""
    limit = time.monotonic() + HANG_SECONDS
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return
        if time.monotonic() > limit:
            _fail(value, seen)
        await asyncio.sleep(_POLL_SECONDS)


def holds(condition: Callable[[], object]) -> bool:
    """Whether a condition stays true for a moment, which shows that something does not happen.

    A loaded machine makes this check weaker: it can miss a defect and cannot report one that is not there.
    """
    limit = time.monotonic() + _MOMENT_SECONDS
    while time.monotonic() < limit:
        if not condition():
            return False
        time.sleep(_POLL_SECONDS)
    return bool(condition())


def jitter(dice: random.Random, most_seconds: float = 0.01) -> None:
    """Wait a random moment, so that the next step meets the program anywhere. No assertion depends on it."""
    time.sleep(dice.uniform(0.0, most_seconds))


def _fail(value: object, seen: Callable[[], object] | None) -> None:
    pytest.fail(f"not true after {HANG_SECONDS:.0f} s; seen: {seen() if seen else value!r}")
