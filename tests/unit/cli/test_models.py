"""Import models named by -m, and explain what is wrong with them."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from solotable.cli.options.models import BrokenModels, load_tables, models_option, settings

MODELS = """
from solotable import Entity, Key, Table
shop = Table("Shop")
bank = Table("Bank")
also_shop = shop
number = 7

class Order(Entity, table=shop):
    key = Key("ORDER#{order_id}", "ORDER")
    order_id: str
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOLOTABLE_MODELS", raising=False)
    write(tmp_path, "given_models.py", MODELS)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def names(spec: str) -> list[str]:
    return [table.name for table in load_tables(spec)]


def error_of(spec: str | None) -> str:
    with pytest.raises(click.ClickException) as raised:
        load_tables(spec)
    return raised.value.format_message()


@pytest.mark.parametrize("place", ["given_models.py", "./given_models.py", "given_models"])
def test_one_table_or_all_of_them(place: str) -> None:
    assert names(place) == ["Shop", "Bank"]
    assert names(f"{place}:bank") == ["Bank"]
    assert [list(table.plans) for table in load_tables(f"{place}:also_shop")] == [["Order"]]


def test_an_absolute_path(folder: Path) -> None:
    assert names(f"{folder / 'given_models.py'}:shop") == ["Shop"]


def test_a_file_in_a_package_keeps_its_relative_imports(folder: Path) -> None:
    write(folder, "lib/given_pkg/__init__.py", "")
    write(folder, "lib/given_pkg/tables.py", MODELS)
    write(folder, "lib/given_pkg/models.py", "from .tables import shop\n")
    assert names("lib/given_pkg/models.py") == ["Shop"]
    assert "given_pkg.models" in sys.modules


def test_a_file_with_the_name_of_another_module(folder: Path) -> None:
    import json

    write(folder, "sub/json.py", MODELS)
    assert names("sub/json.py:shop") == ["Shop"]
    assert sys.modules["json"] is json
    assert load_tables("sub/json.py:shop")[0] is load_tables("sub/json.py:shop")[0]


def test_entities_with_forward_references_are_listed() -> None:
    text = MODELS + '    line: "Line | None" = None\n\nclass Line(Entity):\n    text: str\n'
    write(Path.cwd(), "later.py", text)
    assert [list(table.plans) for table in load_tables("later.py:shop")] == [["Order"]]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nothing.py", "no such file: nothing.py"),
        ("no/such", "no such file: no/such"),
        ("no_such_module:shop", "no module 'no_such_module' is installed"),
        ("given_models.inner", "no module 'given_models.inner' is installed"),
        ("given_models.py:shopp", "no such name 'shopp'; did you mean shop?"),
        ("given_models.py:zzz", "its tables are shop, bank, also_shop"),
        ("given_models.py:number", "'number' is a int, not a Table; its tables are shop"),
        ("given_models.py:Order", "'Order' is a class, not a Table"),
        ("given_models.py:a b", "Cannot parse 'given_models.py:a b'"),
        (":shop", "Cannot parse ':shop'"),
        ("", "No models given; use -m models.py:table, SOLOTABLE_MODELS"),
        (None, "No models given"),
    ],
)
def test_errors_explain_what_is_wrong(spec: str | None, message: str) -> None:
    assert message in error_of(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_thing\n", "broken.py:1: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1\ny = x +\n", "broken.py:2: SyntaxError"),
        ("\n\nraise ValueError('a\\nb')\n", "broken.py:3: ValueError: a b"),
        ("import sys\nsys.exit(3)\n", "broken.py:2: SystemExit: 3"),
        (MODELS.replace("{order_id}", "{nothing}"), "broken.py:8: DeclarationError: Order.key"),
        ("VALUE = 1\n", "broken.py declares no Table"),
    ],
)
def test_models_that_cannot_be_imported(folder: Path, text: str, message: str) -> None:
    write(folder, "broken.py", text)
    text = error_of("broken.py")
    assert message in text
    assert "\n" not in text
    assert "broken" not in sys.modules or "declares" in message


def test_the_error_has_cause_and_location(folder: Path) -> None:
    write(folder, "broken.py", "raise ValueError('no')\n")
    with pytest.raises(BrokenModels) as raised:
        load_tables("broken")
    assert isinstance(raised.value.cause, ValueError)
    assert raised.value.where == f"{folder / 'broken.py'}:1"


@click.command()
@models_option
def show(models: str | None) -> None:
    click.echo(", ".join(table.name for table in load_tables(models)))


def test_the_option_the_environment_and_the_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "pyproject.toml", '[tool.solotable]\nmodels = "given_models.py:shop"\n')
    (folder / "deep").mkdir()
    monkeypatch.chdir(folder / "deep")
    assert CliRunner().invoke(show, []).output == "Shop\n"
    write(folder, "pyproject.toml", '[tool.solotable]\nmodels = "given_models:shop"\n')
    assert CliRunner().invoke(show, []).output == "Shop\n"
    monkeypatch.setenv("SOLOTABLE_MODELS", "given_models:bank")
    assert CliRunner().invoke(show, []).output == "Bank\n"
    assert CliRunner().invoke(show, ["-m", "given_models"]).output == "Shop, Bank\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.solotable\n", "cannot be read"),
        ("[tool.solotable]\nmodels = 7\n", "models must be a string"),
        ("[tool]\nsolotable = 7\n", "must be tables"),
    ],
)
def test_an_invalid_project_file_is_explained(folder: Path, text: str, message: str) -> None:
    write(folder, "pyproject.toml", text)
    outcome = CliRunner().invoke(show, [])
    assert outcome.exit_code == 1
    assert message in outcome.output


def test_settings_are_empty_without_a_section(folder: Path) -> None:
    write(folder, "pyproject.toml", "[project]\nname = 'x'\n")
    assert settings() == {}
    assert settings("lint") == {}
