"""Every row and trap of a system's requirements has a test that bears its number, and a page lists it."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def tests_in(folder: Path) -> set[str]:
    """Return the names of the tests in a folder."""
    return {
        name
        for file in folder.rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def check_requirements(folder: Path, page: str, numbers: list[str]) -> None:
    """Fail where a number, as `s0_1`, has no test, or no row on the page with tests that are there."""
    names = tests_in(folder)
    text = (DOCS / page).read_text()
    for number in numbers:
        bearing = {name for name in names if name.startswith(f"test_{number}_")}
        assert bearing, f"{number} has no test"
        row = re.search(rf"^\| {number.upper().replace('_', '.')} \|(.*)$", text, re.MULTILINE)
        assert row is not None, f"{number} has no row in {page}"
        listed = set(re.findall(r"`(test_\w+)`", row[1]))
        assert listed, f"the row of {number} names no test"
        assert listed <= bearing, f"the row of {number} names {listed - bearing}"
