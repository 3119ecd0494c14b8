"""Exports of events as JSON Lines and Parquet, and the command."""

from __future__ import annotations

import io
import json
import sys
from datetime import date, timedelta

import pytest

from solotable.errors import NotConfigured
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.events.export import ExportFormat, export_events
from solotable.systems.portal.events.recording import EventLog

from .studio import Studio


def play(portal: Studio) -> list[ActivityEvent]:
    made = []
    for number in range(9):
        made.append(
            portal.run(
                EventLog(portal.db).record(
                    "content_view", user_id="vic", content_id=f"c{number}", metadata={"n": number, "é": [0.5]}
                )
            )
        )
        portal.pass_time(hours=8)
    return made


def test_s3_23_events_of_some_days_are_exported_as_json_lines(portal: Studio) -> None:
    made = play(portal)
    first = made[0].timestamp.date()
    target = io.BytesIO()
    assert export_events(portal.blocking, target, first=first, last=first + timedelta(days=1)) == 6
    rows = [json.loads(line) for line in target.getvalue().decode().splitlines()]
    assert [row["event_id"] for row in rows] == [event.event_id for event in made[:6]]
    assert rows[0]["metadata"] == {"n": 0, "é": [0.5]}
    assert rows[0]["timestamp"] == f"{made[0].timestamp:%Y-%m-%dT%H:%M:%S.%fZ}"
    assert "expires_at" not in rows[0]


def test_s3_23_events_of_some_days_are_exported_as_parquet(portal: Studio) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    made = play(portal)
    first = made[0].timestamp.date()
    target = io.BytesIO()
    count = export_events(
        portal.blocking, target, first=first, last=first + timedelta(days=2), file_format="parquet"
    )
    assert count == 9
    table = parquet.read_table(io.BytesIO(target.getvalue()))
    rows = table.to_pylist()
    assert [row["event_id"] for row in rows] == [event.event_id for event in made]
    assert rows[3]["timestamp"] == made[3].timestamp
    assert json.loads(rows[3]["metadata"]) == {"n": 3, "é": [0.5]}
    assert str(table.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_s3_23_days_without_events_are_an_empty_export(portal: Studio, file_format: ExportFormat) -> None:
    target = io.BytesIO()
    day = date(2020, 1, 1)
    assert export_events(portal.blocking, target, first=day, last=day, file_format=file_format) == 0


def test_s3_23_a_range_that_ends_before_it_begins_is_rejected(portal: Studio) -> None:
    day = date(2020, 1, 2)
    with pytest.raises(InvalidInput, match="first day"):
        export_events(portal.blocking, io.BytesIO(), first=day, last=day - timedelta(days=1))


def test_s3_23_parquet_without_pyarrow_says_what_to_install(
    portal: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    day = date(2020, 1, 1)
    with pytest.raises(NotConfigured, match=r"solotable\[parquet\]"):
        export_events(portal.blocking, io.BytesIO(), first=day, last=day, file_format="parquet")
