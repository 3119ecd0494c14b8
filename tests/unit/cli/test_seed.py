"""`solotable seed` on a real file."""

from __future__ import annotations

from .conftest import Run


def test_seed_stores_entities_with_their_parents(run: Run) -> None:
    ran = run("seed", "Survey=2", "Section", "--count", "6", "--json")
    assert (ran.code, ran.json) == (
        0,
        [{"entity": "Survey", "stored": 2}, {"entity": "Section", "stored": 6}],
    )
    surveys = run("list", "Survey", "--json").json
    assert len(surveys) == 2
    sections = run("query", "Section.of_survey", f"survey_id={surveys[0]['survey_id']}", "--json")
    assert len(sections.json["items"]) == 3


def test_seed_without_names_stores_every_entity(run: Run) -> None:
    ran = run("seed", "--count", "3")
    assert ran.code == 0, ran.err
    assert "Stored 3 Survey." in ran.out
    assert "Stored 3 Setting." in ran.out
    assert run("count", "Section.named").out.strip() == "3"


def test_seed_replaces_nothing(run: Run) -> None:
    assert run("seed", "Survey").code == 0
    again = run("seed", "Survey")
    assert again.code == 4
    assert "exists" in again.err
    assert run("seed", "Survey", "--seed", "1").code == 0


def test_seed_explains_wrong_arguments(run: Run) -> None:
    assert "No such entity 'Surveys'" in run("seed", "Surveys").err
    assert "must be a whole number" in run("seed", "Survey=x").err
    assert "pass --tenant" in run("seed", "Survey", "--admin").err
