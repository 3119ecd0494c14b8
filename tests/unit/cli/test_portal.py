"""`solotable portal`: exports of events."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable import connect
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.tables import events

from .conftest import Run

DAY = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
TODAY, YESTERDAY = f"{DAY:%Y-%m-%d}", f"{DAY - timedelta(days=1):%Y-%m-%d}"


@pytest.fixture
def portal(run: Run) -> Run:
    """Run `solotable portal` over a file with three events, one of them yesterday's."""
    with connect("sqlite:///survey.db", events) as database:
        for hours in (-24, 0, 1):
            at = DAY + timedelta(hours=hours)
            database.create(ActivityEvent(event_name="content_view", user_id="vic", timestamp=at))
    return lambda *arguments: run("portal", *arguments)


def test_events_of_a_day_are_written_as_json_lines(portal: Run, tmp_path: Path) -> None:
    ran = portal("export", "--from", TODAY, "-o", "events.jsonl")
    assert (ran.code, ran.out, ran.err) == (0, "Wrote 2 events to events.jsonl.\n", "")
    rows = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [row["user_id"] for row in rows] == ["vic", "vic"]
    assert rows[0]["timestamp"] < rows[1]["timestamp"]


def test_events_of_some_days_are_written_as_parquet(portal: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    ran = portal("export", "--from", YESTERDAY, "--to", TODAY, "-o", "events.parquet", "--json")
    assert ran.json == {"file": "events.parquet", "format": "parquet", "events": 3}
    assert parquet.read_table(tmp_path / "events.parquet").num_rows == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--from", "yesterday", "-o", "e.jsonl"), "does not match the format"),
        (("--from", TODAY, "-o", "e.csv"), "ends with .jsonl or .parquet"),
        (("--from", TODAY, "--to", YESTERDAY, "-o", "e.jsonl"), "not after the last"),
        (("--from", TODAY, "-o", "e.jsonl", "-d", "other.db"), "No such file"),
    ],
)
def test_a_wrong_export_is_explained_and_writes_nothing(
    portal: Run, tmp_path: Path, arguments: tuple[str, ...], text: str
) -> None:
    ran = portal("export", *arguments)
    assert ran.code != 0
    assert text in ran.err
    assert not list(tmp_path.glob("e.*"))


def test_an_existing_file_is_replaced_only_on_demand(portal: Run, tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("mine")
    assert portal("export", "--from", TODAY, "-o", "events.jsonl").code != 0
    assert (tmp_path / "events.jsonl").read_text() == "mine"
    assert portal("export", "--from", TODAY, "-o", "events.jsonl", "--force").code == 0


def test_parquet_without_pyarrow_says_what_to_install(
    portal: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = portal("export", "--from", TODAY, "-o", "events.parquet")
    assert ran.code != 0
    assert "solotable[parquet]" in ran.err
    assert not (tmp_path / "events.parquet").exists()
