"""A shop in the middle of a migration, with a blocking or an awaited router over spied engines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import pytest

from solotable import AsyncDatabase, Database, Table
from solotable._connect import over, to_async
from solotable.engines import sqlite
from solotable.migrations.migration import Migration
from solotable.migrations.router import AsyncRouter, Router, RouterOptions, StoreSide
from tests.store.awaited import Awaited
from tests.store.opening import Spy

from .shop import OldShop, create_old_tables, migration_of, shop

_SERVERS = ["file to server", "server to server"]
_LOCAL = ["file to DynamoDB Local"]
_WIRE_PLACES = {"engine": _SERVERS, "server": _SERVERS, "local": _LOCAL, "both": _SERVERS + _LOCAL}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play the tests over the wire where `--target` says."""
    if "wire_place" in metafunc.fixturenames:
        metafunc.parametrize("wire_place", _WIRE_PLACES[metafunc.config.getoption("--target")])


class Monotonic:
    """A monotonic clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Shop:
    """Both databases of the shop, its migration, and routers over it."""

    old: Database
    new: Database
    old_spy: Spy
    new_spy: Spy
    migration: Migration
    clock: Monotonic
    runner: asyncio.Runner | None
    opened: list[Any] = field(default_factory=list)

    def router(self, new: Any = StoreSide, **options: Any) -> Router[Any]:
        """Return a router, as another process would open one."""
        given = RouterOptions(**{"clock": self.clock, "settle_seconds": 0.0, **options})
        if self.runner is None:
            router: Any = Router(self.migration, old=OldShop, new=new, options=given)
            self.opened.append(router)
            return cast("Router[Any]", router)
        engine = to_async(self.new_spy)
        made = AsyncRouter(
            self.migration,
            old=OldShop,
            new=new,
            sources=to_async(self.old_spy),
            target=AsyncDatabase(engine, self.new.scope),
            options=given,
        )
        router = Awaited(self.runner, made)
        self.opened.append(router)
        return cast("Router[Any]", router)


@pytest.fixture(params=["sync", "async"])
def mode(request: pytest.FixtureRequest) -> Literal["sync", "async"]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def one(mode: str) -> Iterator[Shop]:
    """A migration between two engines, whose source takes writes."""
    old_engine, new_engine = sqlite.open(sqlite.MEMORY), sqlite.open(sqlite.MEMORY)
    old_spy, new_spy = Spy(old_engine), Spy(new_engine)
    old, new = over(old_spy, (Table("Unused"),)), over(new_spy, (shop,))
    create_old_tables(old)
    with asyncio.Runner() as runner:
        made = Shop(
            old,
            new,
            old_spy,
            new_spy,
            migration_of(old, new),
            Monotonic(),
            runner if mode == "async" else None,
        )
        yield made
        for router in made.opened:
            router.close()
    old_engine.close()
    new_engine.close()
