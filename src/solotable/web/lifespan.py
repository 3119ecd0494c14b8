"""The app's database: opened when the app starts, closed when it stops, and given to routes."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request

from solotable import AsyncDatabase, Table, connect_async
from solotable.observe import Observer

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def lifespan(
    source: str | AsyncDatabase,
    *tables: Table,
    cursor_secrets: Sequence[bytes] = (),
    clock: Callable[[], float] = time.time,
    session: Any = None,
    observer: Observer | None = None,
    during: Lifespan | None = None,
) -> Lifespan:
    """Return a lifespan that opens a database: `FastAPI(lifespan=lifespan(url, table))`.

    A database that you pass open stays open when the app stops. Several workers need the same
    `cursor_secrets`; without them a cursor works only in the worker that made it. `observer` gets each
    request of a database that the lifespan opens. `during(app)` is entered after the database opens, and
    left before it closes.
    """

    @asynccontextmanager
    async def span(app: FastAPI) -> AsyncIterator[None]:
        database = (
            connect_async(
                source,
                *tables,
                cursor_secrets=cursor_secrets,
                clock=clock,
                session=session,
                observer=observer,
            )
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
            if isinstance(source, str):
                await database.close()

    return span


def get_database(request: Request) -> AsyncDatabase:
    """Return the database that the app's lifespan opened."""
    found: AsyncDatabase | None = getattr(request.app.state, "database", None)
    if found is None:
        raise RuntimeError(
            "The app has no open database: pass FastAPI(lifespan=lifespan(url, table)). A TestClient runs "
            "the lifespan only in a `with` block."
        )
    return found


# A coroutine, because FastAPI runs plain functions in threads.
async def _database(request: Request) -> AsyncDatabase:
    """Return the database that the app's lifespan opened."""
    return get_database(request)


DatabaseDep = Annotated[AsyncDatabase, Depends(_database)]
