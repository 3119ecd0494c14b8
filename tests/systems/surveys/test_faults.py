"""Retries, batch reads, reserved words, and what the app measures: the surveys on an engine that fails."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from solotable import AsyncDatabase
from solotable._connect import to_async
from solotable._flows.retry import Retries
from solotable._protocol.requests import BatchGetItem, PutItem
from solotable.errors import (
    ConditionFailed,
    NotFound,
    Throttled,
    UnknownEntity,
    VersionConflict,
)
from solotable.observe import EmfObserver, Observation
from solotable.systems.surveys import (
    Access,
    BatchChange,
    ElementPatch,
    SectionPatch,
    Sections,
    SurveyMeta,
    SurveyPatch,
    Surveys,
    batch_update,
    surveyor,
)
from solotable.systems.surveys.app import create_app
from solotable.testing import Faults, FaultyEngine, RecordingEngine

from .api import auth, key
from .office import SYNCED_WRITE, Office


@contextmanager
def failing(office: Office, faults: Faults) -> Iterator[tuple[AsyncDatabase, RecordingEngine, list[float]]]:
    """Open the tables of the office on an engine with faults; the waits between attempts are listed."""
    waits: list[float] = []
    recording = RecordingEngine(FaultyEngine(office.engine, faults), sleep=waits.append)
    # Without jitter, a wait is its ceiling.
    scope = replace(office.blocking.scope, retries=Retries(random=lambda: 1.0))
    yield AsyncDatabase(to_async(recording), scope), recording, waits


def test_s4_37_a_throttled_request_is_repeated_with_growing_waits(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    faults = Faults()
    faults.throttle("TransactWriteItems", times=3)
    with failing(office, faults) as (db, recording, waits):
        sections = Sections(db.tenant("acme"), survey.survey_id)
        stored = office.run(sections.update(section.section_id, SectionPatch(notes="x")))
    assert (stored.notes, stored.version) == ("x", 2), "once, although it was sent four times"
    assert [each.operation for each in recording.journal.records] == [
        "GetItem",
        "GetItem",
        *["TransactWriteItems"] * 4,
    ]
    assert waits == [0.05, 0.1, 0.2], "each is at most double the one before; jitter shortens them"


def test_s4_37_a_request_that_stays_throttled_ends_with_an_error(office: Office) -> None:
    survey = office.survey()
    faults = Faults()
    faults.throttle("Query", times=100)
    with failing(office, faults) as (db, recording, waits), pytest.raises(Throttled):
        office.run(Surveys(db.tenant("acme")).whole(survey.survey_id))
    assert len(recording.journal.records) == len(waits) + 1 == 8
    assert max(waits) <= 2.0


def test_s4_37_what_is_invalid_or_missing_is_sent_once(office: Office) -> None:
    survey = office.survey()
    with failing(office, Faults()) as (db, recording, waits):
        store = db.tenant("acme")
        with pytest.raises(NotFound):
            office.run(Surveys(store).get("none"))
        with pytest.raises(NotFound):
            office.run(Surveys(store).update("none", SurveyPatch(title="x")))
        with pytest.raises(VersionConflict):
            office.run(Surveys(store).update(survey.survey_id, SurveyPatch(title="x"), version=7))
    assert [each.operation for each in recording.journal.records] == ["GetItem", "GetItem", *SYNCED_WRITE]
    assert waits == []


def test_c4_13_a_change_whose_outcome_is_unknown_is_not_made_twice(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    faults = Faults()
    faults.timeout("TransactWriteItems", applied=True)
    with failing(office, faults) as (db, recording, _):
        sections = Sections(db.tenant("acme"), survey.survey_id)
        office.run(sections.update(section.section_id, SectionPatch(notes="x")))
    # A transaction has a token: sent again, it is not made again.
    sent = [each.operation for each in recording.journal.records]
    assert sent == ["GetItem", "GetItem", "TransactWriteItems", "TransactWriteItems"]
    stored = office.run(office.sections(survey).get(section.section_id, consistent=True))
    assert (stored.notes, stored.version) == ("x", 2)


def test_c4_13_what_is_missing_is_not_a_version_conflict(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    office.run(office.sections(survey).delete(section.section_id))
    change = BatchChange(kind="section", id=section.section_id, version=1, set={"notes": "x"})
    for work in (
        lambda: office.sections(survey).update(section.section_id, SectionPatch(notes="x"), version=1),
        lambda: office.elements(survey).update("none", ElementPatch(notes="x"), version=1),
        lambda: office.surveys().update("none", SurveyPatch(title="x"), version=1),
        lambda: batch_update(office.store(), survey.survey_id, [change]),
    ):
        with pytest.raises(NotFound) as missing:
            office.run(work())
        assert not isinstance(missing.value, ConditionFailed)


def test_s4_40_many_items_are_read_in_chunks_of_100_and_what_is_left_again(office: Office) -> None:
    count = 230
    store = office.beside()
    with store.batch(overwrite=True) as batch:
        for number in range(count):
            store.create(SurveyMeta(survey_id=f"s{number:03d}", owner="ann", title=f"Survey {number}"))
            batch.put(Access(user_id="ann", survey_id=f"s{number:03d}", role="owner"))
    faults = Faults()
    faults.partial_batch("BatchGetItem", times=2)
    with failing(office, faults) as (db, recording, waits):
        page = office.run(Surveys(db.tenant("acme")).list_of("ann", limit=count))
    assert [each.survey_id for each in page] == [f"s{number:03d}" for number in range(count)]
    sizes = [
        sum(len(keys.keys) for keys in request.tables)
        for request in recording.journal.requests("BatchGetItem")
        if isinstance(request, BatchGetItem)
    ]
    assert max(sizes) == 100
    assert sum(sizes) > count, "the unprocessed keys were asked for again"
    assert waits, "after a wait"


def test_s4_40_an_item_of_an_unknown_entity_is_an_error(office: Office) -> None:
    survey = office.survey(survey_id="s")
    strange = {"PK": "TENANT#acme", "SK": "SURVEY#s#ELEMENT#e", "_type": "Mystery", "survey_id": "s"}
    item = {name: {"S": value} for name, value in strange.items()}
    office.engine.handle(PutItem(table=office.prefix + surveyor.name, item=item))
    with pytest.raises(UnknownEntity, match="Mystery"):
        office.run(office.surveys().whole(survey.survey_id))


def test_c4_5_every_name_of_an_update_is_an_alias_and_an_empty_update_writes_nothing(office: Office) -> None:
    survey = office.survey()
    section = office.section(survey)
    element = office.element(section)
    # Reserved words of DynamoDB: name, order, condition, status, section, element. The engines reject them.
    office.run(
        office.sections(survey).update(section.section_id, SectionPatch(name="Roofs", condition="Fair"))
    )
    office.run(
        office.elements(survey).update(element.element_id, ElementPatch(name="Tiles", condition="Poor"))
    )
    office.run(office.surveys().update(survey.survey_id, SurveyPatch(status="in_progress")))
    office.run(office.sections(survey).move(section.section_id))
    office.sent()
    for work in (
        office.sections(survey).update(section.section_id, SectionPatch()),
        office.elements(survey).update(element.element_id, ElementPatch()),
        office.surveys().update(survey.survey_id, SurveyPatch()),
    ):
        office.run(work)
    assert office.sent() == ["GetItem"] * 3
    # Attributes are flat: there is no map that could be missing.
    maps = {name for item in office.raw() for name, value in item.items() if "M" in value}
    assert maps <= {"measurements"}


def test_s4_43_the_app_counts_each_request_with_its_duration_and_outcome(tmp_path: Path) -> None:
    lines, seen = io.StringIO(), list[Observation]()
    emf = EmfObserver(lines, namespace="SurveyorApp/DynamoDB")

    def observe(observation: Observation) -> None:
        seen.append(observation)
        emf(observation)

    app = create_app(f"sqlite:///{tmp_path / 'a.db'}", auth=auth(), storage=tmp_path, observer=observe)
    owner = {"x-api-key": key("OWNER", "acme")}
    admin = {"x-api-key": key("GLOBAL_ADMIN", "acme"), "x-tenant-id": "acme"}
    with TestClient(app) as client:
        client.post("/tenants", json={"id": "acme", "name": "Acme"}, headers=admin)
        survey = client.post("/surveys", json={"title": "x"}, headers=owner).json()["survey_id"]
        stale = {**owner, "if-match": '"7"'}
        assert client.patch(f"/surveys/{survey}", json={"title": "y"}, headers=stale).status_code == 412
        assert client.get(f"/surveys/{survey}", headers=owner).status_code == 200
        answer = client.get("/metrics", headers=admin)
    records = [json.loads(line) for line in lines.getvalue().splitlines()]
    assert {each["_aws"]["CloudWatchMetrics"][0]["Namespace"] for each in records} == {"SurveyorApp/DynamoDB"}
    by_operation: dict[str, list[Any]] = {}
    for each in records:
        by_operation.setdefault(each["Operation"], []).append(each)
    assert [each["Success"] for each in by_operation["TransactWriteItems"]] == [1, 0]
    assert [each["Failure"] for each in by_operation["TransactWriteItems"]] == [0, 1]
    assert all(each["Duration"] > 0 for each in records)
    # The first write of a space looks for a log without a head; it has no pattern.
    assert [each.pattern for each in seen if each.operation == "Query"] == [None, "SurveyMeta.whole"]
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'operation="TransactWriteItems"' in answer.text
    assert 'error="TransactionCancelled"' in answer.text
    # An observation has no values: neither a tenant nor an id is in the metrics.
    assert "acme" not in answer.text + lines.getvalue()
    assert survey not in answer.text + lines.getvalue()


def test_s4_43_an_observer_that_fails_changes_no_answer(tmp_path: Path) -> None:
    def broken(_: Observation) -> None:
        raise RuntimeError("no metrics today")

    app = create_app(f"sqlite:///{tmp_path / 'a.db'}", auth=auth(), storage=tmp_path, observer=broken)
    admin = {"x-api-key": key("GLOBAL_ADMIN", "acme"), "x-tenant-id": "acme"}
    with TestClient(app) as client:
        created = client.post("/tenants", json={"id": "acme", "name": "Acme"}, headers=admin)
        assert created.status_code == 201
        assert client.get("/tenants/acme", headers=admin).json()["name"] == "Acme"
        assert "solotable_" in client.get("/metrics", headers=admin).text
