"""Servers on both kinds of engine: in memory everything is answered on the loop, on a file it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .running import Client, Running, running


@pytest.fixture(scope="module", params=["memory", "file"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the module's own, which is well after every test."""
    folder: Path = tmp_path_factory.mktemp("server")
    with running(":memory:" if request.param == "memory" else str(folder / "things.db")) as made:
        yield made


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with server.client() as made:
        yield made
    server.is_well()
