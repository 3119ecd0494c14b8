"""The README: its examples run alone, its transcript is what the command prints, its targets exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from solotable import __version__
from solotable.cli.server.serve import _banner
from tests.serving import environment
from tests.waiting import HANG_SECONDS

from .checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
CONSOLES = re.findall(r"^```console\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs_alone_in_an_empty_folder_and_again(number: int, tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(EXAMPLES[number], encoding="utf-8")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", "example.py"],
            cwd=tmp_path,
            env=environment(HOME=str(tmp_path)),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_transcript_of_serve_is_what_serve_prints() -> None:
    command, _, printed = next(each for each in CONSOLES if "$ solotable serve" in each).partition("\n")
    assert command == "$ solotable serve surveys.db"
    assert printed == _banner("127.0.0.1", 8000, "surveys.db", signed=False) + "\n"
    assert __version__ in printed


def test_each_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:\$ |`)make ([a-z-]+)", README))
    assert "demo" in named
    assert named <= targets


def test_each_extra_exists() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {extra for extras in re.findall(r"'\.\[([a-z,]+)\]'", README) for extra in extras.split(",")}
    assert named
    assert named <= set(project["optional-dependencies"])
