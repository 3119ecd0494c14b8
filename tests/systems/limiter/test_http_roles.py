"""Who may ask for what, over the app's own route table: every route with every role and with none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from solotable.systems.limiter.http.app import create_app
from solotable.web import ApiKey, Auth
from tests.systems.http import Operation, check_with_the_role, check_without_the_role, routes_of

from .api import MODEL, OPERATIONS, ROLES, Api, made_app, running

G = {"GLOBAL_OPERATOR"}
O = G | {"OPERATOR"}  # noqa: E741 - as in the requirements
A = O | {"APP"}
#: The endpoints of system 1 as they are written in the requirements, and those of operators since.
WRITTEN = {
    "POST /v1/chat/completions": A,
    "POST /acquire": A,
    "POST /check": A,
    "PATCH /leases/{lease_id}": A,
    "POST /leases/{lease_id}/extend": A,
    "DELETE /leases/{lease_id}": A,
    "GET /api/dashboard/availability/{entity}": A,
    "GET /api/dashboard/wait-time/{entity}": A,
    "POST /api/entities": O,
    "GET /api/entities/{entity}": O,
    "DELETE /api/entities/{entity}": O,
    "GET /api/entities/{entity}/children": O,
    "PUT /api/entities/{entity}/parent": O,
    "PUT /api/entities/{entity}/mode": O,
    "POST /api/entities/{entity}/reset": O,
    "POST /api/entities/{entity}/top-up": O,
    "GET /api/limits/{entity}": O,
    "PUT /api/limits/{entity}": O,
    "DELETE /api/limits/{entity}": O,
    "GET /api/dashboard/entities": O,
    "GET /api/dashboard/stream": O,
    "GET /defaults/system": O,
    "PUT /defaults/system": O,
    "DELETE /defaults/system": O,
    "GET /defaults/resources/{resource:path}": O,
    "PUT /defaults/resources/{resource:path}": O,
    "DELETE /defaults/resources/{resource:path}": O,
    "GET /usage": O,
    "GET /usage/summary": O,
    "GET /audit": O,
    "GET /namespaces": G,
    "POST /namespaces": G,
    "GET /namespaces/{name}": G,
    "DELETE /namespaces/{name}": G,
    "POST /namespaces/{name}/recover": G,
    "POST /namespaces/{name}/purge": G,
    "GET /health": set(),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A limiter that only refused requests and readers meet."""
    with running(tmp_path_factory.mktemp("refused")) as made:
        yield made


def test_the_written_endpoints_are_there_with_their_roles() -> None:
    found = {str(each): set(each.roles) for each in OPERATIONS}
    assert {name: found.get(name) for name in WRITTEN} == WRITTEN


def test_every_route_says_who_may_ask_and_is_documented() -> None:
    app = made_app("sqlite://")
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert len(documented) == len(OPERATIONS)
    assert len(OPERATIONS) == sum(len(each.methods or ()) for each in routes_of(app))


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if not each.public], ids=str)
def test_who_lacks_the_role_is_refused(api: Api, operation: Operation) -> None:
    check_without_the_role(api, operation, ROLES)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.method == "GET"], ids=str)
def test_reading_succeeds_for_who_may(api: Api, operation: Operation) -> None:
    for role in operation.roles or (None,):
        answer = api.send(operation, role)
        assert answer.status_code == 200, answer.text


def test_who_has_the_role_is_let_in(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("used")) as used:
        for operation in OPERATIONS:
            # Namespaces at the end: the others are asked in one that is there.
            if not operation.path.startswith("/namespaces"):
                check_with_the_role(used, operation, "zeta")
        for operation in OPERATIONS:
            if operation.path.startswith("/namespaces"):
                check_with_the_role(used, operation, "zeta")


def test_limits_of_a_calls_own_are_for_operators(api: Api) -> None:
    limits = [{"name": "rpm", "refill": 10**9, "period_seconds": 1}]
    body = {"entity": "own", "resource": "r", "consume": {"rpm": 1}, "limits": limits}
    assert api.ask("POST", "/acquire", "APP", json=body).status_code == 403
    assert api.ask("POST", "/acquire", "OPERATOR", json=body).status_code == 201


@pytest.mark.parametrize(
    "limit",
    [
        {"name": "x", "kind": "fixed_window", "capacity": 9, "period_seconds": 60},
        {"name": "x", "kind": "sliding_window", "capacity": 9, "period_seconds": 60},
        {"name": "x", "kind": "session", "capacity": 9, "period_seconds": 60},
        {"name": "x", "kind": "calendar", "capacity": 9, "per": "month", "timezone": "UTC", "anchor": "31"},
    ],
    ids=lambda limit: limit["kind"],
)
def test_limits_of_every_kind_are_set_used_and_told(api: Api, limit: dict[str, Any]) -> None:
    entity = f"of-{limit['kind']}"
    stored = api.ask("PUT", f"/api/limits/{entity}", "OPERATOR", json={"limits": [limit]})
    assert stored.status_code == 200, stored.text
    (told,) = stored.json()["limits"]
    assert limit.items() <= told.items()
    # What the API tells it also takes.
    again = api.ask("PUT", f"/api/limits/{entity}", "OPERATOR", json={"limits": [told]})
    assert again.json()["limits"] == [told]
    lease = api.acquired(entity, x=4)["lease"]["lease_id"]
    assert api.left(entity)["x"] == 5
    assert api.ask("DELETE", f"/leases/{lease}", "APP").status_code == 204
    assert api.left(entity)["x"] == 9


def test_a_schedule_is_set_and_told(api: Api) -> None:
    limits = [{"name": "x", "capacity": 9, "period_seconds": 60}]
    # Seven days a week: the window always applies.
    window = {"when": "mon-sun", "limits": [{**limits[0], "capacity": 4}]}
    schedule = {"timezone": "Europe/Berlin", "windows": [window]}
    body = {"limits": limits, "schedule": schedule}
    for path in ("/api/limits/by-hour", "/defaults/resources/by-hour", "/defaults/system"):
        before = api.ask("GET", path, "OPERATOR").json()
        answer = api.ask("PUT", path, "OPERATOR", json=body)
        assert answer.status_code == 200, answer.text
        told = answer.json()["schedule"]
        assert (told["timezone"], told["windows"][0]["when"]) == ("Europe/Berlin", "mon-sun")
        assert told["windows"][0]["limits"][0]["capacity"] == 4
        if path.endswith("system"):
            api.ask("PUT", path, "OPERATOR", json={"limits": before["limits"]})
    assert api.left("by-hour")["x"] == 4
    found = api.ask("GET", "/api/limits/by-hour", "OPERATOR", params={"resource": MODEL}).json()
    assert (found["effective"]["window"], found["effective"]["until"]) == ("mon-sun", None)
    assert found["effective"]["limits"][0]["capacity"] == 4
    wrong = {**body, "schedule": {"windows": [{**window, "when": "someday"}]}}
    assert api.ask("PUT", "/api/limits/by-hour", "OPERATOR", json=wrong).status_code in (400, 422)


@pytest.mark.parametrize(
    "members", [{"kind": "leaky"}, {"kind": "calendar"}, {"kind": "session", "refill": 3}, {"per": "day"}]
)
def test_a_wrong_limit_is_a_422(api: Api, members: dict[str, Any]) -> None:
    body = {"limits": [{"name": "x", "capacity": 5, "period_seconds": 60, **members}]}
    answer = api.ask("PUT", "/api/limits/u", "OPERATOR", json=body)
    assert answer.status_code == 422, answer.text


def test_who_reaches_all_namespaces_names_one_that_is_there(api: Api) -> None:
    path, secret = "/api/entities", {"x-api-key": "key-of-GLOBAL_OPERATOR-all-0123456789"}
    assert api.client.get(path, headers=secret).status_code == 400
    assert api.client.get(path, headers={**secret, "x-tenant-id": "acmee"}).status_code == 404
    assert api.client.get(path, headers={**secret, "x-tenant-id": "acme"}).status_code == 200


def test_a_deleted_namespace_is_closed_at_once_and_open_again_when_recovered(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running(tmp_path_factory.mktemp("closed")) as api:
        lease = api.acquired("acme-user0", rpm=1)["lease"]["lease_id"]
        assert api.ask("DELETE", "/namespaces/acme", "GLOBAL_OPERATOR").json()["status"] == "deleted"
        for method, path in (("GET", "/api/entities"), ("DELETE", f"/leases/{lease}")):
            refused = api.ask(method, path, "OPERATOR")
            assert (refused.status_code, refused.json()["detail"]) == (403, "The namespace is deleted.")
        assert api.ask("GET", "/api/entities", "OPERATOR", "zeta").status_code == 200
        assert api.ask("POST", "/namespaces", "GLOBAL_OPERATOR", json={"name": "acme"}).status_code == 409
        assert api.ask("POST", "/namespaces/acme/recover", "GLOBAL_OPERATOR").json()["status"] == "active"
        assert api.ask("DELETE", f"/leases/{lease}", "APP").status_code == 204
        assert api.ask("POST", "/namespaces/acme/purge", "GLOBAL_OPERATOR").status_code == 409
        api.ask("DELETE", "/namespaces/acme", "GLOBAL_OPERATOR")
        purged = api.ask("POST", "/namespaces/acme/purge", "GLOBAL_OPERATOR").json()
        assert purged["done"]
        assert purged["removed"] > 10
        assert api.ask("GET", "/namespaces/acme", "GLOBAL_OPERATOR").status_code == 404
        assert api.ask("GET", "/api/entities", "OPERATOR").status_code == 404
        # The same name again is another namespace.
        assert api.ask("POST", "/namespaces", "GLOBAL_OPERATOR", json={"name": "acme"}).status_code == 201
        assert api.ask("GET", "/api/entities", "OPERATOR").json()["items"] == []
        assert api.ask("GET", "/api/entities", "OPERATOR", "zeta").json()["items"] != []


def test_a_global_operator_of_one_namespace_touches_no_other(tmp_path: Path) -> None:
    secret = "key-of-an-operator-of-acme-0123456789"
    keys = [ApiKey.of(secret, id="ops", roles=["GLOBAL_OPERATOR"], tenants=["acme"])]
    with running(tmp_path) as api:
        url = api.url
    with TestClient(create_app(url, auth=Auth(api_keys=keys))) as client:
        named = {"x-api-key": secret}
        for method, path in (
            ("GET", "/namespaces"),
            ("POST", "/namespaces"),
            ("GET", "/namespaces/zeta"),
            ("DELETE", "/namespaces/zeta"),
            ("POST", "/namespaces/zeta/recover"),
            ("POST", "/namespaces/zeta/purge"),
        ):
            body = {"name": "new"} if (method, path) == ("POST", "/namespaces") else None
            assert client.request(method, path, headers=named, json=body).status_code == 403, path
        assert client.get("/api/entities", headers=named).status_code == 200
