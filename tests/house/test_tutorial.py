"""The tutorial works as printed: its files, its commands and their output."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path

from .checkout import ROOT
from .tutorial import Reader, patched, steady

PAGES = sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md"))


def test_the_tutorial_has_six_steps_that_its_first_page_lists_in_order() -> None:
    first = (ROOT / "docs" / "tutorial" / "index.md").read_text("utf-8")
    assert re.findall(r"^\| \[\d\. [^\]]+\]\(([^)]+)\)", first, re.MULTILINE) == [page.name for page in PAGES]
    assert len(PAGES) == 6


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    steps = 0
    with ExitStack() as servers:
        reader = Reader(tmp_path, servers)
        for page in PAGES:
            for step in reader.follow(page.read_text("utf-8")):
                assert step.agrees, f"{page.name}: {step.command} prints\n{step.printed}"
                steps += 1
    assert steps >= 15


def test_a_hunk_is_applied_where_its_old_lines_are() -> None:
    assert patched("a\nb\nc\n", " a\n-b\n+B\n@@\n-c\n+C\n") == "a\nB\nC\n"


def test_volatile_output_is_compared_without_figures() -> None:
    assert steady("6 passed in 0.45s  \n") == steady("6 passed in 12.01s\n")
    assert steady("5 passed in 0.45s") != steady("6 passed in 0.45s")
