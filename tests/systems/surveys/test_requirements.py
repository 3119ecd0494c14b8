"""Every requirement and trap of the surveys has a test with its number, and the page lists it.

Migration and sync are separate issues; the page says which rows these are.
"""

from __future__ import annotations

import re
from pathlib import Path

from solotable._entities.lint import lint
from solotable.systems.surveys import surveyor
from tests.systems.requirements import DOCS, check_requirements

MIGRATION = {*(f"s4_{n}" for n in (1, 2, 3, *range(25, 31))), "c4_10"}
SYNC = {"s4_36", "c4_7", "c4_8"}
ALL = [f"s4_{n}" for n in range(1, 46)] + [f"c4_{n}" for n in range(1, 21)]
NUMBERS = [number for number in ALL if number not in MIGRATION | SYNC]


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-surveys.md", NUMBERS)


def test_the_page_names_the_rows_of_migration_and_sync() -> None:
    text = (DOCS / "requirements-surveys.md").read_text()
    rows = {
        issue: line
        for line in text.splitlines()
        for issue in ("migration", "sync")
        if line.endswith(f"| {issue} |")
    }
    for issue, numbers in (("migration", MIGRATION), ("sync", SYNC)):
        line = rows[issue].partition(";")[0]
        found = set(re.findall(r"[SC]4\.\d+", line))
        for first, last in re.findall(r"S4\.(\d+) to S4\.(\d+)", line):
            found |= {f"S4.{n}" for n in range(int(first), int(last) + 1)}
        assert {number.upper().replace("_", ".") for number in numbers} == found


def test_the_linter_finds_nothing_but_what_the_requirements_ask_for() -> None:
    found = {(each.code, each.entity) for each in lint(surveyor) if each.severity != "note"}
    # S4.5 puts a tenant's metadata into the tenant's partition; the list of tenants is one partition of GSI1.
    assert found == {("ST104", "Tenant"), ("ST201", "Tenant")}
