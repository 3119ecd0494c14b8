"""Tests wait for progress: none sleeps, and the limit of every wait is the one that only ends a hang."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

from .checkout import ROOT, files, name

HELPER = "tests/waiting.py"

#: Where real time has to pass, and why a loaded machine cannot make the test fail.
ALLOWED = {
    "tests/migrations/workflow/lab.py sleep": "waits as an engine does, or moves the clock of a test",
    "tests/store/opening.py sleep": "waits as the engine would, in real time where it has no clock",
    "tests/systems/limiter/test_faults.py ping": "its own timeout is what is tested; nothing answers",
    "tests/torture/fairness.py sleep": "the pace of a probe; nothing is asserted of it",
    "tests/torture/test_concurrency.py wait": "the pace of a reader; what it asserts is what it has seen",
    "tests/torture/mover.py sleep": "the pace of a worker and of a writer; nothing is asserted of it",
    "tests/unit/engines/dynamodb/evil.py sleep": "an endpoint that drips; slower still drips",
    "tests/unit/server/test_hostile_clients.py settimeout": "sends until the server stops reading",
    "tests/unit/server/test_time_slices.py sleep": "longer than a slice; slower still is",
    "tests/unit/server/test_time_slices.py wait": "a request that does not go on; slower still does not",
    "tests/unit/testing/test_clock.py sleep": "moves the clock of the plugin, and takes no time",
}

#: Calls that take a limit, and where it is: at a place, or by a name.
_LIMITED = {"wait": 0, "join": 0, "result": 0, "poll": 0, "settimeout": 0, "wait_for": 1}


def waits(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of every call that sleeps, or that waits for a number of seconds."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = [each.value for each in node.keywords if each.arg == "timeout"]
        place = _LIMITED.get(called)
        if place is not None and len(node.args) > place:
            given.append(node.args[place])
        if called == "sleep":
            if node.args and not _is_number(node.args[0], 0):
                yield node.lineno, called
        elif any(_is_number(each) for each in given):
            yield node.lineno, called


def _is_number(node: ast.expr, wanted: float | None = None) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return False
    return isinstance(node.value, int | float) and wanted in (None, node.value)


def sources() -> list[Path]:
    return [path for path in files() if path.suffix == ".py" and name(path).startswith("tests/")]


def test_no_test_waits_for_time() -> None:
    found = {
        f"{name(path)} {called}": f"{name(path)}:{line} {called}()"
        for path in sources()
        if name(path) != HELPER
        for line, called in waits(ast.parse(path.read_text(encoding="utf-8")))
    }
    unexpected = [where for key, where in found.items() if key not in ALLOWED]
    assert unexpected == [], (
        f"Wait for progress instead: wait_until(...) of {HELPER}. Limit a wait by HANG_SECONDS. "
        "Where time itself has to pass, add a line with the reason to ALLOWED."
    )
    assert ALLOWED.keys() - found.keys() == set(), "these exceptions are not needed any more"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("time.sleep(0.2)", True),
        ("sleep(seconds)", True),
        ("await asyncio.sleep(1)", True),
        ("await asyncio.sleep(0)", False),
        ("event.wait(5)", True),
        ("event.wait(HANG_SECONDS)", False),
        ("event.wait()", False),
        ("thread.join(timeout=10)", True),
        ("', '.join(words)", False),
        ("asyncio.wait_for(queue.get(), 5)", True),
        ("subprocess.run(command, timeout=30)", True),
        ("queue.get(timeout=HANG_SECONDS)", False),
    ],
)
def test_waits_for_time_are_found(code: str, found: bool) -> None:
    source = f"async def test() -> None:\n    {code}\n"
    assert bool(list(waits(ast.parse(source)))) is found


def test_a_hang_ends_before_pytest_ends_it() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["pytest"]["ini_options"]["timeout"] == 2 * HANG_SECONDS
