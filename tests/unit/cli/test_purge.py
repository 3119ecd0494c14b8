"""`solotable purge` on a real file."""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from solotable import FROM_SCOPE, Entity, Key, SoftDelete, Table

from .conftest import Run

DAY = 86_400
box = Table("Box", tenant="tenant_id")


class Note(Entity, table=box):
    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    note_id: str


PURGE = ("purge", "-m", f"{__file__}:box", "-d", "sqlite:///box.db")


@pytest.fixture
def notes(run: Run) -> Run:
    """Three notes that are due, of which one is held, and one that is not due."""
    for days, names in ((8, "abc"), (6, "d")):
        before = time.time() - days * DAY
        with box.open("sqlite:///box.db", clock=lambda moment=before: moment) as db:  # type: ignore[misc]
            acme = db.tenant("acme")
            for name in names:
                acme.create(Note(note_id=name))
                acme.delete(Note, note_id=name)
            if "b" in names:
                acme.hold(Note, note_id="b", reason="case 7")
    return run


def test_a_dry_run_counts_what_a_real_one_removes(notes: Run) -> None:
    dry = notes(*PURGE, "--dry-run", "--json")
    assert dry.code == 0
    (report,) = dry.json
    assert (report["table"], report["items"], report["removed"]) == ("Box", 2, {"Note": 2})
    assert [each["held"] for each in report["held"]] == ["case 7"]
    done = notes(*PURGE)
    assert done.out == "Box: 2 items purged (2 Note).\nOn hold: 1 item; --hold-report lists them.\n"
    assert notes(*PURGE, "--json").json[0]["items"] == 0


def test_the_hold_report_lists_holds(notes: Run) -> None:
    (held,) = notes(*PURGE, "--hold-report", "--json").json
    assert (held["entity"], held["key"]["note_id"], held["held"]) == ("Note", "b", "case 7")
    assert "case 7" in notes(*PURGE, "--hold-report").out


def test_receipts_are_json_lines(notes: Run) -> None:
    notes(*PURGE)
    lines = [json.loads(line) for line in notes(*PURGE, "--receipts").out.splitlines()]
    assert [(each["entity"], each["why"]) for each in lines] == [("Note", "deleted")] * 2


def test_a_terminal_gets_a_progress_bar(notes: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "Box" in notes(*PURGE).err


def test_models_without_soft_deletes_are_a_usage_error(run: Run, tmp_path: Path) -> None:
    ran = run("purge", "-d", "sqlite:///survey.db")
    assert ran.code == 2
    assert "nothing to purge" in ran.err
