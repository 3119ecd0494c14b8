"""Modes, soft limits, several resources, dry run, reset, top-up and parents over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .api import MODEL, Api, running

#: Limits that do not fill up while a test runs.
RPM = {"name": "rpm", "refill": 10, "period_seconds": 86_400}
TPM = {"name": "tpm", "refill": 1000, "period_seconds": 86_400}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A limiter that all tests of this module share; each has an entity of its name."""
    with running(tmp_path_factory.mktemp("modes")) as made:
        yield made


@pytest.fixture
def entity(request: pytest.FixtureRequest, api: Api) -> str:
    """An entity with limits."""
    name: str = request.node.name.replace("_", "-")
    put(api, f"/api/limits/{name}", {"limits": [RPM, TPM]})
    return name


def put(api: Api, path: str, body: Any, **params: str) -> Any:
    answer = api.ask("PUT", path, "OPERATOR", json=body, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def acquire(api: Api, entity: str, consume: dict[str, float], **more: Any) -> Any:
    body = {"entity": entity, "resource": MODEL, "consume": consume, **more}
    return api.ask("POST", "/acquire", "APP", json=body)


def test_a_denied_entity_is_a_403_that_says_since_when(api: Api, entity: str) -> None:
    level = put(api, f"/api/entities/{entity}/mode", {"mode": "deny"})
    assert level["mode"] == "deny"
    answer = acquire(api, entity, {"rpm": 1})
    assert (answer.status_code, answer.headers["content-type"]) == (403, "application/problem+json")
    assert "retry-after" not in answer.headers
    problem = answer.json()
    assert problem["type"] == "urn:problem:solotable:entity-denied"
    assert (problem["entity"], problem["resource"], problem["limit"]) == (entity, MODEL, None)
    assert problem["since"].endswith("Z")
    put(api, f"/api/entities/{entity}/mode", {"mode": None})
    assert acquire(api, entity, {"rpm": 1}).status_code == 201
    put(api, f"/api/entities/{entity}/mode", {"mode": "deny"}, resource="other")
    assert acquire(api, entity, {"rpm": 1}).status_code == 201
    put(api, f"/api/limits/{entity}", {"limits": [{**RPM, "refill": 0}, TPM]})
    assert acquire(api, entity, {"rpm": 1}).json()["limit"] == "rpm"


def test_a_bypassed_entity_has_no_lease(api: Api, entity: str) -> None:
    put(api, f"/api/entities/{entity}/mode", {"mode": "bypass"})
    answer = acquire(api, entity, {"rpm": 10**6})
    assert (answer.status_code, answer.json()["limited"], answer.json()["lease"]) == (201, False, None)
    effective = api.ask("GET", f"/api/limits/{entity}", "OPERATOR", params={"resource": MODEL}).json()
    assert effective["effective"]["mode"] == "bypass"


def test_shadow_and_soft_limits_are_in_the_response(api: Api, entity: str) -> None:
    put(api, f"/api/limits/{entity}", {"limits": [RPM, {**TPM, "soft": True}], "mode": "shadow"})
    assert acquire(api, entity, {"rpm": 10, "tpm": 1000}).json()["shadow_refusal"] is None
    answer = acquire(api, entity, {"rpm": 1, "tpm": 5})
    assert answer.status_code == 201
    assert "asks for 1 rpm" in answer.json()["shadow_refusal"]
    (exceeded,) = answer.json()["exceeded"]
    assert (exceeded["limit"], exceeded["enforced"], exceeded["exceeded"]) == ("tpm", False, True)
    # What was not taken is not given back.
    lease = answer.headers["location"]
    assert api.ask("DELETE", lease, "APP").status_code == 204
    assert api.left(entity) == {"rpm": 0, "tpm": 0}


def test_several_resources_have_one_lease(api: Api, entity: str) -> None:
    also = {"search": {"rpm": 2, "tpm": 300}}
    made = acquire(api, entity, {"rpm": 1}, also=also)
    assert (made.json()["lease"]["consumed"], made.json()["lease"]["also"]) == ({"rpm": 1}, also)
    path = made.headers["location"]
    changed = api.ask("PATCH", path, "APP", json={"consumed": {}, "also": {"search": {"tpm": 100}}})
    assert changed.json()["also"] == {"search": {"rpm": 2, "tpm": 100}}
    where = f"/api/dashboard/availability/{entity}"
    left = api.ask("GET", where, "APP", params={"resource": "search"}).json()["available"]
    assert left == {"rpm": 8, "tpm": 900}
    unknown = api.ask("PATCH", path, "APP", json={"also": {"other": {"tpm": 1}}})
    assert (unknown.status_code, unknown.json()["detail"]) == (422, "The lease takes nothing from 'other'.")
    assert api.ask("PATCH", path, "APP", json={}).status_code == 422
    assert api.ask("DELETE", path, "APP").status_code == 204
    left = api.ask("GET", where, "APP", params={"resource": "search"}).json()["available"]
    assert left == {"rpm": 10, "tpm": 1000}
    assert acquire(api, entity, {"rpm": 1}, also={"search": {"rpm": 11}}).status_code == 422
    assert acquire(api, entity, {"rpm": 1}, also={MODEL: {"rpm": 1}}).status_code == 422
    assert api.left(entity)["rpm"] == 10


def test_a_key_with_other_resources_is_another_request(api: Api, entity: str) -> None:
    def send(**more: Any) -> Any:
        body = {"entity": entity, "resource": MODEL, "consume": {"rpm": 1}, **more}
        return api.ask("POST", "/acquire", "APP", json=body, headers={"idempotency-key": "k-also"})

    first = send(also={"search": {"rpm": 1}})
    assert send(also={"search": {"rpm": 1}}).json()["lease"] == first.json()["lease"]
    assert send(also={"search": {"rpm": 2}}).status_code == 422
    assert send().status_code == 422


def test_a_check_takes_nothing(api: Api, entity: str) -> None:
    body = {"entity": entity, "resource": MODEL, "consume": {"rpm": 1}}
    assert api.ask("POST", "/check", "APP", json=body).json()["admitted"] is True
    assert acquire(api, entity, {"rpm": 10}).status_code == 201
    refused = api.ask("POST", "/check", "APP", json=body)
    assert (refused.status_code, refused.json()["admitted"]) == (200, False)
    assert 0 < refused.json()["retry_after_seconds"] <= 8640
    assert "try again" in refused.json()["refusal"]
    never = api.ask("POST", "/check", "APP", json={**body, "consume": {"rpm": 11}}).json()
    assert (never["admitted"], never["retry_after_seconds"]) == (False, 0)
    assert api.left(entity) == {"rpm": 0, "tpm": 1000}


def test_operators_reset_and_top_up(api: Api, entity: str) -> None:
    assert acquire(api, entity, {"rpm": 10, "tpm": 1000}).status_code == 201
    path = f"/api/entities/{entity}"
    body, key = {"resource": MODEL, "tokens": {"rpm": 3}}, {"idempotency-key": "t-1"}
    for _ in range(2):
        topped = api.ask("POST", f"{path}/top-up", "OPERATOR", json=body, headers=key)
        assert (topped.status_code, topped.json()["available"]["rpm"]) == (200, 3)
    other = {**body, "tokens": {"rpm": 4}}
    assert api.ask("POST", f"{path}/top-up", "OPERATOR", json=other, headers=key).status_code == 422
    reset = api.ask("POST", f"{path}/reset", "OPERATOR", json={"resource": MODEL, "limits": ["tpm"]})
    assert reset.status_code == 204
    assert api.left(entity) == {"rpm": 3, "tpm": 1000}
    assert api.ask("POST", f"{path}/reset", "OPERATOR", json={}).status_code == 204
    assert api.left(entity) == {"rpm": 10, "tpm": 1000}


def test_an_entity_gets_another_parent(api: Api, entity: str) -> None:
    for name in (entity, f"{entity}-org"):
        made = api.ask("POST", "/api/entities", "OPERATOR", json={"entity_id": name})
        assert made.status_code == 201
    body = {"parent": f"{entity}-org", "cascade": True}
    changed = put(api, f"/api/entities/{entity}/parent", body)
    assert (changed["parent_id"], changed["cascade"]) == (f"{entity}-org", True)
    own = api.ask("PUT", f"/api/entities/{entity}/parent", "OPERATOR", json={"parent": entity})
    assert own.status_code == 422
    missing = api.ask("PUT", f"/api/entities/{entity}/parent", "OPERATOR", json={"parent": "nowhere"})
    assert missing.status_code == 404
    assert put(api, f"/api/entities/{entity}/parent", {"parent": None})["parent_id"] is None


def test_l9_a_429_has_the_wait_of_the_parent(api: Api, entity: str) -> None:
    """L6 and L9 over HTTP: a limit of the parent alone, and its wait."""
    org = f"{entity}-org"
    api.ask("POST", "/api/entities", "OPERATOR", json={"entity_id": org})
    api.ask("POST", "/api/entities", "OPERATOR", json={"entity_id": entity, "parent": org, "cascade": True})
    slow = {"name": "calls", "capacity": 10, "refill": 1, "period_seconds": 86_400}
    put(api, f"/api/limits/{org}", {"limits": [slow]})
    made = acquire(api, entity, {"rpm": 10, "calls": 10})
    assert made.status_code == 201
    refused = acquire(api, entity, {"rpm": 1, "calls": 1})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 80_000
    exceeded = {(each["entity"], each["limit"]) for each in refused.json()["limits"] if each["exceeded"]}
    assert exceeded == {(entity, "rpm"), (org, "calls")}
    changed = api.ask("PATCH", made.headers["location"], "APP", json={"consumed": {"calls": 4}})
    assert changed.status_code == 200
    assert api.left(entity)["calls"] == 6
