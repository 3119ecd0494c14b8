"""Roles: every route with every role, without a credential, and with a user who has no access."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.portal.app import create_app
from solotable.systems.portal.roles import ROLES
from tests.systems.http import Operation, routes_of

from .api import OPERATIONS, Api, attach, running

V, C, A, X = "Viewer", "Contributor", "Approver", "Admin"
#: The endpoints of system 3 as in the requirements, with the least role.
WRITTEN = {
    "GET /v1/content": V,
    "GET /v1/content/{content_id}": V,
    "GET /v1/content/{content_id}/download": V,
    "GET /v1/notifications": V,
    "POST /v1/notifications/{notification_id}/read": V,
    "GET /v1/subscriptions": V,
    "POST /v1/subscriptions": V,
    "GET /v1/subscriptions/{subscription_id}": V,
    "DELETE /v1/subscriptions/{subscription_id}": V,
    "POST /v1/events": V,
    "POST /v1/content": C,
    "PUT /v1/content/{content_id}": C,
    "POST /v1/uploads/presign": C,
    "POST /v1/content/{content_id}/attach": C,
    "POST /v1/content/{content_id}/approve": A,
    "POST /v1/content/{content_id}/deprecate": A,
    "POST /v1/content/{content_id}/expire": A,
    "DELETE /v1/content/{content_id}": X,
    "GET /v1/admin/users": X,
    "POST /v1/admin/users/invite": X,
    "PATCH /v1/admin/users/{user_id}/role": X,
    "PATCH /v1/admin/users/{user_id}/enable": X,
    "PATCH /v1/admin/users/{user_id}/disable": X,
    "GET /v1/analytics/overview": X,
    "GET /v1/analytics/content": X,
    "GET /v1/analytics/users": X,
    "GET /v1/events": X,
    "POST /v1/jobs/expire": X,
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A portal for requests that are rejected."""
    with running(tmp_path_factory.mktemp("refused")) as made:
        yield made


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A portal that tests change."""
    with running(tmp_path_factory.mktemp("used")) as made:
        yield made


def test_the_written_endpoints_are_there_with_their_roles() -> None:
    found = {str(each): set(each.roles) for each in OPERATIONS}
    expected = {name: set(ROLES[ROLES.index(least) :]) for name, least in WRITTEN.items()}
    assert {name: found.get(name) for name in WRITTEN} == expected


def test_every_route_declares_its_roles_and_is_documented() -> None:
    app = create_app("sqlite://")
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert len(documented) == len(OPERATIONS) == sum(len(each.methods or ()) for each in routes_of(app))
    assert all(each.roles for each in OPERATIONS), "nothing is public"
    limits = {"GET": {"reads"}, "POST": {"writes", "telemetry"}}
    for each in OPERATIONS:
        assert each.document["x-rate-limit"] in limits.get(each.method, {"writes"}), each


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_caller_without_the_role_is_rejected(api: Api, operation: Operation) -> None:
    for role in (*set(ROLES) - set(operation.roles), "Disabled", "Stranger"):
        answer = api.send(operation, role)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), (role, answer.text)
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
    anonymous = api.send(operation, None)
    assert (anonymous.status_code, anonymous.json()["error"]["code"]) == (401, "unauthorized")
    assert api.send(operation, None, extra={"x-api-key": "wrong"}).status_code == 401


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_caller_with_the_role_is_accepted(used: Api, operation: Operation) -> None:
    for role in operation.roles:
        ids = dict(used.ids["acme"])
        if "{content_id}" in operation.path or operation.path.endswith("presign"):
            # A Draft of the caller, so that only the role decides.
            made = used.draft(role if role != V else C, product_suite="Compass")
            ids["content_id"] = ids["any"] = made["content_id"]
            if role == V:
                used.data("POST", f"/v1/content/{made['content_id']}/approve", A)
            elif operation.path.endswith("download"):
                attach(used, made["content_id"], role=role)
        answer = used.send(operation, role, ids=ids)
        assert answer.status_code not in (401, 403), (role, answer.text)
        assert answer.status_code < 500, (role, answer.text)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.method == "GET"], ids=str)
def test_reading_succeeds_in_an_envelope(api: Api, operation: Operation) -> None:
    role = "Viewer" if "notification_id" in operation.path or "subscription_id" in operation.path else "Admin"
    answer = api.send(operation, role)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"data", "request_id"}


def test_a_disabled_user_loses_access_at_once_with_key_and_token(used: Api) -> None:
    assert used.as_user("guest", "GET", "/v1/content").status_code == 200
    used.data("PATCH", "/v1/admin/users/guest/disable")
    rejected = used.as_user("guest", "GET", "/v1/content")
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (403, "forbidden")
    used.data("PATCH", "/v1/admin/users/guest/enable")
    assert used.as_user("guest", "GET", "/v1/content").status_code == 200


def test_a_role_is_what_the_directory_says_and_not_the_token(used: Api) -> None:
    draft = {"title": "x"}
    assert used.as_user("guest", "POST", "/v1/content", json=draft).status_code == 403
    used.data("PATCH", "/v1/admin/users/guest/role", json={"role": "Contributor"})
    assert used.as_user("guest", "POST", "/v1/content", json=draft).status_code == 201
    used.data("PATCH", "/v1/admin/users/guest/role", json={"role": "Viewer"})
    assert used.as_user("guest", "POST", "/v1/content", json=draft).status_code == 403


@pytest.mark.parametrize("change", ["disable", "role"])
def test_an_administrator_cannot_lock_themselves_out(used: Api, change: str) -> None:
    body = {"role": "Viewer"} if change == "role" else None
    answer = used.ask("PATCH", f"/v1/admin/users/admin/{change}", "Admin", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "own-account")


def test_an_invited_address_is_invited_once(used: Api) -> None:
    person = {"email": "Cy@Example.com", "name": "Cy", "role": "Viewer"}
    invited = used.data("POST", "/v1/admin/users/invite", json=person)
    assert (invited["user"]["active"], invited["user"]["email"]) == (False, "cy@example.com")
    again = used.ask("POST", "/v1/admin/users/invite", "Admin", json={**person, "email": "cy@example.com"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "not-unique")
    listed = used.data("GET", "/v1/admin/users")["items"]
    assert [each["email"] for each in listed] == sorted(each["email"] for each in listed)
    assert not any("password" in each or "invitation" in each for each in listed)
