"""mypy, strict: code that it must accept, and planted mistakes, exactly those, each on its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

pytestmark = pytest.mark.slow


def _told(*files: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str, str]]:
    """Return what mypy says of these files: the file's name, the line, the code, and the whole message."""
    # The configuration names folders as seen from the checkout.
    monkeypatch.chdir(ROOT)
    told, faults, status = api.run(
        ["--config-file", "pyproject.toml", "--show-error-codes", "--no-error-summary", *map(str, files)]
    )
    assert status in (0, 1), told + faults
    found = []
    for line in told.splitlines():
        if (match := re.match(r"(.+?):(\d+): error: (.*?)  \[([a-z-]+)\]$", line)) is not None:
            found.append((Path(match[1]).name, int(match[2]), match[4], line))
        else:
            assert ": note: " in line, line
    return found


def test_good_code_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _told(HERE / "good.py", monkeypatch=monkeypatch) == []


def test_planted_mistakes_are_found_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Kept as text, so that checking the tests themselves does not stumble over it.
    text = (HERE / "planted.txt").read_text(encoding="utf-8")
    planted = {
        (number, code)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := re.search(r"# E: ([a-z -]+)$", line)) is not None
        for code in match[1].split()
    }
    assert len(planted) > 40
    (tmp_path / "planted.py").write_text(text, encoding="utf-8")
    told = _told(tmp_path / "planted.py", monkeypatch=monkeypatch)
    found = {(number, code): line for name, number, code, line in told if name == "planted.py"}
    assert set(found) - planted == set(), [found[each] for each in set(found) - planted]
    assert planted - set(found) == set(), "not found"
    assert [line for name, _, _, line in told if name != "planted.py"] == []
