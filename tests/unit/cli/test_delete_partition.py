"""`solotable delete-partition`: counts, asks, deletes, and says what it kept."""

from __future__ import annotations

import io
import sys

import pytest

from .conftest import Run

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
    assert "run the command again" in some.err
    rest = filled(*COMMAND, "--yes", "--json")
    assert rest.json == {
        "deleted": {"Section": 1},
        "read": 1,
        "unknown": 0,
        "changed": 0,
        "dry_run": False,
        "done": True,
    }
    assert filled("count", "Section.of_survey", "survey_id=s1", "--json").json["count"] == 0


def test_raw_needs_the_table_itself(filled: Run) -> None:
    wrong = filled(*COMMAND, "--yes", "--raw")
    assert wrong.code != 0
    assert "one primary key" in wrong.err
