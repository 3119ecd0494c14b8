"""A DynamoDB endpoint on a free port, in a thread, for the duration of a block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from solotable.server import Server, Settings
from solotable.server.run import ServedEngine, run

#: Configuration that SDKs need; the values have no meaning.
DUMMY_VARIABLES = {
    "AWS_ACCESS_KEY_ID": "solotable",
    "AWS_SECRET_ACCESS_KEY": "solotable",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
}
#: Variables that take precedence over the dummies, or travel with them.
CONFLICTING_VARIABLES = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
)


@dataclass(frozen=True, slots=True)
class _Running:
    port: int
    loop: asyncio.AbstractEventLoop
    ended: asyncio.Event


@contextmanager
def serve_in_thread(engine: ServedEngine) -> Iterator[str]:
    """Serve an engine and yield the URL."""
    started: Future[_Running] = Future()
    thread = threading.Thread(
        target=lambda: run(_serve(engine, started)), name="solotable-endpoint", daemon=True
    )
    thread.start()
    running = started.result()
    try:
        yield f"http://127.0.0.1:{running.port}"
    finally:
        running.loop.call_soon_threadsafe(running.ended.set)
        thread.join()


async def _serve(engine: ServedEngine, started: Future[_Running]) -> None:
    # A sweep would surprise the test.
    server = Server(engine, Settings(port=0, sweep_seconds=0, grace_seconds=1))
    try:
        port = await server.start()
    except BaseException as fault:
        started.set_exception(fault)
        raise
    ended = asyncio.Event()
    started.set_result(_Running(port, asyncio.get_running_loop(), ended))
    await ended.wait()
    await server.stop()
