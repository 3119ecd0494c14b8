"""What no file may hold, and what the files around the code must say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import solotable

from .checkout import ROOT, files, name

#: Written in pieces, so that this file does not hold what it forbids.
MACHINE_PATHS = re.compile(
    r"(?<![\w./~-])/(?:" + "|".join(("home", "root", "tmp", "work", "Users", "opt")) + r")/\w"
)
REGISTRIES = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("files", "pythonhosted", "org"),
            ("pypi", "org/simple"),
            ("registry", "npmjs", "org"),
            ("repo", "maven", "apache", "org"),
            ("repo1", "maven", "org"),
        )
    )
)
README_LINES = 130


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name(path)}:{number}: {line.strip()[:100]}"
        for path in files()
        for number, line in enumerate(text(path).splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert lines_with(MACHINE_PATHS) == []


def test_no_file_names_a_package_registry() -> None:
    assert lines_with(REGISTRIES) == []


def test_the_lock_pins_every_package_with_hashes_and_names_no_host() -> None:
    lock = text(ROOT / "requirements" / "dev.lock")
    entries = re.split(r"\n(?=[\w.-]+[ =])", "\n" + lock)[1:]
    assert len(entries) > 10
    assert [entry.splitlines()[0] for entry in entries if not re.match(r"[\w.-]+==[\w.]+", entry)] == []
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in lock


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "\n## [Unreleased]\n" in text(ROOT / "CHANGELOG.md")


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len(text(ROOT / "README.md").splitlines()) < README_LINES


def test_the_package_and_the_project_agree_on_the_version() -> None:
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    assert solotable.__version__ == project["version"]
