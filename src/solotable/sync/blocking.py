"""The blocking engine behind a database, because mutators and pulls run in threads."""

from __future__ import annotations

import asyncio
from typing import Any

from solotable._protocol.engine import AsyncEngine, Capabilities, Engine, ReplyT
from solotable._protocol.requests import Request
from solotable._store import AsyncDatabase, Database
from solotable._store.runner import Inline, Threaded
from solotable.errors import DeclarationError


def blocking_engine(database: Database | AsyncDatabase) -> Engine:
    """Return an engine that threads can call; an asyncio engine is called on the loop that uses it."""
    if isinstance(database, Database):
        return database.engine
    engine: Any = database.engine
    if isinstance(engine, (Inline, Threaded)):
        return engine._engine
    return LoopEngine(engine)


class LoopEngine:
    """An asyncio engine for threads: each request runs on the event loop of the application."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def capabilities(self) -> Capabilities:
        """No capability beside answering requests."""
        return Capabilities()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Use this event loop, the one on which the database was opened."""
        self._loop = loop

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer one request; do not call it on the event loop itself."""
        if self._loop is None:
            raise DeclarationError(
                "Sync got an AsyncDatabase without an event loop; serve it with replicache_router(), or call "
                "sync.attach(asyncio.get_running_loop())."
            )
        return asyncio.run_coroutine_threadsafe(self._engine.handle(request), self._loop).result()

    def close(self) -> None:
        """Do nothing: the database closes its engine."""
