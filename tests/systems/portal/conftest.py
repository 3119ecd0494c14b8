"""The portal for its tests: in process, through the server and on DynamoDB Local.

`--target` chooses as it does for the store's suite. Every test has separate tables, and a test in which
anything scanned has failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.systems.portal.tables import TABLES
from solotable.systems.signed_folder import SignedFolderStorage
from tests.store.conftest import PLACES, local_engine, wire_engine

from .studio import Studio

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "portal" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        metafunc.parametrize("portal_place", places, scope="session")


@pytest.fixture
def portal(request: pytest.FixtureRequest, portal_place: str, tmp_path: Path) -> Iterator[Studio]:
    """The portal on fresh tables and a fresh folder."""
    for studio in Studio.opened(TABLES[0], portal_place, request, *TABLES[1:]):
        studio.storage = SignedFolderStorage(
            tmp_path / "files", secret=b"s" * 32, base_url="/files", clock=studio.clock
        )
        yield studio
