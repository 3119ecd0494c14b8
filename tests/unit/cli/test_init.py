"""`solotable init`: the project passes its own tests, and no file is overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import solotable
from tests.waiting import HANG_SECONDS

from .conftest import Run

SOURCE = str(Path(solotable.__file__).parents[1])


def in_project(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("SOLOTABLE_")}
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *arguments],
        cwd=folder,
        env=variables | {"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )


def test_the_project_passes_its_tests_and_its_commands_work(run: Run, tmp_path: Path) -> None:
    ran = run("init", "my-shop")
    assert (ran.code, ran.err) == (0, "")
    folder = tmp_path / "my-shop"
    done = in_project(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    put = in_project(
        folder, "-m", "solotable", "put", "Customer", "customer_id=ana", "name=Ana", "-d", "my-shop.db"
    )
    assert put.returncode == 0, put.stderr
    lint = in_project(folder, "-m", "solotable", "lint")
    assert (lint.returncode, "nothing found" in lint.stdout) == (0, True), lint.stdout
    patterns = in_project(folder, "-m", "solotable", "patterns")
    assert "Order.of_customer" in patterns.stdout
    assert 'Table("MyShop"' in (folder / "models.py").read_text(encoding="utf-8")


def test_a_file_in_the_way_stays_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "app.py").write_text("mine", encoding="utf-8")
    ran = run("init", "shop")
    assert (ran.code, "already has app.py; nothing was written" in ran.err) == (1, True)
    assert [path.name for path in folder.iterdir()] == ["app.py"]
    assert (folder / "app.py").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("name", ["1st", "has space", "a" * 70, 'quo"te'])
def test_a_name_that_is_no_project_name_is_rejected(run: Run, name: str, tmp_path: Path) -> None:
    assert run("init", name).code == 2
    assert list(tmp_path.iterdir()) == []
