"""Every row and every trap of the requirements has a test that bears its number, and the page lists it."""

from __future__ import annotations

import re
from pathlib import Path

from solotable.entities.lint import lint
from solotable.systems.cms import cms

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "reference" / "requirements-cms.md"
NUMBERS = [f"s0_{n}" for n in range(1, 27)] + [f"c0_{n}" for n in range(1, 15)]


def names() -> set[str]:
    return {
        name
        for file in HERE.rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def test_every_number_occurs_in_the_name_of_a_test() -> None:
    found = {match[1] for name in names() if (match := re.match(r"test_([sc]0_\d+)_", name))}
    assert sorted(set(NUMBERS) - found) == []


def test_the_page_lists_every_number_with_tests_that_are_there() -> None:
    text = PAGE.read_text()
    for number in NUMBERS:
        row = re.search(rf"^\| {number.upper().replace('_', '.')} \|(.*)$", text, re.MULTILINE)
        assert row is not None, number
        listed = re.findall(r"`(test_\w+)`", row[1])
        assert listed, number
        assert set(listed) <= names(), number
        assert all(name.startswith(f"test_{number}_") for name in listed)


def test_the_linter_finds_nothing_but_the_partition_of_the_system() -> None:
    found = {(each.code, each.entity) for each in lint(cms) if each.severity != "note"}
    # S0.2 puts tenants into one partition; C0.11 says what to do about it: answers are kept for a while.
    assert found == {("ST201", "TenantConfig")}
