"""What no file may contain, and what the files around the code must contain."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

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
README_LINES = 121


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


def entries_of(lock: str) -> list[str]:
    return re.split(r"\n(?=[\w.-]+[ =])", "\n" + text(ROOT / "requirements" / lock))[1:]


@pytest.mark.parametrize("name", ["dev.lock", "demo.lock"])
def test_a_lock_pins_every_package_with_hashes_and_names_no_host(name: str) -> None:
    lock = text(ROOT / "requirements" / name)
    entries = entries_of(name)
    assert len(entries) > 10
    assert [entry.splitlines()[0] for entry in entries if not re.match(r"[\w.-]+==[\w.]+", entry)] == []
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in lock


def test_the_locks_agree_on_versions_and_a_demo_needs_less() -> None:
    pinned = {entry.splitlines()[0].split()[0] for entry in entries_of("dev.lock")}
    demo = {entry.splitlines()[0].split()[0] for entry in entries_of("demo.lock")}
    assert demo < pinned
    assert len(demo) < len(pinned) / 2


def test_the_changelog_has_an_unreleased_section() -> None:
    assert "\n## [Unreleased]\n" in text(ROOT / "CHANGELOG.md")


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len(text(ROOT / "README.md").splitlines()) < README_LINES


def test_the_package_and_the_project_agree_on_the_version() -> None:
    project = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
    assert solotable.__version__ == project["version"]
