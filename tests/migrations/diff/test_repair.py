"""Repairs: what differs is written again from the source item, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable.engines import sqlite
from solotable.flow.requests import DeleteItem, PutItem
from solotable.migrations.diff import DiffOptions, diff, repair
from tests.migrations.workflow.lab import Lab, MovableClock

FAST = DiffOptions(settle_seconds=0)


@pytest.fixture
def lab() -> Iterator[Lab]:
    clock = MovableClock()
    engines = sqlite.open(sqlite.MEMORY, clock=clock), sqlite.open(sqlite.MEMORY, clock=clock)
    made = Lab(*engines, clock=clock)
    made.fill(users=30, surveys=10, profiles=6)
    made.start()
    made.run_to("Running")
    yield made
    for engine in engines:
        engine.close()


def test_a_comparison_without_differences_makes_a_migration_verified(lab: Lab) -> None:
    report = diff(lab.migration, FAST)
    assert (report.is_equal, report.forward) == (True, True)
    assert report.expected == report.actual + 3  # three profiles have two parts
    record = lab.migration.record()
    assert record.state == "Verified"
    assert record.diff is not None
    assert record.diff.is_green


def test_repair_writes_what_differs_again_and_a_second_comparison_is_equal(lab: Lab) -> None:
    stored = [item for item in lab.raw_target() if item["PK"]["S"].startswith(("USER", "SURVEY"))]
    target = lab.new.engine
    changed, missing, extra = stored[0], stored[1], stored[2]
    target.handle(PutItem(table="App", item={**changed, "name": {"S": "wrong"}}))
    target.handle(DeleteItem(table="App", key={name: missing[name] for name in ("PK", "SK")}))
    target.handle(PutItem(table="App", item={**extra, "SK": {"S": "OTHER"}}))
    unmarked = {"PK": {"S": "USER#u1"}, "SK": {"S": "OF NO MIGRATION"}}
    target.handle(PutItem(table="App", item=unmarked))
    found = diff(lab.migration, FAST)
    assert found.differences == {"changed": 1, "missing": 1, "extra": 2}
    assert lab.migration.record().state == "Running"
    repaired = repair(lab.migration, FAST)
    assert repaired.repaired == 4
    lab.check()
    assert diff(lab.migration, FAST).is_equal
    assert lab.migration.record().state == "Verified"


def test_a_repair_of_equal_sides_writes_nothing(lab: Lab, tmp_path: Path) -> None:
    before = lab.raw_target()
    lab.new_engine.sent.clear()
    assert repair(lab.migration, DiffOptions(settle_seconds=0, state=tmp_path / "state")).repaired == 0
    assert lab.raw_target() == before


def test_a_repair_overwrites_no_item_that_another_program_wrote(lab: Lab) -> None:
    stored = next(item for item in lab.raw_target() if item["PK"] == {"S": "USER#u1"})
    foreign = {name: value for name, value in stored.items() if not name.startswith("_migration")}
    lab.new.engine.handle(PutItem(table="App", item={**foreign, "name": {"S": "of another program"}}))
    assert diff(lab.migration, FAST).differences == {"changed": 1}
    assert repair(lab.migration, FAST).repaired == 0
    (letter,) = lab.migration.dead_letters()
    assert "that no migration wrote" in letter.cause
