"""Work that an app does beside its requests, every so often."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


@asynccontextmanager
async def every(seconds: float, work: Callable[[], None]) -> AsyncIterator[None]:
    """Do blocking work in a thread every so often, and once more at the end; it must not raise."""
    stopping = asyncio.Event()

    async def follow() -> None:
        last = False
        while not last:
            last = stopping.is_set()
            await asyncio.to_thread(work)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)

    task = asyncio.create_task(follow())
    try:
        yield
    finally:
        stopping.set()
        await task
