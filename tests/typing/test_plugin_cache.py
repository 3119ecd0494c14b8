"""A changed key or table is seen by mypy with a warm cache, and by mypy's daemon."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.waiting import HANG_SECONDS

from .checkers import ROOT

pytestmark = pytest.mark.slow

TABLES = """
from solotable import Table

app = Table("App", tenant="tenant_id")
"""
MODELS = """
from solotable import Entity, Key

from tables import app


class Task(Entity, table=app):
    key = Key("TENANT#{tenant_id}", "TASK#{task_id}")
    tenant_id: str
    task_id: str
    title: str = ""
"""
CALLS = """
from models import Task
from solotable import Store


def read(db: Store) -> Task | None:
    return db.get(Task, task_id="t")


def write(db: Store) -> Task:
    return db.update(Task, task_id="t", set={"title": "x"})
"""
Check = Callable[[], str]


def _run(folder: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small project that uses the plugin."""
    settings = f"[mypy]\nstrict = True\nplugins = solotable.mypy\nmypy_path = {ROOT / 'src'}\n"
    for name, text in (
        ("mypy.ini", settings),
        ("tables.py", TABLES),
        ("models.py", MODELS),
        ("calls.py", CALLS),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(params=["mypy", "daemon"])
def check(request: pytest.FixtureRequest, folder: Path) -> Iterator[Check]:
    """Runs mypy on the project, each time in a new process or in the same daemon."""
    if request.param == "mypy":
        yield lambda: _run(folder, "mypy", "calls.py")
        return
    yield lambda: _run(folder, "mypy.dmypy", "run", "--", "calls.py", "models.py", "tables.py")
    _run(folder, "mypy.dmypy", "kill")


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_a_change_of_the_model_is_seen_in_unchanged_callers(folder: Path, check: Check) -> None:
    assert "Success" in check()

    _replace(folder / "models.py", "TASK#{task_id}", "TASK#{task_id}#{title}")
    assert 'Missing named argument "title" for "get"' in check()
    _replace(folder / "models.py", "TASK#{task_id}#{title}", "TASK#{task_id}")
    assert "Success" in check()

    _replace(folder / "tables.py", "tenant_id", "org_id")
    assert 'Missing named argument "tenant_id" for "get"' in check()
    _replace(folder / "tables.py", "org_id", "tenant_id")
    assert "Success" in check()

    _replace(folder / "models.py", "title: str", "name: str")
    assert '"Task" has no field "title"' in check()
