"""`solotable delete-partition`: counts, asks, deletes, and says what it kept."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from solotable._protocol.requests import PutItem

from .conftest import Run
from .surveys import Section, surveyor

COMMAND = ("delete-partition", "Section.of_survey", "survey_id=s1")


def test_a_dry_run_counts_and_a_confirmed_run_deletes(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = filled(*COMMAND, "--dry-run")
    assert (counted.code, counted.out) == (0, "3 items to delete (3 Section).\n")
    for answer, code in (("", 2), ("n\n", 1)):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        assert filled(*COMMAND).code == code
    assert filled("count", "Section.of_survey", "survey_id=s1", "--json").json["count"] == 3
    some = filled(*COMMAND, "--yes", "--budget", "2")
    assert some.out == "2 items deleted (2 Section).\n"
    cursor = some.err.partition("continue with: --cursor ")[2].strip()
    rest = filled(*COMMAND, "--yes", "--json", "--cursor", cursor)
    assert rest.json == {
        "deleted": {"Section": 1},
        "read": 1,
        "unknown": 0,
        "changed": 0,
        "dry_run": False,
        "done": True,
        "cursor": None,
    }
    assert filled("count", "Section.of_survey", "survey_id=s1", "--json").json["count"] == 0


def test_a_cursor_gets_past_items_that_are_kept(filled: Run) -> None:
    with surveyor.open("sqlite:///survey.db") as db:
        found = db.tenant("acme").require(Section, survey_id="s1", section_id="roof").to_item()
        for number in range(3):
            ghost = {**found, "SK": {"S": f"GHOST#{number}"}, "GSI2SK": {"S": f"SECTION#00000{number}"}}
            ghost["_type"] = {"S": "Ghost"}
            db.engine.handle(PutItem(table="SurveyorData", item=ghost))
    cursor: tuple[str, ...] = ()
    for deleted, unknown in (({}, 2), ({"Section": 1}, 1), ({"Section": 2}, 0)):
        ran = filled(*COMMAND, "--yes", "--json", "--budget", "2", *cursor)
        assert (ran.json["deleted"], ran.json["unknown"]) == (deleted, unknown)
        cursor = ("--cursor", ran.json["cursor"] or "")
    # Nothing to delete needs no answer, and the cursor is printed as well.
    kept = filled(*COMMAND, "--budget", "2")
    assert (kept.code, kept.out) == (0, "0 items deleted.\n")
    assert "Kept 2 items" in kept.err
    assert "--cursor " in kept.err
    forged = filled(*COMMAND, "--yes", "--cursor", "x")
    assert forged.code == 2


def test_without_a_place_for_the_secret_there_is_no_cursor(
    filled: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    ran = filled(*COMMAND, "--dry-run", "--budget", "2")
    assert "pass a larger --budget, or set SOLOTABLE_CURSOR_SECRETS" in ran.err
    assert filled(*COMMAND, "--yes", "--cursor", "x").code == 2


def test_the_question_names_what_is_deleted_and_where(filled: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    assert "Delete 3 items (3 Section) of tenant acme in survey.db?" in filled(*COMMAND).err
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    other = filled(*COMMAND, "--budget", "1")
    assert "Delete 1 item (1 Section)" in other.err
    assert other.out == "1 item deleted (1 Section).\n"
    monkeypatch.delenv("SOLOTABLE_TENANT")
    wrong = filled(*COMMAND)
    assert wrong.code == 2
    assert "pass --tenant T" in wrong.err
    assert "Delete" not in wrong.err
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    admin = filled(*COMMAND, "tenant_id=acme", "--admin")
    assert "Delete 2 items (2 Section) of tenant acme in survey.db?" in admin.err


def test_raw_needs_the_table_itself(filled: Run) -> None:
    wrong = filled(*COMMAND, "--yes", "--raw")
    assert wrong.code != 0
    assert "one primary key" in wrong.err
