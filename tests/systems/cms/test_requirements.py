"""Every requirement and trap of the CMS has a test with its number, and the page lists it."""

from __future__ import annotations

from pathlib import Path

from solotable._entities.lint import lint
from solotable.systems.cms import cms
from tests.systems.requirements import check_requirements

NUMBERS = [f"s0_{n}" for n in range(1, 27)] + [f"c0_{n}" for n in range(1, 15)]
NUMBERS += [f"b0_{n}" for n in range(1, 4)]


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-cms.md", NUMBERS)


def test_the_linter_finds_nothing_but_the_partition_of_the_system() -> None:
    found = {(each.code, each.entity) for each in lint(cms) if each.severity != "note"}
    # S0.2 puts tenants into one partition; C0.11 requires a cache of their reads.
    assert found == {("ST201", "TenantConfig")}
