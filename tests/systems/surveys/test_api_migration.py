"""The migration over HTTP: work, verify, choose the table by steps, roll back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from solotable.engines import sqlite
from solotable.systems.surveys.app import create_app
from solotable.systems.surveys.entities.surveys import SurveyMeta
from solotable.systems.surveys.migration import DirtyData

from .api import Api, auth
from .moving import Move
from .test_migration import survey_item

TINY = DirtyData(tenants=1, surveys=2, sections=1, elements=1, components=1, library=1, phrases=1, images=1)


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Move, Api]]:
    """An app whose data is in the old tables."""
    engine = sqlite.open(sqlite.MEMORY)
    move = Move(engine)
    move.fill(TINY)
    app = create_app(move.db, auth=auth(), storage=tmp_path, migration=move.migration)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield move, Api(app, client, "")
    engine.close()


def test_s4_30_an_administrator_moves_verifies_switches_by_steps_and_rolls_back(
    made: tuple[Move, Api],
) -> None:
    move, api = made

    def ask(method: str, path: str, **body: object) -> dict[str, object]:
        answer = api.ask(method, path, "GLOBAL_ADMIN", "acme", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found

    state = ask("POST", "/admin/migrate", seconds=20)
    assert (state["state"], state["writes"], state["copied_percent"]) == ("Running", "source", 100.0)
    verified = ask("POST", "/admin/verify")
    assert verified["equal"]
    assert verified["expected"] == verified["actual"]
    for percent in (10, 50, 100):
        assert ask("PUT", "/admin/flags/table", percent=percent)["reads_percent"] == percent
    assert ask("PUT", "/admin/flags/table", percent=100, writes=True)["writes"] == "target"
    move.new.tenant("tenant-0").update(
        SurveyMeta, survey_id="survey-0-1", version=1, set={"title": "Written after the switch"}
    )
    back = ask("POST", "/admin/rollback")
    assert (back["writes"], back["reads_percent"]) == ("source", 0.0)
    assert move.content_of("survey-0-1")["title"] == "Written after the switch"


def test_s4_30_no_step_is_possible_before_an_equal_comparison(made: tuple[Move, Api]) -> None:
    move, api = made
    api.ask("POST", "/admin/migrate", "GLOBAL_ADMIN", "acme", json={"seconds": 20})
    answer = api.ask("PUT", "/admin/flags/table", "GLOBAL_ADMIN", "acme", json={"percent": 10})
    assert answer.status_code == 409
    assert answer.json()["type"].endswith(":migration")
    assert "needs Verified" in answer.json()["detail"]
    unknown = api.ask("PUT", "/admin/flags/table", "GLOBAL_ADMIN", "acme", json={"percent": 7})
    assert unknown.status_code == 422
    move.put("Surveys", survey_item("broken", sections=[{"id": "s", "notes": "x" * 5001}]))
    state = api.ask("POST", "/admin/migrate", "GLOBAL_ADMIN", "acme", json={}).json()
    assert state["dead_letters"] == 1
    verified = api.ask("POST", "/admin/verify", "GLOBAL_ADMIN", "acme").json()
    assert (verified["equal"], verified["dead_letters"]) == (False, 1)
    answer = api.ask(
        "PUT", "/admin/flags/table", "GLOBAL_ADMIN", "acme", json={"percent": 100, "writes": True}
    )
    assert answer.status_code == 409


def test_an_app_without_a_migration_has_none(tmp_path: Path) -> None:
    app = create_app("sqlite://", auth=auth(), storage=tmp_path)
    with TestClient(app) as client:
        api = Api(app, client, "")
        for method, path, body in (
            ("POST", "/admin/migrate", {}),
            ("POST", "/admin/verify", None),
            ("POST", "/admin/rollback", None),
            ("PUT", "/admin/flags/table", {"percent": 10}),
        ):
            answer = api.ask(method, path, "GLOBAL_ADMIN", "acme", json=body)
            assert answer.status_code == 404
