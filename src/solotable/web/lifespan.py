"""The database of an app: opened when it starts, closed when it ends."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI

from solotable._connect import connect_async
from solotable._entities.declare.table import Table
from solotable._store import AsyncDatabase

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def lifespan(
    source: str | AsyncDatabase,
    *tables: Table,
    cursor_secrets: Sequence[bytes] = (),
    clock: Callable[[], float] = time.time,
    session: Any = None,
    during: Lifespan | None = None,
) -> Lifespan:
    """Return the lifespan of an app over a database: `FastAPI(lifespan=lifespan(url, table))`.

    A database that is open already stays open when the app ends. Several workers need the same
    `cursor_secrets`: without them a cursor is good for the worker that made it. `during(app)` is
    entered once the database is open, and left before it closes.
    """

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        ours = isinstance(source, str)
        database = (
            connect_async(source, *tables, cursor_secrets=cursor_secrets, clock=clock, session=session)
            if isinstance(source, str)
            else source
        )
        app.state.database = database
        try:
            if during is None:
                yield
            else:
                async with during(app):
                    yield
        finally:
            del app.state.database
            if ours:
                await database.close()

    return span
