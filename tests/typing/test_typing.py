"""mypy, strict: code that it must accept, and planted mistakes, exactly those, each on its line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .checkers import HERE, ROOT, mypy

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    # The configuration names folders as seen from the checkout.
    monkeypatch.chdir(ROOT)


def test_good_code_is_accepted() -> None:
    assert mypy(HERE / "good.py", HERE / "fallbacks.py") == []


def test_planted_mistakes_are_found_and_nothing_else(tmp_path: Path) -> None:
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
    findings = mypy(tmp_path / "planted.py")
    found = {(each.line, each.code): each.text for each in findings if each.file == "planted.py"}
    assert set(found) - planted == set(), [found[each] for each in set(found) - planted]
    assert planted - set(found) == set(), "not found"
    assert [each.text for each in findings if each.file != "planted.py"] == []
