"""The pytest plugin: fixtures for fresh, recorded and faulty stores with a controlled clock.

Every pytest run loads this module where the package is installed. It imports nothing of the package before
a fixture is used, so it slows no session and hides no module from a coverage tool.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._store import AsyncDatabase, Database

    from .clock import Clock
    from .engines.faults import Faults
    from .engines.journal import Journal
    from .memory_tables import DatabaseTemplates
    from .remote_tables import RemoteDatabase
    from .store_fixture import StoreFixture


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("solotable")
    group.addoption(
        "--solotable-url",
        metavar="URL",
        help="run the tests that use solotable's fixtures on this database (http://host:port, "
        "aws://?region=..., sqlite:///file.db); each test creates its tables and deletes them",
    )
    group.addoption(
        "--solotable-cost",
        action="store_true",
        help="print what each test that uses solotable's fixtures cost: RCU, WCU, requests, scans",
    )
    parser.addini(
        "solotable_models",
        type="linelist",
        help="the tables that solotable_db() opens without arguments, each as package.module:table",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Check the URL, and prepare the cost report, if the options are set."""
    url = config.getoption("--solotable-url")
    if url is not None:
        from solotable.errors import DeclarationError

        from .remote_tables import RemoteDatabase

        try:
            RemoteDatabase(url)
        except DeclarationError as wrong:
            raise pytest.UsageError(f"--solotable-url: {wrong}") from None
    if config.getoption("--solotable-cost") and not hasattr(config, "workerinput"):
        from .cost_report import CostReport

        config.pluginmanager.register(CostReport(), "solotable-cost-report")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Name the database that the tests use, unless it is in memory."""
    url = config.getoption("--solotable-url")
    return None if url is None else f"solotable: {url}"


@pytest.fixture(scope="session")
def _solotable_source(pytestconfig: pytest.Config) -> Iterator[DatabaseTemplates | RemoteDatabase]:
    from .memory_tables import DatabaseTemplates
    from .remote_tables import RemoteDatabase

    url = pytestconfig.getoption("--solotable-url")
    source = DatabaseTemplates() if url is None else RemoteDatabase(url)
    yield source
    source.close()


@pytest.fixture
def _solotable_store(
    request: pytest.FixtureRequest, _solotable_source: DatabaseTemplates | RemoteDatabase
) -> Iterator[StoreFixture]:
    from .store_fixture import StoreFixture

    # The clock must exist before other fixtures write.
    fixture = StoreFixture(_solotable_source, controlled="solotable_clock" in request.fixturenames)
    try:
        yield fixture
    finally:
        fixture.close()
        if request.config.getoption("--solotable-cost") and fixture.journal.records:
            from .cost_report import PROPERTY

            journal = fixture.journal
            costs = [journal.rcu, journal.wcu, len(journal.records), len(journal.scans)]
            request.node.user_properties.append((PROPERTY, costs))


@pytest.fixture
def solotable_clock(
    _solotable_source: DatabaseTemplates | RemoteDatabase, _solotable_store: StoreFixture
) -> Clock:
    """A clock that shows 2026-01-01 until the test moves it: `.now`, `.tick(60)`, `.set(...)`."""
    from .remote_tables import RemoteDatabase

    if isinstance(_solotable_source, RemoteDatabase) and not _solotable_source.takes_clock:
        pytest.skip(f"solotable_clock cannot control the clock of {_solotable_source.address.text}.")
    return _solotable_store.controlled_clock()


@pytest.fixture
def solotable_db(_solotable_store: StoreFixture, pytestconfig: pytest.Config) -> Callable[..., Database]:
    """Open the test's store for tables: `solotable_db(shop)`; without arguments, those of the ini file."""
    return lambda *tables: _solotable_store.database(tables or _models(pytestconfig))


@pytest.fixture
def solotable_async_db(
    _solotable_store: StoreFixture, pytestconfig: pytest.Config
) -> Callable[..., AsyncDatabase]:
    """Open the async form of the `solotable_db` store; it needs no event loop yet."""
    return lambda *tables: _solotable_store.async_database(tables or _models(pytestconfig))


@pytest.fixture
def solotable_seed(_solotable_store: StoreFixture) -> Callable[..., list[Any]]:
    """Create sample entities in the test's store: `solotable_seed(User, count=5, tenant="acme")`."""
    from solotable.seeding import seed

    def create(entity: type[Any], /, *, tenant: str | None = None, **options: Any) -> list[Any]:
        db = _solotable_store.database((entity.plan().table,))
        return seed(db if tenant is None else db.tenant(tenant), entity, **options)

    return create


@pytest.fixture
def solotable_faults(_solotable_store: StoreFixture) -> Faults:
    """The faults of the test's store: `solotable_faults.throttle("UpdateItem", times=2)`."""
    return _solotable_store.faults


@pytest.fixture
def solotable_journal(_solotable_store: StoreFixture) -> Journal:
    """All requests of the test, with their costs."""
    return _solotable_store.journal


@pytest.fixture
def solotable_cost(_solotable_store: StoreFixture) -> Callable[..., AbstractContextManager[None]]:
    """Assert the cost of a block, for all stores of the test: `with solotable_cost(rcu=0.5):`."""
    from .cost import assert_cost

    return partial(assert_cost, _solotable_store.journal)


@pytest.fixture
def solotable_endpoint(
    _solotable_source: DatabaseTemplates | RemoteDatabase,
    _solotable_store: StoreFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """Serve the test's store over DynamoDB's protocol, point AWS SDKs at it, and return the URL."""
    from .remote_tables import RemoteDatabase

    if isinstance(_solotable_source, RemoteDatabase) and not _solotable_source.takes_clock:
        pytest.skip(f"solotable_endpoint serves an embedded engine, not {_solotable_source.address.text}.")
    from .endpoint import CONFLICTING_VARIABLES, DUMMY_VARIABLES, serve_in_thread

    with serve_in_thread(_solotable_store.engine) as url:
        for name in CONFLICTING_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        for name, value in {**DUMMY_VARIABLES, "AWS_ENDPOINT_URL_DYNAMODB": url}.items():
            monkeypatch.setenv(name, value)
        yield url


def _models(config: pytest.Config) -> tuple[Table, ...]:
    return tuple(map(_model, config.getini("solotable_models")))


def _model(path: str) -> Table:
    from solotable._entities.declare.table import Table

    module, _, name = path.partition(":")
    found = getattr(importlib.import_module(module), name, None) if name else None
    if not isinstance(found, Table):
        raise pytest.UsageError(f"solotable_models: {path!r} is not a table; expected package.module:table.")
    return found
