"""The documentation is true: its code runs, its links lead somewhere, and no error is left out."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import boto3
import pytest

import solotable.errors
from solotable.cli.main import every_command
from tests.closed_network import close_network

from .checkout import PACKAGE, ROOT, files, name

DOCS = ROOT / "docs"
GUIDES = [ROOT / "README.md", *sorted((DOCS / "guide").glob("*.md"))]
PAGES = [
    *(ROOT / page for page in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(DOCS.rglob("*.md")),
]
ERRORS = DOCS / "reference" / "errors.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: A file of this project in backticks: `test_kill.py`, `server/run.py`. `models.py` is the reader's.
SOURCE_FILE = re.compile(r"`((?:\w+/)+\w+\.py|test_\w+\.py)`")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\((?!https?://)([^)#\s]*)#([^)\s]+)\)")


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def code(guide: Path) -> str:
    """All python blocks of a guide as one program, each line where it is in the guide."""
    page = text(guide)
    lines = [""] * page.count("\n")
    for block in BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1))
        for number, line in enumerate(block[1].splitlines()):
            lines[first + number] = line
    return "\n".join(lines) + "\n"


def anchors(page: Path) -> set[str]:
    """The anchors that a browser of the repository gives to the headings of a page."""
    prose = re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    }


@pytest.mark.parametrize("guide", GUIDES, ids=name)
def test_the_code_of_a_guide_runs(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_network(monkeypatch)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    monkeypatch.chdir(tmp_path)
    program = compile(code(guide), str(guide), "exec", dont_inherit=True)
    # As a module that can be found, because Pydantic looks up where a class was made.
    guide_module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", guide_module)
    exec(program, vars(guide_module))  # noqa: S102  # our own pages


@pytest.mark.parametrize("guide", [guide for guide in GUIDES if "\ndef test_" in text(guide)], ids=name)
def test_the_tests_in_a_guide_pass(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    close_network(monkeypatch)
    (tmp_path / "test_guide.py").write_text(code(guide), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir=.", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files(page: Path) -> None:
    assert [link for link in LINK.findall(text(page)) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_headings(page: Path) -> None:
    missing = [
        f"{link}#{anchor}"
        for link, anchor in ANCHOR.findall(text(page))
        if anchor not in anchors(page.parent / link if link else page)
    ]
    assert missing == []


@pytest.mark.parametrize("folder", ["guide", "reference"])
def test_the_index_links_every_page_once(folder: str) -> None:
    pages = {f"{folder}/{page.name}" for page in (DOCS / folder).glob("*.md")}
    links = [link for link in LINK.findall(text(DOCS / "index.md")) if link.startswith(f"{folder}/")]
    assert sorted(links) == sorted(pages)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_source_files_named_on_a_page_exist(page: Path) -> None:
    paths = [f"/{name(path)}" for path in files()]
    named = SOURCE_FILE.findall(BLOCK.sub("", text(page)))
    assert [file for file in named if not any(path.endswith(f"/{file}") for path in paths)] == []


def test_every_error_is_documented_and_every_documented_error_exists() -> None:
    errors = {
        name_
        for name_, value in vars(solotable.errors).items()
        if isinstance(value, type) and issubclass(value, solotable.errors.SolotableError)
    }
    assert set(re.findall(r"^### `(\w+)`$", text(ERRORS), re.MULTILINE)) == errors


def test_the_generated_sections_are_current() -> None:
    generate = runpy.run_path(str(DOCS / "generate.py"))
    for page in generate["PAGES"]:
        assert text(page) == generate["current"](page), "Run: python docs/generate.py"


def test_every_command_is_documented_with_its_options_and_an_example() -> None:
    page = text(DOCS / "reference" / "cli.md")
    for path, command in every_command():
        start = page.index(f"### `solotable {path}`\n")
        section = page[start : page.find("\n### ", start + 1)]
        assert command.help
        assert command.epilog
        assert command.epilog.startswith(f"Example: solotable {path}")
        assert f"$ solotable {path}" in section
        for parameter in command.params:
            assert [name for name in parameter.opts if name.startswith("-") and name not in section] == []
