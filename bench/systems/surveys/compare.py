"""Run the ten queries and the typical edits on both layouts; units are what replies report."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from solotable import AsyncDatabase, Table, connect_async
from solotable._connect import ensure, open_engine
from solotable.errors import ItemTooLarge
from solotable.urls import Url
from tests.conformance import dynamodb_local

from . import granular_layout, old_layout
from .granular_layout import GranularLayout
from .old_layout import OldLayout
from .workload import LOAD, Size, dollars_a_month

EMBEDDED = "embedded engine"
LOCAL = "DynamoDB Local"
OLD = "old"
OURS = "ours"
_NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
#: A synchronisation asks for the changes since its last one.
_SINCE = timedelta(minutes=5)

LAYOUTS: dict[str, tuple[type[OldLayout] | type[GranularLayout], tuple[Table, ...]]] = {
    OLD: (OldLayout, old_layout.TABLES),
    OURS: (GranularLayout, granular_layout.TABLES),
}

#: Figures by operation; of a layout that cannot hold the data, the reason under "fails".
Measured = dict[str, Any]


@dataclass
class Clock:
    """The time of a layout's writes: every call takes a second, so that times of changes differ."""

    seconds: float = _NOON.timestamp()

    def __call__(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        """Return the time as a datetime."""
        return datetime.fromtimestamp(self.seconds, UTC)


@contextmanager
def places(folder: Path) -> Iterator[tuple[dict[str, Callable[[], str]], dict[str, str]]]:
    """Yield the places to measure in, each with a function that returns the URL of an empty database."""
    numbers = iter(range(1_000))
    here: dict[str, Callable[[], str]] = {EMBEDDED: lambda: f"sqlite:///{folder / f'{next(numbers)}.db'}"}
    try:
        jars = dynamodb_local.find_or_fetch()
    except dynamodb_local.Unavailable as reason:
        yield here, {LOCAL: str(reason)}
        return
    with dynamodb_local.serve(jars, log=folder / "dynamodb-local.log") as server:
        url = f"http://127.0.0.1:{server.port}"
        yield {**here, LOCAL: lambda: f"{url}?prefix=b{next(numbers)}."}, {}


@dataclass
class Contender:
    """One layout with its data."""

    db: AsyncDatabase
    clock: Clock
    operations: dict[str, Callable[[int], Awaitable[object]]]
    figures: Measured = field(default_factory=dict)


def measure(url: Callable[[], str], size: Size, *, rounds: int) -> dict[str, Measured]:
    """Return the figures of both layouts with surveys of a size, in one place."""
    return asyncio.run(_measure(url, size, rounds))


async def _measure(url: Callable[[], str], size: Size, rounds: int) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    async with AsyncExitStack() as stack:
        contenders: dict[str, Contender] = {}
        for name, (layout, tables) in LAYOUTS.items():
            try:
                contenders[name] = await load(stack, layout, tables, url(), size)
                found[name] = contenders[name].figures
            except ItemTooLarge as error:
                found[name] = {"fails": str(error)}
        for operation in LOAD:
            for contender in contenders.values():
                contender.figures[operation] = await _units(contender, operation)
            taken: dict[str, list[float]] = {name: [] for name in contenders}
            for call in range(1, rounds + 1):
                # In turn, so that a slow moment of the machine hits both.
                for name, contender in contenders.items():
                    taken[name].append(await _seconds(contender, operation, call))
            for name, contender in contenders.items():
                contender.figures[operation] |= {
                    "p50_ms": statistics.median(taken[name]) * 1e3,
                    "best_ms": min(taken[name]) * 1e3,
                }
    return found


async def load(
    stack: AsyncExitStack,
    layout: type[OldLayout] | type[GranularLayout],
    tables: tuple[Table, ...],
    url: str,
    size: Size,
) -> Contender:
    """Store the data of a size in a layout, and let a few items wait for their synchronisation."""
    clock = Clock()
    create_tables(url, tables)
    db = await stack.enter_async_context(connect_async(url, *tables, clock=clock))
    loaded = layout(db, size)
    await loaded.load()
    clock.seconds += 3600
    await loaded.mark_changed()
    clock.seconds += 60
    changed = clock.now() - _SINCE
    return Contender(db, clock, loaded.operations(lambda: changed))


async def _units(contender: Contender, operation: str) -> dict[str, float]:
    """Return what the replies to one call report."""
    contender.clock.seconds += 1
    with contender.db.consumed() as used:
        await contender.operations[operation](0)
    return {
        "requests": used.requests,
        "rcu": used.rcu,
        "wcu": used.wcu,
        "wcu_of_indexes": sum(units.wcu for units in used.indexes.values()),
        "dollars_a_month": dollars_a_month(operation, used.rcu, used.wcu),
    }


async def _seconds(contender: Contender, operation: str, call: int) -> float:
    contender.clock.seconds += 1
    began = time.perf_counter()
    await contender.operations[operation](call)
    return time.perf_counter() - began


def create_tables(url: str, tables: tuple[Table, ...]) -> None:
    """Create the tables of a layout where they do not exist."""
    address = Url.parse(url)
    engine = open_engine(address)
    try:
        for table in tables:
            ensure(engine, table, address.settings.get("prefix", "") + table.name)
    finally:
        engine.close()
