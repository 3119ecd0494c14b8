"""The sync over HTTP: the state of the caller, and the protocol with the roles and tenants of the surveys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.systems.surveys.api import Api, mark, running

GROUP = {"clientGroupID": "a-group", "profileID": "p", "schemaVersion": "1"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("sync")) as made:
        yield made


def pull(api: Api, role: str, tenant: str = "acme", **changes: Any) -> Any:
    body = {**GROUP, "clientGroupID": f"{role}-{tenant}", "pullVersion": 1, "cookie": None, **changes}
    answer = api.ask("POST", "/replicache/pull", role, tenant, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def keys(reply: Any) -> set[str]:
    return {each["key"] for each in reply["patch"] if each["op"] == "put"}


def test_s4_16_s4_36_the_sync_state_is_one_request(api: Api) -> None:
    state = api.ask("GET", "/sync", "EDITOR", "acme").json()
    survey = api.ids["acme"]["survey_id"]
    assert (state["tenant_id"], state["user_id"]) == ("acme", "editor")
    assert (state["pending"], state["failed"]) == (0, 0)
    (found,) = [each for each in state["surveys"] if each["survey_id"] == survey]
    assert found["role"] == "editor"
    assert found["version"] > 3
    before = found["version"]
    path = f"/surveys/{survey}/sections/{api.ids['acme']['section_id']}"
    assert api.ask("PATCH", path, "EDITOR", "acme", json={"notes": "seen"}).is_success
    after = api.ask("GET", "/sync", "EDITOR", "acme").json()
    assert {each["version"] for each in after["surveys"] if each["survey_id"] == survey} == {before + 1}
    assert api.ask("GET", "/sync", None, "acme").status_code == 401


def test_a_user_pulls_the_surveys_that_it_has_a_role_in(api: Api) -> None:
    survey = api.ids["acme"]["survey_id"]
    for role in ("OWNER", "EDITOR", "VIEWER"):
        assert f"survey/{survey}" in keys(pull(api, role))
    assert {each.partition("/")[0] for each in keys(pull(api, "STRANGER"))} == {"phrase"}


def test_nothing_of_another_tenant_is_pulled(api: Api) -> None:
    mine, theirs = pull(api, "OWNER"), pull(api, "OWNER", "zeta")
    assert mark("zeta") not in str(mine)
    assert mark("acme") not in str(theirs)
    stolen = pull(api, "OWNER", "zeta", cookie=mine["cookie"])
    assert mark("acme") not in str(stolen)


def test_a_push_is_seen_over_http(api: Api) -> None:
    known = api.ids["acme"]
    args = {"survey_id": known["survey_id"], "section_id": known["section_id"], "notes": "by push"}
    mutation = {"id": 1, "clientID": "c", "name": "updateSection", "args": args, "timestamp": 0.5}
    body = {**GROUP, "clientGroupID": "EDITOR-acme", "pushVersion": 1, "mutations": [mutation]}
    assert api.ask("POST", "/replicache/push", "EDITOR", "acme", json=body).json() == {}
    path = f"/surveys/{known['survey_id']}/sections/{known['section_id']}"
    assert api.ask("GET", path, "OWNER", "acme").json()["notes"] == "by push"
    # The group is the editor's: another user gets nothing of it.
    foreign = api.ask("POST", "/replicache/push", "OWNER", "acme", json=body)
    assert foreign.status_code == 200
    assert foreign.json() == {"error": "ClientStateNotFound"}


@pytest.mark.parametrize("path", ["push", "pull", "ticket"])
def test_the_protocol_needs_a_credential(api: Api, path: str) -> None:
    assert api.ask("POST", f"/replicache/{path}", None, "acme", json={}).status_code == 401


def test_a_tenant_that_does_not_exist_is_not_synced(api: Api) -> None:
    """As on every other route: a typing error of an administrator must not create a tenant."""
    args = {"survey_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "title": "x", "address": "y"}
    mutation = {"id": 1, "clientID": "c", "name": "createSurvey", "args": args, "timestamp": 0.5}
    body = {**GROUP, "pushVersion": 1, "pullVersion": 1, "cookie": None, "mutations": [mutation]}
    for path in ("push", "pull", "ticket"):
        answer = api.ask("POST", f"/replicache/{path}", "GLOBAL_ADMIN", "typo", json=body)
        assert answer.status_code == 404, (path, answer.text)


def test_the_sync_needs_a_role_of_the_surveys(api: Api) -> None:
    body = {**GROUP, "clientGroupID": "of-a-guest", "pullVersion": 1, "cookie": None}
    for path in ("push", "pull", "ticket"):
        answer = api.ask("POST", f"/replicache/{path}", "GUEST", "acme", json=body)
        assert answer.status_code == 403, (path, answer.text)
