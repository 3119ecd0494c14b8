"""`solotable lint`: what it prints in each format, what is chosen, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solotable._entities.lint import CODES
from solotable.cli.main import main

SOUND = """
from typing import Any
from solotable import Entity, Index, Key, Query, Table, pattern

shop = Table("Shop", indexes=[Index("GSI1")])


class Order(Entity, table=shop):
    key = Key("ORG#{org}", "ORDER#{order_id}")
    by_day = Key("ORG#{org}#{owner}", "{order_id}", index="GSI1")
    org: str
    owner: str
    order_id: str
    status: str = ""

    @pattern
    @classmethod
    def of_org(cls, org: str) -> Query[Any]:
        "All orders."
        return cls.key.query(org=org)
"""
#: In the way of the pattern (ST102), hot (ST201), and with the same key as orders (ST101).
UNSOUND = (
    SOUND
    + """

class Line(Entity, table=shop):
    key = Key("ORG#{org}", "ORDER#{order_id}#{line:03d}")
    org: str
    order_id: str
    line: int


class Special(Entity, table=shop):
    key = Key("ORG#special", "ORDER#{n:02d}")
    n: int

    @pattern
    @classmethod
    def all_of_them(cls) -> Query[Any]:
        return cls.key.query()
"""
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SOLOTABLE_MODELS", raising=False)
    (tmp_path / "sound_models.py").write_text(SOUND, encoding="utf-8")
    (tmp_path / "unsound_models.py").write_text(UNSOUND, encoding="utf-8")
    return tmp_path


@pytest.fixture
def lint(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command; returns its exit code, what it printed and its complaints."""

    def run(*arguments: str) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["lint", *arguments])
        printed = capsys.readouterr()
        return end.value.code, printed.out, printed.err

    return run


def codes(out: str) -> list[str]:
    return [each["code"] for each in json.loads(out)["findings"]]


def test_a_sound_table(lint: Any) -> None:
    assert lint("sound_models.py:shop") == (0, "Order: 1 entity, 2 keys, 1 pattern; nothing found\n", "")


def test_findings_as_text(lint: Any) -> None:
    code, out, _ = lint("unsound_models.py:shop")
    lines = out.splitlines()
    assert code == 1
    place = UNSOUND.splitlines().index("class Special(Entity, table=shop):") + 1
    assert lines[0].startswith(f"unsound_models.py:{place}: ST101 error: Order and Special can have the same")
    assert lines[-2:] == [
        "",
        "Line, Order, Special: 3 entities, 4 keys, 2 patterns; 5 errors, 1 warning, 1 note",
    ]


def test_findings_as_json(lint: Any) -> None:
    code, out, _ = lint("unsound_models.py:shop", "--format", "json")
    assert lint("unsound_models.py:shop", "--json") == (code, out, "")
    report = json.loads(out)
    assert code == 1
    assert report["tables"] == [
        {"name": "Shop", "entities": ["Line", "Order", "Special"], "keys": 4, "patterns": 2}
    ]
    assert codes(out) == ["ST101", "ST102", "ST102", "ST102", "ST102", "ST201", "ST502"]
    assert set(report["findings"][0]) == {"code", "severity", "table", "entity", "where", "message"}


def test_findings_as_annotations_of_github(lint: Any) -> None:
    _, out, _ = lint("unsound_models.py:shop", "--format", "github")
    kinds = [line.partition(" ")[0] for line in out.splitlines()]
    assert kinds == ["::error"] * 5 + ["::warning", "::notice", "Line,"]
    facts, _, message = out.splitlines()[0].removeprefix("::error ").partition("::")
    assert facts.startswith("file=unsound_models.py,line=")
    assert facts.endswith(",title=ST101")
    assert message.startswith("Order and Special can have the same key (PK=ORG#special, SK=ORDER#00)")


def test_github_annotations_are_escape() -> None:
    from solotable.cli.design.lint import _escape  # what the format itself demands

    assert _escape("100%\nof it: all") == "100%25%0Aof it: all"
    assert _escape("a:b,c", also=":,") == "a%3Ab%2Cc"


def test_findings_as_sarif(lint: Any) -> None:
    _, out, _ = lint("unsound_models.py:shop", "--format", "sarif")
    report = json.loads(out)
    (run,) = report["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert report["version"] == "2.1.0"
    assert [rule["id"] for rule in rules] == list(CODES)
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "unsound_models.py"}
    assert place["region"]["startLine"] > 1
    assert {result["level"] for result in run["results"]} == {"error", "warning", "note"}


@pytest.mark.parametrize(
    ("options", "left", "code"),
    [
        (["--select", "ST101"], ["ST101"], 1),
        (["--select", "st2,ST5"], ["ST201", "ST502"], 1),
        (["--select", "ST502"], ["ST502"], 0),
        (["--ignore", "ST1", "--ignore", "ST201"], ["ST502"], 0),
        (["--select", "ST1", "--ignore", "ST102"], ["ST101"], 1),
        (["--select", "ST401"], ["ST401"], 1),
        (["--select", "ST1", "--exit-zero"], ["ST101", "ST102", "ST102", "ST102", "ST102"], 0),
    ],
)
def test_select_ignore_and_exit_codes(lint: Any, options: list[str], left: list[str], code: int) -> None:
    given, out, _ = lint("unsound_models.py", "--format", "json", *options)
    assert (given, codes(out)) == (code, left)


def test_reserved_words_are_a_warning_if_selected(lint: Any) -> None:
    code, out, _ = lint("sound_models.py", "--select", "ST401")
    assert code == 1
    assert "ST401 warning: Order stores owner, status" in out


def test_an_unknown_code_is_a_usage_error(lint: Any) -> None:
    code, _, complaint = lint("sound_models.py", "--ignore", "ST110")
    assert code == 2
    assert "--ignore: unknown code 'ST110'; did you mean ST10" in complaint


def test_pyproject_sets_models_and_ignored_codes(lint: Any, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.solotable]\nmodels = "unsound_models.py"\n[tool.solotable.lint]\nignore = ["ST10", "ST201"]\n',
        encoding="utf-8",
    )
    code, out, _ = lint("--format", "json")
    assert (code, codes(out)) == (0, ["ST502"])
    (folder / "pyproject.toml").write_text('[tool.solotable.lint]\nignore = "ST101"\n', encoding="utf-8")
    code, _, complaint = lint("sound_models.py")
    assert code == 1
    assert "ignore must be a list" in complaint


def test_a_declaration_error_is_a_finding(lint: Any, folder: Path) -> None:
    (folder / "refused_models.py").write_text(SOUND.replace("ORG#{org}#", "ORG#{og}#"), encoding="utf-8")
    code, out, complaint = lint("refused_models.py:shop")
    line = SOUND.splitlines().index("class Order(Entity, table=shop):") + 1
    assert code == 1
    assert out.startswith(f"refused_models.py:{line}: ST100 error: Order.by_day: {{og}} in")
    assert out.endswith("models that cannot be imported; 1 error\n")
    assert complaint == ""


def test_a_question_in_a_message_gets_no_full_stop(lint: Any, folder: Path) -> None:
    (folder / "misspelt_models.py").write_text(SOUND.replace("ORG#{org}#", "ORG#{orgg}#"), encoding="utf-8")
    _, out, _ = lint("misspelt_models.py:shop")
    assert "did you mean org?\n" in out


def test_any_other_import_error_is_an_error(lint: Any, folder: Path) -> None:
    (folder / "broken_models.py").write_text("import no_such_thing\n", encoding="utf-8")
    code, out, complaint = lint("broken_models.py")
    assert (code, out) == (1, "")
    assert "broken_models.py:1: ModuleNotFoundError" in complaint
    assert "Traceback" not in complaint


def test_missing_models_are_a_usage_error(lint: Any) -> None:
    code, _, complaint = lint()
    assert code == 2
    assert "No models given; use -m models.py:table" in complaint


def test_several_models_at_once(lint: Any, folder: Path) -> None:
    (folder / "more_models.py").write_text(
        'from solotable import Table\nfrom sound_models import shop\nbank = Table("Bank")\n', encoding="utf-8"
    )
    code, out, _ = lint("sound_models.py", "more_models.py")
    assert code == 0
    assert out.splitlines() == [
        "Order: 1 entity, 2 keys, 1 pattern; nothing found",
        "Bank: 0 entities, 0 keys, 0 patterns; nothing found",
    ]
