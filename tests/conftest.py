"""Options and profiles for the whole suite, and DynamoDB Local for the tests that compare with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.conformance.dynamodb_local import TOO_OLD, Server, Servers, Unavailable, find_or_fetch
from tests.killing import Program, Start
from tests.s3_server import moto_server

# No limit of time, which a busy machine would exceed: neither for an example nor for generating it.
_UNTIMED: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=100, **_UNTIMED)
settings.register_profile("thorough", max_examples=2000, **_UNTIMED)
settings.load_profile("quick")


#: By target, the fixtures whose tests are left out.
UNWANTED = {
    "engine": ("local",),
    "server": ("local", "engine"),
    "local": ("engine", "server"),
    "both": (),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--target",
        choices=("engine", "server", "local", "both"),
        default="engine",
        help="what the conformance cases are played on: the engine, in process and through its server "
        "(default), the server alone, DynamoDB Local, or both",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what `--target` did not ask for.

    `local` keeps the tests that use DynamoDB Local, as the run on the engine has all others. The other
    targets keep the tests that use no target.
    """
    target = config.getoption("--target")
    wanted: list[pytest.Item] = []
    unwanted: list[pytest.Item] = []
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        skipped = any(fixture in fixtures for fixture in UNWANTED[target])
        if target == "local":
            skipped = skipped or not uses_dynamodb_local(item)
        (unwanted if skipped else wanted).append(item)
    if unwanted:
        config.hook.pytest_deselected(items=unwanted)
        items[:] = wanted


def uses_dynamodb_local(item: pytest.Item) -> bool:
    """Whether a test asks for DynamoDB Local by a fixture, or by a place that a conftest has chosen."""
    if not {"local", "local_engine"}.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    callspec = getattr(item, "callspec", None)
    chosen = callspec.params.values() if callspec else ()
    return any(isinstance(place, str) and "local" in place.split("-") for place in chosen)


@pytest.fixture(scope="session")
def local_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Starts DynamoDB Local, for each worker; skips when there is no way to have it."""
    try:
        jars = find_or_fetch()
    except Unavailable as reason:
        pytest.skip(f"DynamoDB Local is not available. {reason}")
    servers = Servers(jars, tmp_path_factory.mktemp("dynamodb-local"))
    yield servers
    servers.close()


@pytest.fixture(scope="module")
def local(local_servers: Servers) -> Server:
    """DynamoDB Local on a port of its own."""
    return local_servers.next()


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server, one per worker; skips where moto is not installed."""
    with moto_server(tmp_path_factory.mktemp("s3") / "server.log") as endpoint:
        yield endpoint


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs that report their progress, and kills what is left of them at the end."""
    programs: list[Program] = []

    def start_program(*arguments: str) -> Program:
        programs.append(Program(tmp_path / f"program{len(programs)}.log", *arguments))
        return programs[-1]

    yield start_program
    for program in programs:
        program.kill()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not played, judged or run because a program of others is missing, and why."""
    reasons = {
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple) and " is not available" in report.longrepr[2]
    }
    for reason in sorted(reasons):
        local = reason.startswith("DynamoDB Local")
        title = "NOT PLAYED ON DYNAMODB LOCAL" if local else "NOT RUN"
        terminalreporter.section(title, sep="#", red=True, bold=True)
        terminalreporter.line(reason)
    unjudged = [
        report.wasxfail for report in terminalreporter.stats.get("xfailed", []) if TOO_OLD in report.wasxfail
    ]
    if unjudged:
        version = unjudged[0].removeprefix("reason: ").partition(f" {TOO_OLD}")[0]
        terminalreporter.section("NOT JUDGED BY DYNAMODB LOCAL", sep="#", red=True, bold=True)
        terminalreporter.line(
            f"{len(unjudged)} cases that {version} answers otherwise were let pass: it {TOO_OLD} them. "
            "A current DynamoDB Local judges all of them."
        )
