"""`solotable limiter limits plan|apply|diff`: files of limits against what is stored."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from .conftest import Ran, Run

FILE = """\
system:
  on_unavailable: allow
  limits:
    rpm: {capacity: 100}
    rpd: 5000/day
resources:
  gpt-4:
    limits:
      rpm: 60
entities:
  u-1:
    limits: {rpm: {capacity: 9000, refill: 6000, period: hour}}
    resources:
      gpt-4: {limits: {rpm: 3/hour}}
"""


@pytest.fixture
def limits(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run `solotable limiter limits` beside a file of four levels."""
    monkeypatch.setenv("SOLOTABLE_URL", "sqlite:///l.db")
    (tmp_path / "limits.yaml").write_text(FILE)

    def run_(*arguments: str) -> Ran:
        return run("limiter", "limits", *arguments)

    return run_


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_file_is_applied_once_and_then_nothing_is_left_to_do(limits: Run, run: Run) -> None:
    assert limits("apply", "limits.yaml", "--yes").out.endswith("Applied: 4 added, 0 changed, 0 removed.\n")
    assert run("limiter", "system", "get-defaults", "--json").json == {
        "entity": None,
        "resource": None,
        "limits": [
            {
                "name": "rpd",
                "kind": "token_bucket",
                "capacity": 5000,
                "refill": 5000,
                "period_seconds": 86_400,
            },
            {"name": "rpm", "kind": "token_bucket", "capacity": 100, "refill": 100, "period_seconds": 60},
        ],
        "schedule": None,
        "on_unavailable": "allow",
        "mode": "enforce",
    }
    (own, _) = run("limiter", "entity", "get-limits", "u-1", "--json").json
    assert own["limits"] == [
        {"name": "rpm", "kind": "token_bucket", "capacity": 9000, "refill": 6000, "period_seconds": 3600}
    ]

    again = limits("apply", "limits.yaml")
    assert (again.code, again.out) == (0, "Nothing to do: the stored limits match the file (4 levels).\n")
    same = limits("diff", "limits.yaml")
    assert (same.code, same.out, same.err) == (0, "", "")


def test_plan_looks_like_this(limits: Run, run: Run) -> None:
    assert "Plan: 4 to add" in limits("plan", "limits.yaml").out  # of a database that does not exist
    for words in (
        ("system", "set-defaults", "rpm=100/minute"),
        ("resource", "set-defaults", "gpt-4", "rpm=60/minute"),
        ("entity", "set-limits", "u-2", "rpm=1/minute"),
    ):
        assert run("limiter", *words).code == 0
    told = limits("plan", "limits.yaml")
    assert (told.code, told.out) == (
        0,
        """\
   level                stored          planned
-  -------------------  --------------  ------------------------------------------------
~  system               rpm=100/minute  rpd=5000/day rpm=100/minute on_unavailable=allow
+  entity u-1           (none)          rpm=6000/hour+9000
+  entity u-1 on gpt-4  (none)          rpm=3/hour

Plan: 2 to add, 1 to change, 0 to remove; 1 unchanged.
""",
    )
    assert told.err == "1 stored level not in the file; --prune removes: entity u-2\n"
    pruned = limits("plan", "limits.yaml", "--prune")
    assert "-  entity u-2           rpm=1/minute    (none)\n" in pruned.out
    assert pruned.out.endswith("Plan: 2 to add, 1 to change, 1 to remove; 1 unchanged.\n")
    assert run("limiter", "entity", "get-limits", "u-2").code == 0, "a plan changes nothing"
    assert [each["action"] for each in limits("plan", "limits.yaml", "--json").json["changes"]] == [
        "change",
        "add",
        "add",
    ]


def test_diff_exits_with_1_and_looks_like_this(limits: Run, run: Run) -> None:
    assert limits("apply", "limits.yaml", "--yes").code == 0
    assert run("limiter", "resource", "set-defaults", "gpt-4", "rpm=50/minute", "tpm=9/s").code == 0
    assert run("limiter", "entity", "set-limits", "u-2", "rpm=1/minute").code == 0
    told = limits("diff", "limits.yaml", "--prune")
    assert (told.code, told.out) == (
        1,
        """\
--- stored at sqlite:///l.db, namespace default
+++ limits.yaml
  resource gpt-4
-   rpm=50/minute
-   tpm=9/second
+   rpm=60/minute
  entity u-2
-   rpm=1/minute
""",
    )
    found = limits("diff", "limits.yaml", "--json")
    assert (found.code, len(found.json["changes"])) == (1, 1)
    assert found.json["unnamed"] == [{"entity": "u-2", "resource": None}]


def test_prune_removes_what_the_file_does_not_name_and_nothing_else(limits: Run, run: Run) -> None:
    assert run("limiter", "entity", "set-limits", "u-2", "rpm=1/minute").code == 0
    assert limits("apply", "limits.yaml", "--yes").code == 0
    assert run("limiter", "entity", "get-limits", "u-2").code == 0
    done = limits("apply", "limits.yaml", "--yes", "--prune", "--json")
    assert [(each["action"], each["entity"]) for each in done.json["changes"]] == [("remove", "u-2")]
    assert run("limiter", "entity", "get-limits", "u-2").code == 3
    assert limits("diff", "limits.yaml", "--prune").code == 0


def test_apply_asks_first(limits: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "")
    nobody = limits("apply", "limits.yaml")
    assert nobody.code == 2
    assert "pass --yes" in nobody.err
    assert nobody.err.startswith("Apply it to namespace default? ")
    answer(monkeypatch, "n\n")
    no = limits("apply", "limits.yaml")
    assert (no.code, no.err.endswith("Nothing was changed.\n")) == (1, True)
    assert limits("diff", "limits.yaml").code == 1
    answer(monkeypatch, "y\n")
    assert limits("apply", "limits.yaml").code == 0
    assert limits("diff", "limits.yaml").code == 0


def test_a_file_is_for_the_namespace_that_it_names(limits: Run, run: Run, tmp_path: Path) -> None:
    (tmp_path / "eu.yaml").write_text("namespace: eu\nsystem: {limits: {rpm: 5}}\n")
    assert limits("apply", "eu.yaml", "--yes").code == 0
    assert run("limiter", "system", "get-defaults").code == 3
    assert run("limiter", "system", "get-defaults", "-N", "eu").code == 0
    other = limits("apply", "eu.yaml", "--yes", "-N", "us")
    assert (other.code, "for namespace 'eu'" in other.err) == (2, True)


def test_an_empty_name_is_not_the_default_namespace(limits: Run, run: Run) -> None:
    assert limits("apply", "limits.yaml", "--yes", "-N", "").code == 2
    assert run("limiter", "system", "set-defaults", "rpm=1", "-N", "").code == 2
    assert run("limiter", "system", "get-defaults").code == 3


def test_every_mistake_is_reported_with_its_line(limits: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "system:\n  limits:\n    rpm: {capacity: -1}\n    tpm:\n      refill: 5\n"
        "entities:\n  a b: {limits: {x: 1}}\n"
    )
    ran = limits("plan", "bad.yaml")
    assert (ran.code, ran.out) == (2, "")
    first, second, third = ran.err.splitlines()
    assert first.startswith("bad.yaml:3: The capacity of limit 'rpm' is a whole number")
    assert second == "bad.yaml:4: Limit 'tpm' has no capacity."
    assert third.startswith("bad.yaml:7: An entity name has")
    assert not (tmp_path / "l.db").exists()


def test_a_missing_file_is_reported(limits: Run, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"system: \xff")
    for name in ("missing.yaml", ".", "latin.yaml"):
        ran = limits("apply", name, "--yes")
        assert (ran.code, ran.err.count("Error: ")) == (2, 1)
        assert "Traceback" not in ran.err


def test_json_needs_no_pyyaml_and_yaml_says_how_to_get_it(
    limits: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    ran = limits("plan", "limits.yaml")
    assert (ran.code, 'pip install "solotable[limiter]"' in ran.err) == (2, True)
    (tmp_path / "limits.json").write_text(json.dumps({"system": {"limits": {"rpm": {"capacity": 5}}}}))
    assert limits("apply", "limits.json", "--yes").code == 0


@pytest.mark.parametrize("name", ["plan", "diff"])
def test_the_help_of_prune_promises_no_removal_where_nothing_is_written(run: Run, name: str) -> None:
    text = " ".join(run("limiter", "limits", name, "--help").out.split())
    assert "Also remove" not in text
    assert "Also remove" in " ".join(run("limiter", "limits", "apply", "--help").out.split())
