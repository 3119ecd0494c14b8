"""Every row and every trap of the limiter has a test that bears its number, and the page lists it."""

from __future__ import annotations

from pathlib import Path

from solotable._entities.lint import lint
from solotable.systems.limiter import limiter
from tests.systems.requirements import check_requirements

NUMBERS = (
    [f"s1_{n}" for n in range(1, 13)] + [f"c1_{n}" for n in range(1, 15)] + [f"l{n}" for n in range(1, 12)]
)


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-limiter.md", NUMBERS)


def test_the_linter_finds_no_error() -> None:
    assert [str(each) for each in lint(limiter) if each.severity == "error"] == []
