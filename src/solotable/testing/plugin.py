"""The pytest plugin: fixtures for stores that are fresh, told the time, recorded and faulty.

Every pytest loads this module where the package is installed, so it imports nothing of the package
before a fixture is used: no session gets slower, and none of our modules escapes a coverage tool.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AsyncDatabase, Database

    from .clock import Clock
    from .engines.faults import Faults
    from .engines.journal import Journal
    from .fresh_stores import Templates
    from .remote_tables import Place
    from .stage import Stage


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("solotable")
    group.addoption(
        "--solotable-url",
        metavar="URL",
        help="run the tests that use solotable's fixtures on this database (http://host:port, "
        "aws://?region=..., sqlite:///file.db); tables are made for each test and deleted after it",
    )
    group.addoption(
        "--solotable-cost",
        action="store_true",
        help="print what each test that uses solotable's fixtures cost: RCU, WCU, requests, scans",
    )
    parser.addini(
        "solotable_models",
        type="linelist",
        help="the tables that solotable_db() opens when it is given none, each as package.module:table",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Judge the URL, and prepare the cost report, where they are asked for."""
    url = config.getoption("--solotable-url")
    if url is not None:
        from solotable.errors import DeclarationError

        from .remote_tables import Place

        try:
            Place(url)
        except DeclarationError as wrong:
            raise pytest.UsageError(f"--solotable-url: {wrong}") from None
    if config.getoption("--solotable-cost") and not hasattr(config, "workerinput"):
        from .cost_report import CostReport

        config.pluginmanager.register(CostReport(), "solotable-cost-report")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say where tests run, if that is not in memory."""
    url = config.getoption("--solotable-url")
    return None if url is None else f"solotable: {url}"


@pytest.fixture(scope="session")
def _solotable_source(pytestconfig: pytest.Config) -> Iterator[Templates | Place]:
    from .fresh_stores import Templates
    from .remote_tables import Place

    url = pytestconfig.getoption("--solotable-url")
    source = Templates() if url is None else Place(url)
    yield source
    source.close()


@pytest.fixture
def _solotable_stage(request: pytest.FixtureRequest, _solotable_source: Templates | Place) -> Iterator[Stage]:
    from .stage import Stage

    # The clock is there before whatever the test's other fixtures write.
    stage = Stage(_solotable_source, told="solotable_clock" in request.fixturenames)
    try:
        yield stage
    finally:
        stage.close()
        if request.config.getoption("--solotable-cost") and stage.journal.records:
            from .cost_report import PROPERTY

            journal = stage.journal
            costs = [journal.rcu, journal.wcu, len(journal.records), len(journal.scans)]
            request.node.user_properties.append((PROPERTY, costs))


@pytest.fixture
def solotable_clock(_solotable_source: Templates | Place, _solotable_stage: Stage) -> Clock:
    """A clock that stands still at 2026-01-01 until the test moves it: `.now`, `.tick(60)`, `.set(...)`."""
    from .remote_tables import Place

    if isinstance(_solotable_source, Place) and not _solotable_source.takes_clock:
        pytest.skip(f"solotable_clock: nobody can tell {_solotable_source.address.text} the time.")
    return _solotable_stage.told_clock()


@pytest.fixture
def solotable_db(_solotable_stage: Stage, pytestconfig: pytest.Config) -> Callable[..., Database]:
    """Open the test's own store for tables: `solotable_db(shop)`; without any, those of the ini file."""
    return lambda *tables: _solotable_stage.database(tables or _models(pytestconfig))


@pytest.fixture
def solotable_async_db(_solotable_stage: Stage, pytestconfig: pytest.Config) -> Callable[..., AsyncDatabase]:
    """Open the same store as `solotable_db` does, to be awaited; it needs no event loop yet."""
    return lambda *tables: _solotable_stage.async_database(tables or _models(pytestconfig))


@pytest.fixture
def solotable_faults(_solotable_stage: Stage) -> Faults:
    """What is to go wrong in the test's store: `solotable_faults.throttle("UpdateItem", times=2)`."""
    return _solotable_stage.faults


@pytest.fixture
def solotable_journal(_solotable_stage: Stage) -> Journal:
    """Everything that the test has asked of its store, with what it cost."""
    return _solotable_stage.journal


@pytest.fixture
def solotable_cost(_solotable_stage: Stage) -> Callable[..., AbstractContextManager[None]]:
    """Assert what a block costs, whichever of the test's stores it uses: `with solotable_cost(rcu=0.5):`."""
    from .cost import assert_cost

    return partial(assert_cost, _solotable_stage.journal)


@pytest.fixture
def solotable_endpoint(
    _solotable_source: Templates | Place, _solotable_stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Serve the test's store over DynamoDB's protocol, and point AWS SDKs of this process at it; the URL."""
    from .remote_tables import Place

    if isinstance(_solotable_source, Place) and not _solotable_source.takes_clock:
        pytest.skip(f"solotable_endpoint serves an embedded engine, not {_solotable_source.address.text}.")
    from .endpoint import DUMMIES, UNWANTED, serving

    with serving(_solotable_stage.engine) as url:
        for name in UNWANTED:
            monkeypatch.delenv(name, raising=False)
        for name, value in {**DUMMIES, "AWS_ENDPOINT_URL_DYNAMODB": url}.items():
            monkeypatch.setenv(name, value)
        yield url


def _models(config: pytest.Config) -> tuple[Table, ...]:
    return tuple(map(_model, config.getini("solotable_models")))


def _model(place: str) -> Table:
    from solotable._entities.declare.table import Table

    module, _, name = place.partition(":")
    found = getattr(importlib.import_module(module), name, None) if name else None
    if not isinstance(found, Table):
        raise pytest.UsageError(f"solotable_models: {place!r} is no table; write package.module:table.")
    return found
