"""Builds for their tests: in process, through the server and on DynamoDB Local."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.store.conftest import PLACES, local_engine, wire_engine

from .workshop import Workshop

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "workshop" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        if any(metafunc.definition.iter_markers("parametrize")):
            # Tests with a case for each stage run in one place; --target chooses another one.
            places = places[:1]
        metafunc.parametrize("workshop_place", places, scope="session")


@pytest.fixture
def workshop(request: pytest.FixtureRequest, workshop_place: str, tmp_path: Path) -> Iterator[Workshop]:
    """The community on a fresh table and a fresh folder."""
    for made in Workshop.opened(community, workshop_place, request):
        made.folder = tmp_path / "files"
        made.storage = FolderStorage(made.folder)
        yield made
