"""Migrations from and to the embedded engine, our server and DynamoDB Local."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

from solotable._protocol.engine import Engine
from solotable._protocol.requests import Control
from solotable.engines import sqlite
from tests.store.conftest import local_engine, wire_engine

from .lab import OLD, Lab, MovableClock, TickingClock, app

__all__ = ["local_engine", "wire_engine"]

#: The places of source and target, by `--target`.
PLACES = {
    "engine": ("engine-engine",),
    "server": ("engine-server", "server-server"),
    "local": ("local-local", "engine-local", "local-engine"),
}
PLACES["both"] = (*PLACES["engine"], *PLACES["server"], *PLACES["local"])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play each scenario where `--target` says: embedded by default, and over the wire if it is marked."""
    if "lab" in metafunc.fixturenames:
        target = metafunc.config.getoption("--target")
        places = PLACES[target]
        if target == "engine" and os.environ.get("TORTURE") == "long":
            places += PLACES["server"]
        elif target == "engine" and metafunc.definition.get_closest_marker("over_the_wire"):
            places += ("engine-server",)
        metafunc.parametrize("places", places, scope="session")


@pytest.fixture
def lab(request: pytest.FixtureRequest, places: str) -> Iterator[Lab]:
    """A migration between two places, which has not been created yet."""
    opened: list[Engine] = []
    clock = MovableClock()

    def engine_of(place: str) -> Engine:
        if place != "engine":
            found: Engine = request.getfixturevalue("wire_engine" if place == "server" else "local_engine")
            return found
        opened.append(sqlite.open(sqlite.MEMORY, clock=clock))
        return opened[-1]

    source, target = places.split("-")
    prefix = f"t{uuid.uuid4().hex[:12]}."
    made = Lab(engine_of(source), engine_of(target), prefix, clock=clock)
    yield made
    for place, engine in ((source, made.old.engine), (target, made.new.engine)):
        if place != "engine":
            names = [prefix + each.name for each in (*OLD, app)] + [prefix + "control"]
            listed = engine.handle(Control(operation="ListTables", members={}))["TableNames"]
            for name in set(names) & set(listed):
                engine.handle(Control(operation="DeleteTable", members={"TableName": name}))
    for engine in opened:
        engine.close()


@pytest.fixture
def here() -> Iterator[Lab]:
    """A migration between two embedded engines, with a clock that only the test moves."""
    clock = TickingClock()
    engines = sqlite.open(sqlite.MEMORY, clock=clock), sqlite.open(sqlite.MEMORY, clock=clock)
    yield Lab(*engines, clock=clock)
    for engine in engines:
        engine.close()
