"""The comparison page: each claim for solotable names tests that exist, each cell says how it was checked."""

from __future__ import annotations

import re

import pytest

from .checkout import ROOT, files

PAGE = (ROOT / "docs" / "reference" / "comparison.md").read_text(encoding="utf-8")
HEADER = "| | solotable | ElectroDB | Toolbox | OneTable | PynamoDB | pydynox | Test |"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for table in PAGE.split(HEADER)[1:]
    for line in table.strip().split("\n\n")[0].splitlines()[1:]
]


def defined_tests() -> set[str]:
    return {
        test
        for path in files()
        if path.name.startswith("test_") and path.suffix == ".py"
        for test in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_there_are_rows() -> None:
    assert len(ROWS) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row[0]))
def test_a_row_has_a_mark_in_each_cell(row: list[str]) -> None:
    assert len(row) == 8
    assert row[1] in ("yes", "partly", "no")
    assert [cell for cell in row[2:7] if not re.fullmatch(r"(yes|partly|no) \([rd]\)|\?", cell)] == []


def test_each_claim_for_solotable_names_tests_that_exist() -> None:
    existing = defined_tests()
    for feature, solotable, *_, named in ROWS:
        listed = re.findall(r"`(test_\w+)`", named)
        assert bool(listed) == (solotable != "no"), feature
        assert [test for test in listed if test not in existing] == [], feature
