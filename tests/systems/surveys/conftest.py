"""The surveys for their tests: in process, through the server and on DynamoDB Local.

`--target` chooses as it does for the store's suite. Every test has a separate table, and a test in which
anything scanned has failed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.surveys.table import surveyor
from tests.store.conftest import PLACES, local_engine, wire_engine

from .moving import Move, moves
from .office import Office

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"office", "move"} & set(metafunc.fixturenames):
        places = PLACES[metafunc.config.getoption("--target")]
        if metafunc.definition.get_closest_marker("in_process") is not None:
            places = tuple(place for place in places if place == "engine")
        metafunc.parametrize("surveys_place", places, scope="session")


@pytest.fixture
def office(request: pytest.FixtureRequest, surveys_place: str) -> Iterator[Office]:
    """A fresh table."""
    yield from Office.opened(surveyor, surveys_place, request)


@pytest.fixture
def move(request: pytest.FixtureRequest, surveys_place: str) -> Iterator[Move]:
    """Eight empty old tables and an empty new one, at one place."""
    yield from moves(surveys_place, request)
