"""The CMS for its tests: in process, through the server and on DynamoDB Local, with recorded requests.

`--target` chooses as it does for the store's suite. Every test has a separate table, and a test in
which anything scanned has failed (hard rule 1).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.store.conftest import PLACES, local_engine, wire_engine
from tests.store.opening import Clock

from .site import Site, open_site

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "site" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        metafunc.parametrize("cms_place", places, scope="session")


@pytest.fixture
def site(request: pytest.FixtureRequest, cms_place: str) -> Iterator[Site]:
    """A fresh table with the tenants acme and zeta."""
    from solotable.engines import sqlite

    clock = Clock()
    engine: Any
    if cms_place == "engine":
        engine = sqlite.open(sqlite.MEMORY, clock=clock)
    else:
        engine = request.getfixturevalue("wire_engine" if cms_place == "server" else "local_engine")
    with asyncio.Runner() as runner:
        made = open_site(engine, clock=clock, runner=runner, prefix=f"c{uuid.uuid4().hex[:12]}.")
        try:
            yield made
            made.no_scans()
        finally:
            made.close(drop=cms_place != "engine")
            if cms_place == "engine":
                engine.close()
