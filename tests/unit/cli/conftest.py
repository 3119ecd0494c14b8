"""Run commands in this process, as a shell would."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from solotable.cli import main

MODELS = str(Path(__file__).with_name("surveys.py"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, self.err
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def forget_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Remove the modules that a command imported from the folder of this test, such as its `shop.py`."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., Ran]:
    """Run `solotable` with the survey models, a file and a tenant, in an empty folder."""
    for name in os.environ:
        if name.startswith(("AWS_", "SOLOTABLE_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("SOLOTABLE_MODELS", MODELS)
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///survey.db")
    monkeypatch.setenv("SOLOTABLE_TENANT", "acme")

    def run_(*arguments: str) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        printed = capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Ran(code=code, out=printed.out, err=printed.err)

    return run_


@pytest.fixture
def filled(run: Run) -> Run:
    """Run `solotable` over a file with a survey and three sections."""
    assert run("put", "Survey", "survey_id=s1", "title=12 Main Street").code == 0
    for order, name in enumerate(("Roof", "Loft", "Hall"), 1):
        ran = run(
            "put", "Section", "survey_id=s1", f"section_id={name.lower()}", f"name={name}", f"order={order}"
        )
        assert ran.code == 0, ran.err
    return run
