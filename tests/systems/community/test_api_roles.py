"""The role matrix: every route with every role, without a credential, and with a wrong one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.community.app import create_app
from solotable.systems.community.recovery import Recovery
from tests.systems.http import Operation, routes_of

from .api import OPERATIONS, ROLES, Api, Cast, running

#: Who may call a route, by what it is for. Of those with an account, the service decides.
ALLOWED: dict[str, frozenset[str]] = {
    "user": frozenset({"user", "member", "admin", "creator", "owner"}),
    "leaving": frozenset({"user", "member", "admin", "creator", "owner", "leaving"}),
    "member": frozenset({"member", "admin", "creator"}),
    "admin": frozenset({"admin", "creator"}),
    "creator": frozenset({"creator"}),
    "owner": frozenset({"owner"}),
    "operator": frozenset({"operator"}),
}
P, U, A, C, OWN, X = "public", "user", "admin", "creator", "owner", "operator"
N, S, T = "/api/neighborhoods", "/api/sites", "/api/templates"
#: The endpoints of system 2 as in the requirements.
WRITTEN = {
    "GET /health": P,
    "GET /auth/login": P,
    "GET /auth/callback": P,
    f"GET {N}": P,
    f"GET {N}/{{neighbourhood_id}}": P,
    f"GET {N}/{{neighbourhood_id}}/members": P,
    f"GET {T}": P,
    f"GET {T}/{{template_id}}": P,
    f"GET {T}/{{template_id}}/schema": P,
    f"GET {T}/{{template_id}}/preview": P,
    f"GET {T}/{{template_id}}/content-types": P,
    "GET /auth/me": "leaving",
    "POST /auth/logout": "leaving",
    "GET /api/user": U,
    "PUT /api/user": U,
    "DELETE /api/user": U,
    "GET /api/user/export/data": U,
    "GET /api/user/export/atproto": U,
    "POST /api/users/batch": U,
    "GET /api/users/{did}": U,
    "GET /api/users/me/nbhds": U,
    f"POST {N}": U,
    f"POST {N}/{{neighbourhood_id}}/join": U,
    f"DELETE {N}/{{neighbourhood_id}}/leave": U,
    f"POST {T}/custom": U,
    f"GET {T}/custom/{{template_id}}": OWN,
    f"PUT {N}/{{neighbourhood_id}}": A,
    f"PUT {N}/{{neighbourhood_id}}/members/{{did}}": A,
    f"DELETE {N}/{{neighbourhood_id}}/members/{{did}}": A,
    f"DELETE {N}/{{neighbourhood_id}}": C,
    f"GET {S}": U,
    f"POST {S}": U,
    f"GET {S}/{{site_id}}": OWN,
    f"PUT {S}/{{site_id}}": OWN,
    f"DELETE {S}/{{site_id}}": OWN,
    f"POST {S}/{{site_id}}/build": OWN,
    f"GET {S}/{{site_id}}/build/{{job_id}}": OWN,
    f"GET {S}/{{site_id}}/builds": OWN,
    f"GET {S}/{{site_id}}/export": OWN,
    f"GET {S}/{{site_id}}/content": OWN,
    f"POST {S}/{{site_id}}/content": OWN,
    f"GET {S}/{{site_id}}/content/{{rkey}}": OWN,
    f"PUT {S}/{{site_id}}/content/{{rkey}}": OWN,
    f"DELETE {S}/{{site_id}}/content/{{rkey}}": OWN,
    f"GET {S}/{{site_id}}/prefill": OWN,
    "GET /api/users": X,
    "POST /admin/export": X,
    "POST /admin/restore": X,
}
PRIVATE = [each for each in OPERATIONS if not each.public]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("roles")) as made:
        recovery: Recovery = made.app.state.recovery
        recovery.enable_backups()
        yield made


@pytest.fixture(scope="module")
def first_cast(api: Api) -> Cast:
    return api.cast()


@pytest.fixture
def refused(api: Api, first_cast: Cast) -> dict[str, str]:
    """What a cast has that no request changes."""
    return api.use(first_cast)


@pytest.fixture(scope="module")
def second_cast(api: Api) -> Cast:
    return api.cast()


def test_the_written_endpoints_are_there_with_their_roles() -> None:
    found = {str(each): each.roles[0] if each.roles else P for each in OPERATIONS}
    assert {name: found.get(name) for name in WRITTEN} == WRITTEN


def test_every_route_declares_who_it_is_for_and_is_documented() -> None:
    app = create_app("sqlite://")
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert len(documented) == len(OPERATIONS) == sum(len(each.methods or ()) for each in routes_of(app))
    assert {each.roles[0] for each in PRIVATE} == set(ALLOWED)


@pytest.mark.parametrize("operation", PRIVATE, ids=str)
def test_a_caller_without_the_role_is_rejected(
    api: Api, refused: dict[str, str], operation: Operation
) -> None:
    [access] = operation.roles
    for role in set(ROLES) - ALLOWED[access]:
        # Every user may have sites; that one of another user exists is not said.
        is_hidden = access == "owner" and role not in ("leaving", "operator")
        expected = (404, "not-found") if is_hidden else (403, "forbidden")
        answer = api.send(operation, role, ids=refused)
        body = answer.json()
        assert (answer.status_code, body["error"]["code"]) == expected, (role, answer.text)
        assert set(body) == {"error", "meta"}
        assert set(body["error"]) == {"code", "message", "details"}
        assert body["meta"]["request_id"] == answer.headers["x-request-id"]
    anonymous = api.send(operation, None, ids=refused)
    assert (anonymous.status_code, anonymous.json()["error"]["code"]) == (401, "unauthorized")
    for wrong in ({"x-api-key": "wrong"}, {"authorization": "Bearer wrong"}, {"authorization": "Basic eA=="}):
        assert api.send(operation, None, ids=refused, extra=wrong).status_code == 401


@pytest.mark.parametrize("operation", PRIVATE, ids=str)
def test_a_caller_with_the_role_is_accepted(api: Api, second_cast: Cast, operation: Operation) -> None:
    [access] = operation.roles
    is_final = operation.method == "DELETE" or operation.path.endswith(("/logout", "/members/{did}"))
    ids = api.use(api.cast() if is_final else second_cast)
    for role in sorted(ALLOWED[access]):
        answer = api.send(operation, role, ids=ids)
        assert answer.status_code not in (401, 403), (role, answer.text)
        assert answer.status_code < 500, (role, answer.text)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.public], ids=str)
def test_a_public_route_accepts_every_caller_and_no_wrong_credential(
    api: Api, refused: dict[str, str], operation: Operation
) -> None:
    for role in (None, "user", "operator"):
        answer = api.send(operation, role, ids=refused)
        assert answer.status_code not in (401, 403), (role, answer.text)
        assert answer.status_code < 500, (role, answer.text)


@pytest.mark.parametrize("path", [f"{N}", f"{N}/{{id}}", f"{N}/{{id}}/members", f"{T}/blog"])
def test_a_wrong_credential_is_a_401_on_public_routes_too(
    api: Api, refused: dict[str, str], path: str
) -> None:
    wrong = {"authorization": "Bearer wrong"}
    address = path.replace("{id}", refused["neighbourhood_id"])
    assert api.ask("GET", address, None, headers=wrong).status_code == 401


@pytest.mark.parametrize(
    "operation",
    # A receipt exists after a purge, and logins have their own tests.
    [
        each
        for each in OPERATIONS
        if each.method == "GET" and not each.path.startswith(("/auth/", "/api/rec"))
    ],
    ids=str,
)
def test_reading_succeeds_for_a_caller_with_the_role(
    api: Api, refused: dict[str, str], operation: Operation
) -> None:
    role = {"admin": "admin", "operator": "operator"}.get((operation.roles or ("",))[0], "owner")
    template = {} if "custom" in operation.path else {"template_id": "blog"}
    answer = api.send(operation, role, ids=refused | template)
    assert answer.status_code == 200, answer.text
