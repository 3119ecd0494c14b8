"""The commands of the guide on migrations print what it says, on the shop of the guide."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from tests.killing import Start
from tests.waiting import jitter

from .conftest import Run

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "migration.md"
#: Blocks of the guide: the old tables, their items, `shop.py`, and the router.
PYTHON_BLOCKS = 4


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


def without_figures(text: str) -> str:
    return re.sub(r"\d+\.\d+ s|\d+ changes|\d{4}-\d\d-\d\d \d\d:\d\d", "N", text.strip())


def test_commands_of_the_guide_print_what_it_says(
    run: Run, start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)
    python = blocks("python")[:PYTHON_BLOCKS]
    (tmp_path / "shop.py").write_text(python[2])
    exec("\n".join(python), vars(module))  # noqa: S102  # our own page
    module.router.close()
    module.old.close()
    module.new.close()
    monkeypatch.setenv("SOLOTABLE_MODELS", f"{tmp_path / 'shop.py'}:mapping")
    monkeypatch.setenv("SOLOTABLE_SOURCE_URL", str(tmp_path / "old.db"))
    monkeypatch.setenv("SOLOTABLE_URL", str(tmp_path / "new.db"))
    steps = re.findall(r"^\$ solotable (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)
    assert len(steps) == 14
    for command, printed in steps:
        if " mirror " in command:
            # "Keep a worker running."
            start("-m", "solotable", "migrate", "start", "shop")
        ran = run(*shlex.split(command))
        if " switch-writes " in command or " reverse " in command:
            # It is refused while the other side is behind, as on a busy machine.
            while ran.code != 0 and "the lag is" in ran.out + ran.err:
                jitter(Random(0), 0.3)
                ran = run(*shlex.split(command))
        assert ran.code == 0, (command, ran)
        assert without_figures(ran.out).startswith(without_figures(printed)), command
