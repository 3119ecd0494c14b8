"""The targets as fixtures, and the choice between them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .dynamodb_local import Server, Unavailable, find_or_fetch, serve
from .targets import InProcess


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what `--target` did not ask for; tests that play no case always stay."""
    target = config.getoption("--target")
    wanted: list[pytest.Item] = []
    unwanted: list[pytest.Item] = []
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        skipped = (target == "engine" and "local" in fixtures) or (target == "local" and "engine" in fixtures)
        (unwanted if skipped else wanted).append(item)
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = wanted


@pytest.fixture
def engine() -> Iterator[InProcess]:
    """A fresh embedded engine in memory."""
    from solotable.engines import sqlite

    opened: Any = sqlite.open(":memory:")
    try:
        yield InProcess(opened)
    finally:
        opened.close()


@pytest.fixture(scope="session")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """DynamoDB Local on a port of its own, one per worker; skips when there is no way to have it."""
    try:
        jars = find_or_fetch()
    except Unavailable as reason:
        pytest.skip(f"DynamoDB Local is not available. {reason}")
    with serve(jars, log=tmp_path_factory.mktemp("dynamodb-local") / "server.log") as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that nothing was played on DynamoDB Local, and why."""
    reasons = {
        report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and "DynamoDB Local is not available" in report.longrepr[2]
    }
    for reason in sorted(reasons):
        terminalreporter.section("NOT PLAYED ON DYNAMODB LOCAL", sep="#", red=True, bold=True)
        terminalreporter.line(reason.removeprefix("Skipped: "))
