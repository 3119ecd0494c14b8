"""The source and the documentation use the field's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from .checkout import ROOT, files, name
from .words import FORBIDDEN, occurrences

FOLDERS = ("src", "docs", "examples")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "pyproject.toml")


def texts() -> list[Path]:
    return [
        path
        for path in files()
        if (path.suffix in (".py", ".md", ".html") and path.relative_to(ROOT).parts[0] in FOLDERS)
        or name(path) in PAGES
    ]


def test_no_forbidden_word_occurs() -> None:
    found = [
        f"{name(path)}:{number} {word!r}, write instead: {FORBIDDEN[word]}"
        for path in texts()
        for number, word, _ in occurrences(path)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Nobody answered.", ["nobody"]),
        ("def is_judged(self) -> bool:", ["judged"]),
        ("This is no file of ours.", ["is no"]),
        ("This is not a file.", []),
        ("The token is no longer valid.", []),
        ("if found is None:", []),
        ("if there is none", ["is none"]),
        ("a threshold", []),
    ],
)
def test_forbidden_words_are_found(tmp_path: Path, line: str, words: list[str]) -> None:
    (tmp_path / "page.md").write_text(line)
    assert [word for _, word, _ in occurrences(tmp_path / "page.md")] == words
