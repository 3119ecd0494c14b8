"""Every design passes the linter, and `solotable patterns` prints its table of access patterns."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from solotable import Table
from solotable._entities.lint import lint
from solotable.cli.main import main

#: The table of each design and the number of its published access patterns.
DESIGNS = {
    "test_instagram": ("instagram", 11),
    "test_github": ("github", 14),
    "test_online_shop": ("shop", 17),
    "test_session_store": ("session_store", 8),
    "test_complaints": ("complaints", 7),
    "test_chat": ("chat", 9),
    "test_payments": ("payments", 8),
    "test_device_log": ("device_log", 5),
    "test_library": ("library", 16),
}
#: Findings that are properties of a published design, by code.
ACCEPTED = {
    # Invoices and ordered products of a customer share a range of dates, to be read as one stream; the
    # design reads one of them alone with a filter.
    "test_online_shop": {"ST102": 2},
    # All payments of a day, and all reminders of a day, are in one partition.
    "test_payments": {"ST202": 2},
}
_PUBLISHED = re.compile(r"^\| (\d+) \|", re.MULTILINE)
_TEST = re.compile(r"test_[a-z_]+_0?(\d+)_\w+")


def _run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as done:
        main(list(arguments))
    return done.value.code


def _table(design: str) -> Table:
    found = getattr(import_module(f"tests.designs.{design}"), DESIGNS[design][0])
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize("design", DESIGNS)
def test_the_linter_finds_what_the_design_accepts(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = [finding for finding in lint(_table(design)) if finding.severity != "note"]
    accepted = ACCEPTED.get(design, {})
    assert [finding.code for finding in found] == [
        code for code, count in accepted.items() for _ in range(count)
    ]
    ignored = [f"--ignore={code}" for code in accepted]
    assert _run("lint", f"tests.designs.{design}", *ignored) == 0, capsys.readouterr().out


@pytest.mark.parametrize("design", DESIGNS)
def test_the_patterns_are_printed(design: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run("patterns", "-m", f"tests.designs.{design}") == 0
    printed = capsys.readouterr().out
    assert "not shown" not in printed
    for plan in _table(design).plans.values():
        assert all(f"{plan.name}.{name}" in printed for name in plan.patterns)


@pytest.mark.parametrize("design", DESIGNS)
def test_every_published_pattern_has_its_test(design: str) -> None:
    module = import_module(f"tests.designs.{design}")
    wanted = list(range(1, DESIGNS[design][1] + 1))
    assert [int(number) for number in _PUBLISHED.findall(module.__doc__ or "")] == wanted
    tests = [match[1] for name in vars(module) if (match := _TEST.fullmatch(name))]
    assert [int(number) for number in tests] == wanted


def test_all_designs_are_listed() -> None:
    here = Path(__file__)
    modules = {path.stem for path in here.parent.glob("test_*.py")} - {here.stem}
    assert modules == DESIGNS.keys()
    assert sum(count for _, count in DESIGNS.values()) == 95
