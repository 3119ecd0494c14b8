"""Short reads of a local engine are answered on the event loop, everything else by threads."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import pytest

from solotable import Entity, Key, Query, Table, Version, pattern
from solotable._connect import ensure, scope_over
from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Request
from solotable._store import AsyncDatabase
from solotable._store.runner import Threaded
from solotable.engines import sqlite

notes = Table("Notes")


class Note(Entity, table=notes):
    """What is kept."""

    key = Key("NOTES", "NOTE#{note_id}")

    note_id: str
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def every(cls) -> Query[Note]:
        """Return all."""
        return cls.key.query()


class Watched:
    """An engine that notes on which thread it was asked for what."""

    def __init__(self, *, short_reads: bool) -> None:
        self.inner = sqlite.open(sqlite.MEMORY)
        self.capabilities = Capabilities(short_reads=short_reads)
        self.aside: dict[str, bool] = {}
        self._home = threading.get_ident()

    def handle(self, request: Request[Any], /) -> Any:
        self.aside[type(request).__name__] = threading.get_ident() != self._home
        return self.inner.handle(request)

    def close(self) -> None:
        self.inner.close()


async def _use(engine: Watched) -> None:
    ensure(engine.inner, notes, "Notes")
    threaded = Threaded(engine, ThreadPoolExecutor(1))
    db = AsyncDatabase(threaded, scope_over({"Notes": "Notes"}, [notes], [b"s" * 32], lambda: 1.0))
    await db.put(Note(note_id="1"))
    await db.get(Note, note_id="1")
    await db.page(Note.every(), limit=10)
    await db.close()


@pytest.mark.parametrize("short_reads", [True, False])
def test_only_short_reads_of_an_engine_that_has_them_stay_on_the_loop(short_reads: bool) -> None:
    engine = Watched(short_reads=short_reads)
    asyncio.run(_use(engine))
    assert engine.aside == {"PutItem": True, "GetItem": not short_reads, "Query": not short_reads}


async def _unlimited(engine: Watched) -> int:
    ensure(engine.inner, notes, "Notes")
    threaded = Threaded(engine, ThreadPoolExecutor(1))
    db = AsyncDatabase(threaded, scope_over({"Notes": "Notes"}, [notes], [b"s" * 32], lambda: 1.0))
    found = [note async for note in db.all(Note.every())]
    await db.close()
    return len(found)


def test_a_query_without_a_limit_is_not_short() -> None:
    engine = Watched(short_reads=True)
    assert asyncio.run(_unlimited(engine)) == 0
    assert engine.aside == {"Query": True}


async def _turns() -> int:
    """Return how often another task got a turn during a row of short reads."""
    engine = Watched(short_reads=True)
    ensure(engine.inner, notes, "Notes")
    db = AsyncDatabase(
        Threaded(engine, ThreadPoolExecutor(1)),
        scope_over({"Notes": "Notes"}, [notes], [b"s" * 32], lambda: 1.0),
    )
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    for _ in range(320):
        await db.get(Note, note_id="1")
    task.cancel()
    await db.close()
    return turns


def test_a_row_of_short_reads_lets_others_have_a_turn() -> None:
    assert asyncio.run(_turns()) >= 5
