"""The transcript in the guide is what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from .conftest import Run

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "limiter-cli.md"
#: What differs from one run to the next, and what to compare instead.
VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "TIME"),
    (re.compile(r"\b[0-9A-Z]{26}\b"), "ID"),
    (re.compile(r"\d+(\.\d)? s\b"), "N s"),
    (re.compile(r"\d\.\d\d\d"), "N"),
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def steady(text: str) -> str:
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def test_commands_of_the_guide_print_what_it_says(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///limits.db")
    monkeypatch.setenv("LOGNAME", "dana")
    (file,) = blocks("yaml")
    (tmp_path / "limits.yaml").write_text(file)
    steps = re.findall(r"^\$ solotable (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)
    assert len(steps) >= 20
    for command, printed in steps:
        ran = run(*shlex.split(command, comments=True))
        assert ran.code == (1 if "# exits with 1" in command else 0), ran.err
        # A summary that is made in the next hour has one more window; its look has a test of its own.
        if "usage summary" not in command:
            assert steady(ran.out + ran.err) == steady(printed), command
