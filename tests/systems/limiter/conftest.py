"""The limiter for its suite: in process, through our server and on DynamoDB Local, with every request noted.

`--target` chooses as it does for the store's suite. Every test has a table of its own, and a test in
which anything scanned has failed, unless it set `place.may_scan`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any, Literal, Protocol, TypeVar

import pytest

from solotable._flows.retry import Flow
from solotable.engines import sqlite
from tests.store.conftest import PLACES, local_engine, wire_engine
from tests.store.opening import Clock

from .ground import Place, open_place

__all__ = ["local_engine", "wire_engine"]

T = TypeVar("T")
Mode = Literal["sync", "async"]


class Drive(Protocol):
    """Runs a flow over the test's table."""

    def __call__(self, flow: Flow[T], /) -> T: ...


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        metafunc.parametrize("limiter_place", places, scope="session")
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", ["sync", "async"])


@pytest.fixture
def clock() -> Clock:
    """The clock of the stores and, in process, of the engine: it stands until `clock.seconds` is moved."""
    return Clock()


@pytest.fixture
def place(request: pytest.FixtureRequest, limiter_place: str, clock: Clock) -> Iterator[Place]:
    """A fresh table of the limiter: `place.db` and `place.adb` stand on one engine."""
    engine: Any
    if limiter_place == "engine":
        engine = sqlite.open(sqlite.MEMORY, clock=clock)
    else:
        engine = request.getfixturevalue("wire_engine" if limiter_place == "server" else "local_engine")
    with asyncio.Runner() as runner:
        prefix = f"l{uuid.uuid4().hex[:12]}."
        made = open_place(limiter_place, engine, clock=clock, runner=runner, prefix=prefix)
        try:
            yield made
            made.judge()
        finally:
            made.close()
            if limiter_place == "engine":
                engine.close()


@pytest.fixture
def drive(place: Place, mode: Mode) -> Drive:
    """Runs flows blocking in one run of the test, and awaited in the other."""
    return place.run if mode == "sync" else place.arun
