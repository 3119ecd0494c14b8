"""Backups: the window of a table, and the past of an item with its restore."""

from __future__ import annotations

import pytest

from solotable._protocol.wire import call
from solotable.backup import BackupFile
from solotable.engines.sqlite import SqliteEngine

from .models import Survey
from .site import Site, SiteMaker
from .test_editing import put, stored

PAST = "/t/SurveyorData/-/backups"
SURVEY = f"{PAST}/TENANT%23acme/SURVEY%23s-1042"
RAW = f"{PAST}/RAW/%3Cb%3E"


@pytest.fixture
def site(make_site: SiteMaker) -> Site:
    made = make_site(write=True)
    assert isinstance(made.engine, SqliteEngine)
    file = BackupFile(made.engine)
    file.enable("SurveyorData", days=7)
    file.create("SurveyorData", "before-import")
    return made


def test_the_window_and_the_backups_of_a_table_are_shown(site: Site, make_site: SiteMaker) -> None:
    found = site.json(f"{PAST}.json")
    assert (found["window"]["enabled"], found["window"]["days"]) == (True, 7)
    assert found["window"]["earliest"] <= found["window"]["latest"]
    assert [each["status"] for each in found["backups"]] == ["AVAILABLE"]
    assert (
        "This item in the window"
        in site.get("/t/SurveyorData/Survey/TENANT%23acme/SURVEY%23s-1042/history").text
    )
    assert f'href="{SURVEY}"' in site.get("/t/SurveyorData/Survey/TENANT%23acme/SURVEY%23s-1042").text
    call(
        site.engine,
        "UpdateContinuousBackups",
        {
            "TableName": "SurveyorData",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": False},
        },
    )
    assert "Continuous backups are off" in site.get(SURVEY).text
    assert "solotable backup enable" in site.get(PAST).text


def test_an_entity_is_restored_through_its_model_as_a_new_version(site: Site) -> None:
    db = site.console.store("acme")
    first = db.get(Survey, survey_id="s-1042")
    assert first is not None
    db.put(first.model_copy(update={"title": "<script>alert(1)</script>", "status": "completed"}))
    found = site.json(f"{SURVEY}.json")
    assert [each["change"] for each in found["versions"]] == ["changed", "as the window began"]
    assert "<script>alert" not in site.get(SURVEY).text
    assert found["restorable"] == found["versions"][1]["sequence"]
    assert f"Restore #{found['restorable']} as version 3" in site.get(SURVEY).text
    form = {"sequence": str(found["restorable"]), "over": str(found["over"])}
    answer = site.post(SURVEY, **form)
    assert "Restored as version 3." in answer.text
    now = db.get(Survey, survey_id="s-1042")
    assert now is not None
    assert (now.title, now.status, now.version) == (first.title, first.status, 3)
    # The key of the index follows.
    item = stored(site, "TENANT#acme", "SURVEY#s-1042")
    assert item is not None
    assert item["GSI2PK"] == {"S": "TENANT#acme#STATUS#draft"}
    # The user has not seen the restored version.
    assert site.post(SURVEY, **form).status_code == 409


def test_a_deleted_item_comes_back_as_it_was(site: Site) -> None:
    item = {
        "PK": {"S": "RAW"},
        "SK": {"S": "<b>"},
        "n": {"N": "1E-130"},
        "b": {"B": "/w=="},
        "s": {"NS": ["1"]},
    }
    put(site, item)
    canonical = stored(site, "RAW", "<b>")
    call(
        site.engine, "DeleteItem", {"TableName": "SurveyorData", "Key": {"PK": item["PK"], "SK": item["SK"]}}
    )
    gone = site.client.get("/t/SurveyorData/-/item/RAW/%3Cb%3E")
    assert (gone.status_code, f"have its past: {RAW}" in gone.text) == (404, True)
    found = site.json(f"{RAW}.json")
    assert (found["deleted"], [each["change"] for each in found["versions"]]) == (
        True,
        ["deleted", "created"],
    )
    answer = site.post(RAW, sequence=str(found["restorable"]), over=str(found["over"]))
    assert "Restored as it was." in answer.text
    assert stored(site, "RAW", "<b>") == canonical
    opened = site.json(f"{PAST}.json?pk=RAW&sk=%3Cb%3E")
    assert [each["change"] for each in opened["versions"]] == ["created", "deleted", "created"]


def test_a_restore_needs_the_flag_and_a_version_of_the_window(site: Site, make_site: SiteMaker) -> None:
    assert site.post(SURVEY, sequence="999999", over="1").status_code == 400
    assert "No item with this key" in site.get(f"{PAST}/nothing/here").text
    reader = make_site()
    assert "disabled" in reader.get(SURVEY).text or "One version" in reader.get(SURVEY).text
    assert reader.post(SURVEY, sequence="1", over="1").status_code == 403
