"""Stores for the suite: blocking and awaited, in process, through our server, and on DynamoDB Local.

`--target` chooses as it does for the conformance cases. Every test has tables of its own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from solotable import Database, Store
from solotable._protocol.engine import Engine
from solotable.engines import dynamodb, sqlite
from tests.serving import served

from .models import ALL
from .opening import Clock, Opening, Spy

PLACES = {
    "engine": ("engine", "server"),
    "server": ("server",),
    "local": ("local",),
    "both": ("engine", "server", "local"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "opening" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        marker = metafunc.definition.get_closest_marker("in_process")
        if marker is not None:
            places = tuple(place for place in places if place == "engine")
        inside = pytest.mark.skip(reason="in process only: it looks into the engine, or moves its clock")
        chosen = places or (pytest.param("engine", marks=inside),)
        metafunc.parametrize("place", chosen, scope="session")
        blocking = metafunc.definition.get_closest_marker("blocking")
        metafunc.parametrize("mode", ["sync"] if blocking else ["sync", "async"])


@pytest.fixture(scope="session")
def wire_engine() -> Iterator[Engine]:
    """Our own server; one per worker."""
    with served("--memory") as running:
        engine = dynamodb.open(endpoint_url=running.url)
        yield engine
        engine.close()


@pytest.fixture(scope="module")
def local_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """DynamoDB Local."""
    server = request.getfixturevalue("local")
    engine = dynamodb.open(endpoint_url=f"http://127.0.0.1:{server.port}")
    yield engine
    engine.close()


@pytest.fixture
def opening(request: pytest.FixtureRequest, place: str, mode: Literal["sync", "async"]) -> Iterator[Opening]:
    """The way to open stores; all of one test share an engine and its tables."""
    clock = Clock()
    engine: Any
    if place == "engine":
        engine = sqlite.open(sqlite.MEMORY, clock=clock)
    else:
        engine = request.getfixturevalue("wire_engine" if place == "server" else "local_engine")
    with asyncio.Runner() as runner:
        made = Opening(
            engine=engine,
            spy=Spy(engine),
            clock=clock,
            runner=runner if mode == "async" else None,
            prefix=f"t{uuid.uuid4().hex[:12]}.",
            place=place,
        )
        try:
            yield made
        finally:
            made.close()
            if place == "engine":
                engine.close()


@pytest.fixture
def base(opening: Opening) -> Database:
    """The database of the suite's two large tables."""
    return opening(*ALL)


@pytest.fixture
def db(base: Database) -> Store:
    """The store of the tenant acme."""
    return base.tenant("acme")
