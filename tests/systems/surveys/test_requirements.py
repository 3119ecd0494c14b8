"""Every requirement and trap of the surveys has a test with its number, and the page lists it."""

from __future__ import annotations

from pathlib import Path

from solotable._entities.lint import lint
from solotable.systems.surveys import surveyor
from tests.systems.requirements import check_requirements

NUMBERS = [f"s4_{n}" for n in range(1, 46)] + [f"c4_{n}" for n in range(1, 21)]


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-surveys.md", NUMBERS)


def test_the_linter_finds_nothing_but_what_the_requirements_ask_for() -> None:
    found = {(each.code, each.entity) for each in lint(surveyor) if each.severity != "note"}
    # S4.5 puts a tenant's metadata into the tenant's partition; the list of tenants is one partition of GSI1.
    assert found == {("ST104", "Tenant"), ("ST201", "Tenant")}
