"""Defects of the written migration script, each of which this migration does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from solotable import Database
from solotable.engines import sqlite
from solotable.flow.requests import BatchWriteItem, PutItem, Scan, TransactWriteItems
from solotable.migrations.migration import Migration
from solotable.migrations.worker import Worker
from solotable.systems.surveys import Surveys
from solotable.systems.surveys.entities.library import Section
from solotable.systems.surveys.entities.surveys import SurveyElement, SurveyMeta
from solotable.systems.surveys.migration import OLD_TABLES, DirtyData
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine
from tests.migrations.workflow.lab import MovableClock, Watched

from .moving import Move

PLAIN = DirtyData(tenants=1, surveys=2, sections=1, elements=1, components=1, library=1, phrases=1, images=1)


@pytest.fixture
def here() -> Iterator[Move]:
    """A migration on an embedded engine."""
    engine = sqlite.open(sqlite.MEMORY)
    yield Move(engine)
    engine.close()


def survey(survey_id: str, *sections: dict[str, Any]) -> dict[str, Any]:
    content = json.dumps({"title": survey_id, "sections": list(sections)})
    return {"id": survey_id, "tenant_id": "tenant-0", "owner": "ann", "content": content}


def test_the_copy_does_not_hold_a_table_in_memory(here: Move) -> None:
    for number in range(500):
        here.put("Phrases", {"id": f"p{number}", "tenant_id": "tenant-0", "phrase": "x" * 4_900})
    here.migration.create(samples=2, segments=1)
    here.migration.start()
    here.engine.requests.clear()
    here.copy()
    # The outputs of a page of 1 MB are written before the next page is read.
    written, unwritten = 0, []
    for request in here.engine.requests:
        if isinstance(request, Scan) and request.table == "Phrases":
            unwritten.append(written)
        if isinstance(request, TransactWriteItems):
            written += sum(isinstance(each, PutItem) for each in request.actions)
    assert unwritten[0] == 0
    assert len(unwritten) >= 3
    assert unwritten[1] >= 200
    assert unwritten[2] >= 2 * unwritten[1]
    assert written == 500


def test_c4_10_no_request_has_more_writes_than_dynamodb_takes(here: Move) -> None:
    elements = [{"id": f"e{at}"} for at in range(27)]
    here.put("Surveys", survey("s1", {"id": "x1", "elements": elements}, {"id": "x2", "elements": []}))
    here.start()
    here.engine.requests.clear()
    here.copy()
    for request in here.engine.requests:
        if isinstance(request, BatchWriteItem):
            assert sum(len(writes) for _, writes in request.tables) <= 25
        if isinstance(request, TransactWriteItems):
            assert len(request.actions) <= 100
    assert len(list(here.new.tenant("tenant-0").all(SurveyElement.of_section("s1", "x1")))) == 27


def test_c4_10_throttled_and_unprocessed_requests_are_sent_again(here: Move) -> None:
    here.fill(PLAIN)
    faults = Faults()
    declared = [
        faults.throttle("TransactWriteItems", times=2, after=1),
        faults.throttle("Scan", times=2),
        faults.transaction_conflict("TransactWriteItems", times=2, after=5),
        faults.partial_batch("BatchGetItem", times=2),
    ]
    clock = MovableClock()
    # Waits move the clock.
    faulty = Watched(FaultyEngine(here.engine, faults), clock)
    migration = Migration(
        "surveys",
        here.mapping,
        sources=Database(faulty, replace(here.old.scope, clock=clock)),
        target=Database(faulty, replace(here.new.scope, clock=clock)),
        control_table="control",
    )
    here.start()
    migration.work(until=lambda record: record.state == "Running", poll_seconds=0.002)
    for number in range(6):
        here.put("Surveys", survey(f"late-{number}", {"id": "x1"}))
    worker = Worker(migration)
    while worker.step() == "worked":
        pass
    worker.release()
    assert [fault.fired for fault in declared] == [2, 2, 2, 2]
    assert here.diff().is_equal


def test_a_second_run_creates_nothing(here: Move) -> None:
    here.moved(PLAIN)
    before = sorted(map(str, here.stored()))
    outputs = [
        (source, list(here.mapping.outputs(source, item).items))
        for source in here.mapping.sources
        for item in here.stored(source)
    ]
    here.migration.start(copy_again=True)
    here.copy()
    assert here.diff().is_equal
    after = here.stored()
    assert len(after) == len(before) == sum(len(keys) for _, keys in outputs)
    keys = {(item["PK"]["S"], item["SK"]["S"]) for item in after}
    assert len(keys) == len(before)


def test_the_tenth_part_sorts_behind_the_second(here: Move) -> None:
    elements = [{"id": f"e{at}", "name": f"Element {at}", "order": at} for at in range(12)]
    here.put("Surveys", survey("s1", {"id": "x1", "elements": list(reversed(elements))}))
    for number in (10, 2, 1):
        here.put("Sections", {"id": f"l{number}", "tenant_id": "tenant-0", "order": str(number)})
    here.start()
    here.copy()
    store = here.new.tenant("tenant-0")
    assert [each.element_id for each in store.all(SurveyElement.of_section("s1", "x1"))] == [
        f"e{at}" for at in range(12)
    ]
    library = [each.section_id for each in store.all(Section.library()) if isinstance(each, Section)]
    assert library == ["l1", "l2", "l10"]


def test_a_survey_has_no_parts_of_one_whose_id_begins_alike(here: Move) -> None:
    here.put("Surveys", survey("1", {"id": "x1"}))
    here.put("Surveys", survey("10", {"id": "x1"}, {"id": "x2"}))
    here.start()
    here.copy()
    tree = here.await_(Surveys(here.db.tenant("tenant-0")).whole("1"))
    assert len(tree.sections) == 1
    gathered = here.mapping.inverses["Surveys"].read
    assert gathered is not None
    found = gathered(here.new, {"id": "1", "tenant_id": "tenant-0"})
    assert len(list(found)) == 2


def test_a_survey_that_is_deleted_during_the_copy_does_not_return(here: Move) -> None:
    here.fill(DirtyData(tenants=1, surveys=4, sections=1, elements=1, components=1, library=1, documents=0))
    here.start()
    worker = Worker(here.migration)
    for number in range(4):
        worker.step()
        here.delete("Surveys", id=f"survey-0-{number}")
    worker.release()
    here.copy()
    here.catch_up()
    assert list(here.new.tenant("tenant-0").all(SurveyMeta.listed())) == []
    assert not [item for item in here.stored() if "SURVEY#" in item["SK"]["S"]]


def test_a_survey_of_more_than_100_parts_is_moved_whole(here: Move) -> None:
    elements = [{"id": f"e{at}", "components": [{"id": f"c{at}"}]} for at in range(80)]
    here.put("Surveys", survey("s1", {"id": "x1", "elements": elements}))
    here.start()
    here.copy()
    assert here.diff().is_equal
    tree = here.await_(Surveys(here.db.tenant("tenant-0")).whole("s1"))
    assert len(list(tree.parts())) == 161


def test_every_table_that_the_plan_names_has_a_rule(here: Move) -> None:
    here.mapping.check({})
    assert list(here.mapping.sources) == [table.name for table in OLD_TABLES]
    assert len(here.mapping.sources) == 8
    assert here.mapping.is_reversible
