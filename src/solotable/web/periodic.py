"""Background work of an app at a fixed interval."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def run_every(seconds: float, work: Callable[[], None]) -> AsyncIterator[None]:
    """Run blocking work in a thread at an interval, and once more on exit. The work must not raise."""
    stopping = asyncio.Event()

    async def repeat() -> None:
        last = False
        while not last:
            last = stopping.is_set()
            await asyncio.to_thread(work)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        stopping.set()
        await task
