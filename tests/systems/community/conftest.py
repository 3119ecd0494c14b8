"""The community for its tests: in process, through the server and on DynamoDB Local.

`--target` chooses as it does for the store's suite. Every test has a separate table, and a test in which
anything scanned has failed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.community.table import community
from tests.store.conftest import PLACES, local_engine, wire_engine

from .town import Town

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "town" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        metafunc.parametrize("town_place", places, scope="session")


@pytest.fixture
def town(request: pytest.FixtureRequest, town_place: str) -> Iterator[Town]:
    """The community on a fresh table."""
    yield from Town.opened(community, town_place, request)
