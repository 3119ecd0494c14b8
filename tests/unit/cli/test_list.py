"""`solotable list` on a real file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def tenants(filled: Run) -> Run:
    """Run commands over a file with sections of two tenants, and items of other entities."""
    for name in ("Cellar", "Attic"):
        arguments = (f"section_id={name.lower()}", f"name={name}", "order=1", "--tenant", "other")
        assert filled("put", "Section", "survey_id=s9", *arguments).code == 0
    return filled


def names(text: str) -> list[str]:
    return sorted(json.loads(line)["name"] for line in text.splitlines())


def test_it_prints_the_items_of_one_entity_and_tenant(tenants: Run) -> None:
    assert names(tenants("list", "Section", "--jsonl").out) == ["Hall", "Loft", "Roof"]
    assert names(tenants("list", "Section", "--jsonl", "--tenant", "other").out) == ["Attic", "Cellar"]
    assert tenants("list", "Survey", "--json").json[0]["title"] == "12 Main Street"
    assert tenants("list", "Section", "--tenant", "unknown", "--json").json == []


def test_admin_prints_the_items_of_all_tenants(tenants: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    both = tenants("list", "Section", "--admin")
    assert (both.code, "$SOLOTABLE_TENANT" in both.err) == (2, True)
    monkeypatch.delenv("SOLOTABLE_TENANT")
    found = tenants("list", "Section", "--admin", "--jsonl").out
    assert names(found) == ["Attic", "Cellar", "Hall", "Loft", "Roof"]
    neither = tenants("list", "Section")
    assert neither.code == 2
    assert "Section belongs to a tenant; pass --tenant T, or --admin for all tenants." in neither.err


def test_global_entities_need_no_tenant(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOLOTABLE_TENANT")
    assert run("put", "Setting", "name=a", "value=b").code == 0
    assert run("list", "Setting", "--json").json == [{"name": "a", "value": "b"}]


def test_limit_and_all(tenants: Run) -> None:
    ran = tenants("list", "Section", "--limit", "2", "--jsonl")
    assert len(ran.out.splitlines()) == 2
    assert ran.err == "Stopped after 2 rows; pass --all or a larger --limit for more.\n"
    every = tenants("list", "Section", "--all", "--jsonl")
    assert (len(every.out.splitlines()), every.err) == (3, "")


def test_limit_and_all_cannot_be_used_together(tenants: Run) -> None:
    ran = tenants("list", "Section", "--limit", "50", "--all")
    assert (ran.code, ran.out) == (2, "")
    assert "--all prints every row; omit --limit." in ran.err


def test_the_help_of_admin_asks_for_no_argument(run: Run) -> None:
    assert "argument" not in run("list", "--help").out
    assert "argument" in run("get", "--help").out


def test_the_default_limit_is_50(run: Run, tmp_path: Path) -> None:
    rows = [{"survey_id": f"s{number}", "title": "T"} for number in range(60)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    assert run("put", "Survey", "--json-input", "rows.json").code == 0
    assert len(run("list", "Survey", "--json").json) == 50
    assert len(run("list", "Survey", "--all", "--json").json) == 60


def test_a_budget_ends_the_scan(tenants: Run) -> None:
    ran = tenants("list", "Section", "--all", "--budget", "3", "--json")
    assert (ran.code, ran.out) == (1, "")
    assert "budget" in ran.err
    assert tenants("list", "Section", "--all", "--budget", "7", "--json").code == 0


def test_usage_errors(tenants: Run) -> None:
    assert "did you mean 'Section'?" in tenants("list", "Sektion").err
    missing = tenants("list", "Section", "-d", "missing.db")
    assert (missing.code, "No such file: missing.db" in missing.err) == (3, True)
