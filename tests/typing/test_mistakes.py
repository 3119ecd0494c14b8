"""Of 25 typical mistakes: which ones mypy finds, with and without the plugin, and which ones pyright."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.programs.installed import Unavailable

from .checkers import (
    HERE,
    ROOT,
    Finding,
    mypy,
    mypy_with_pydantic,
    mypy_with_pydantic_first,
    mypy_without_plugin,
    pyright,
)

pytestmark = pytest.mark.slow

_MISTAKE = re.compile(r"  # (\d+) .*: ([a-z ]+)$")


@pytest.fixture
def mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mistakes as a module; they are kept as text, so that checking the tests does not report them."""
    monkeypatch.chdir(ROOT)
    file = tmp_path / "mistakes.py"
    file.write_text((HERE / "mistakes.txt").read_text(encoding="utf-8"), encoding="utf-8")
    return file


def _expected(file: Path, checker: str) -> set[int]:
    """Return the numbers of the mistakes that the text says a checker finds."""
    found = [match for line in _lines(file) if (match := _MISTAKE.search(line)) is not None]
    assert [int(match[1]) for match in found] == list(range(1, 26))
    return {int(match[1]) for match in found if checker in match[2].split()}


def _caught(file: Path, findings: list[Finding]) -> set[int]:
    """Return the numbers of the mistakes with an error; an error elsewhere fails the test."""
    lines, numbers = _lines(file), set()
    for finding in findings:
        match = _MISTAKE.search(lines[finding.line - 1])
        assert finding.file == file.name
        assert match is not None, finding.text
        numbers.add(int(match[1]))
    return numbers


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_mypy_alone_finds_9(mistakes: Path) -> None:
    caught = _caught(mistakes, mypy_without_plugin(mistakes))
    assert (caught, len(caught)) == (_expected(mistakes, "mypy"), 9)


def test_mypy_with_the_plugin_finds_24(mistakes: Path) -> None:
    caught = _caught(mistakes, mypy(mistakes))
    assert (caught, len(caught)) == (_expected(mistakes, "plugin"), 24)


def test_mypy_with_the_plugin_and_pydantics_finds_24(mistakes: Path) -> None:
    caught = _caught(mistakes, mypy_with_pydantic(mistakes))
    assert (caught, len(caught)) == (_expected(mistakes, "plugin"), 24)


@pytest.mark.parametrize("name", ["good", "fallbacks"])
def test_good_code_is_accepted_with_pydantics_plugin(mistakes: Path, name: str) -> None:
    file = mistakes.with_name(f"{name}.py")
    file.write_text((HERE / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
    assert mypy_with_pydantic(file) == []


def test_pydantics_plugin_must_not_be_first(mistakes: Path) -> None:
    report = mypy_with_pydantic_first(mistakes)
    assert 'write plugins = ["solotable.mypy", "pydantic.mypy"]' in report


def test_pyright_finds_9(mistakes: Path) -> None:
    try:
        findings = pyright(mistakes)
    except Unavailable as reason:
        pytest.skip(f"pyright is not available. {reason}")
    caught = _caught(mistakes, findings)
    assert (caught, len(caught)) == (_expected(mistakes, "pyright"), 9)
