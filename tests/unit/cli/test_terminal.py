"""What commands print on a terminal, and what they do not print in a pipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serving import command

from .terminal import run_on_terminal

ESCAPE = "\x1b["
MODELS = """
from solotable import Entity, Key, Table

shop = Table("Shop")


class Product(Entity, table=shop, schema_version=1):
    key = Key("PRODUCT#{product_id}", "PRODUCT")
    product_id: str


class Clash(Entity, table=shop):
    key = Key("PRODUCT#{product_id}", "PRODUCT")
    product_id: str
"""
#: Commands that take long on a large file; each name is what its bar shows.
LONG = {
    "put Product": ("put", "Product", "--json-input", "rows.json", "-m", "models.py", "-d", "shop.db"),
    "read Product": ("schema", "versions", "Product", "-m", "models.py", "-d", "shop.db"),
    "items": ("doctor", "shop.db"),
    "backfill Product": ("backfill", "Product", "-m", "models.py", "-d", "shop.db"),
    "compact": ("compact", "shop.db"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with models that have a finding, and a file with 300 items."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "models.py").write_text(MODELS)
    (folder / "rows.json").write_text(json.dumps([{"product_id": str(number)} for number in range(300)]))
    assert command(*LONG["put Product"], cwd=folder).stdout == "Stored 300 Product.\n"
    return folder


def test_lint_is_coloured_unless_no_color_is_set(folder: Path) -> None:
    lint = ("lint", "models.py")
    assert f"{ESCAPE}31merror" in run_on_terminal(*lint, cwd=folder)
    assert f"{ESCAPE}31merror" in run_on_terminal(*lint, cwd=folder, NO_COLOR="")
    plain = run_on_terminal(*lint, cwd=folder, NO_COLOR="1")
    assert "ST101 error:" in plain
    assert ESCAPE not in plain
    assert ESCAPE not in command(*lint, cwd=folder).stdout


def test_the_problems_of_doctor_are_not_coloured_with_no_color(folder: Path) -> None:
    (folder / "broken.db").write_bytes(b"This is not a database.\n" * 100)
    assert f"{ESCAPE}31m" in run_on_terminal("doctor", "broken.db", cwd=folder)
    plain = run_on_terminal("doctor", "broken.db", cwd=folder, NO_COLOR="1")
    assert "PROBLEM" in plain
    assert f"{ESCAPE}31m" not in plain


@pytest.mark.parametrize("shown", LONG)
def test_long_commands_show_a_bar_on_a_terminal(folder: Path, shown: str) -> None:
    printed = run_on_terminal(*LONG[shown], cwd=folder)
    assert shown in printed
    assert "━" in printed
    assert "0:00:0" in printed  # the time that has passed


@pytest.mark.parametrize("shown", LONG)
def test_long_commands_print_no_bar_in_a_pipe(folder: Path, shown: str) -> None:
    done = command(*LONG[shown], cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "━" not in done.stdout
    assert ESCAPE not in done.stdout


def test_the_bar_of_put_counts_to_the_number_of_objects(folder: Path) -> None:
    assert "300/300" in run_on_terminal(*LONG["put Product"], cwd=folder)


def test_json_on_a_terminal_has_no_bar(folder: Path) -> None:
    printed = run_on_terminal(*LONG["read Product"], "--json", cwd=folder)
    assert json.loads(printed)[0]["items"] == 300


def test_no_rows_are_said_on_standard_error(folder: Path) -> None:
    done = command("list", "Clash", "-m", "models.py", "-d", "shop.db", cwd=folder)
    assert (done.returncode, done.stdout.split(), done.stderr) == (
        0,
        ["product_id", "----------"],
        "0 rows\n",
    )
    for output, printed in (("--json", "[]\n"), ("--jsonl", ""), ("--csv", "product_id\n")):
        done = command("list", "Clash", "-m", "models.py", "-d", "shop.db", output, cwd=folder)
        assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")
    assert "0 rows" in run_on_terminal("list", "Clash", "-m", "models.py", "-d", "shop.db", cwd=folder)
