"""`solotable doctor` on files that it cannot examine."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_missing_file_exits_with_3(run: Run, tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = run("doctor", "missing.db", *options)
    assert (ran.code, ran.out, ran.err) == (3, "", "Error: No such file: missing.db.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_problem_exits_with_1(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is not a database.")
    ran = run("doctor", "text.db")
    assert ran.code == 1
    assert "not a solotable database" in ran.out
