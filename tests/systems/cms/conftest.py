"""The CMS for its tests: in process, through the server and on DynamoDB Local, with recorded requests.

`--target` chooses as it does for the store's suite. Every test has a separate table, and a test in
which anything scanned has failed (hard rule 1).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.cms import cms
from tests.store.conftest import PLACES, local_engine, wire_engine

from .site import Site

__all__ = ["local_engine", "wire_engine"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "site" in metafunc.fixturenames:
        places = PLACES[metafunc.config.getoption("--target")]
        metafunc.parametrize("cms_place", places, scope="session")


@pytest.fixture
def site(request: pytest.FixtureRequest, cms_place: str) -> Iterator[Site]:
    """A fresh table with the tenants acme and zeta."""
    yield from Site.opened(cms, cms_place, request)
