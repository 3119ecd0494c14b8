"""Roles: every route with every role of the tenant and of the survey, and without a credential."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.surveys.app import create_app
from tests.systems.http import Operation, routes_of

from .api import MEMBERS, OPERATIONS, ROLES, Api, path_ids, running

G = {"GLOBAL_ADMIN"}
A = G | {"TENANT_ADMIN"}
M = A | {"MEMBER"}
#: The endpoints of system 4 in the requirements, but those of sync: the roles of a tenant, and
#: the role in the survey.
WRITTEN: dict[str, tuple[set[str], str | None]] = {
    "GET /surveys": (M, None),
    "GET /surveys/{survey_id}": (M, "viewer"),
    "GET /surveys/{survey_id}/sections/{part_id}": (M, "viewer"),
    "GET /surveys/{survey_id}/configs": (M, "viewer"),
    "PATCH /surveys/{survey_id}": (M, "editor"),
    **{
        f"{method} /surveys/{{survey_id}}/{parts}/{{part_id}}": (M, "editor")
        for method in ("PATCH", "PUT", "DELETE")
        for parts in ("sections", "elements", "components")
    },
    "POST /surveys/{survey_id}/batch": (M, "editor"),
    # A member who creates a survey owns it.
    "POST /surveys": (M, None),
    "DELETE /surveys/{survey_id}": (M, "owner"),
    "PUT /surveys/{survey_id}/access": (M, "owner"),
    "POST /surveys/{survey_id}/configs": (M, "owner"),
    "GET /library": (M, None),
    **{f"GET /library/{parts}/{{item_id}}": (M, None) for parts in ("sections", "elements", "components")},
    "GET /phrases": (M, None),
    "GET /images": (M, None),
    "POST /images": (M, None),
    **{f"{method} /images/{{image_id}}": (M, None) for method in ("GET", "PATCH", "DELETE")},
    "GET /documents/{document_id}": (M, None),
    "PUT /documents/{document_id}": (M, None),
    "GET /documents/{document_id}/versions": (M, None),
    "POST /surveys/{survey_id}/photos/export": (M, "viewer"),
    **{f"POST /library/{parts}": (A, None) for parts in ("sections", "elements", "components")},
    **{
        f"{method} /library/{parts}/{{item_id}}": (A, None)
        for method in ("PATCH", "DELETE")
        for parts in ("sections", "elements", "components")
    },
    "POST /phrases": (A, None),
    "PATCH /phrases/{kind}/{phrase_id}": (A, None),
    "DELETE /phrases/{kind}/{phrase_id}": (A, None),
    "GET /tenant/export": (A, None),
    "GET /admin/surveys": (G, None),
    "POST /admin/migrate": (G, None),
    "POST /admin/verify": (G, None),
    "POST /admin/rollback": (G, None),
    "PUT /admin/flags/table": (G, None),
    "GET /tenants": (G, None),
    "POST /tenants": (G, None),
    **{f"{method} /tenants/{{tenant}}": (G, None) for method in ("GET", "PATCH", "DELETE")},
    # The users of a tenant: a global administrator selects the tenant with x-tenant-id.
    "GET /members": (A, None),
    "POST /members": (A, None),
    "PATCH /members/{user_id}": (A, None),
    "DELETE /members/{user_id}": (A, None),
    # Not in the list of the requirements.
    "GET /surveys/{survey_id}/report": (M, "viewer"),
    "POST /surveys/{survey_id}/report/links": (M, "owner"),
    "GET /reports/{token}": (set(), None),
    "GET /reports/{token}/report.pdf": (set(), None),
    "POST /surveys/{survey_id}/restore": (A, None),
    "GET /metrics": (G, None),
    "GET /sync": (M, None),
}
#: The token of the path is the credential.
PUBLIC = {"GET /reports/{token}", "GET /reports/{token}/report.pdf"}
RANKS = {"STRANGER": 0, "VIEWER": 1, "EDITOR": 2, "OWNER": 3}
SURVEY_ROLES = {"viewer": 1, "editor": 2, "owner": 3}
OF_SURVEYS = [each for each in OPERATIONS if "x-survey-role" in each.document]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Surveys for requests that are rejected."""
    with running(tmp_path_factory.mktemp("refused")) as made:
        yield made


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Surveys that tests change."""
    with running(tmp_path_factory.mktemp("used")) as made:
        yield made


def roles_of(operation: Operation) -> set[str]:
    """Return the roles of the tests that a route accepts."""
    if operation.public:
        return {"STRANGER"}  # the least of all
    members = {"MEMBER"} <= set(operation.roles)
    least = SURVEY_ROLES.get(operation.document.get("x-survey-role", ""), 0)
    found = {role for role in MEMBERS if members and RANKS[role] >= least}
    return found | (set(operation.roles) - {"MEMBER"})


def test_the_written_endpoints_are_there_with_their_roles() -> None:
    found = {str(each): (set(each.roles), each.document.get("x-survey-role")) for each in OPERATIONS}
    assert {name: found.get(name) for name in WRITTEN} == WRITTEN


def test_every_route_declares_its_roles_and_is_documented() -> None:
    app = create_app("sqlite://")
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert len(documented) == len(OPERATIONS) == sum(len(each.methods or ()) for each in routes_of(app))
    assert {str(each) for each in OPERATIONS if each.public} == PUBLIC
    # What members may call about a survey needs a role in it.
    others = [each for each in OPERATIONS if each not in OF_SURVEYS and "MEMBER" in each.roles]
    assert all("{survey_id}" not in each.path for each in others)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if not each.public], ids=str)
def test_a_caller_without_the_role_is_rejected(api: Api, operation: Operation) -> None:
    ids = path_ids(api.ids["acme"], operation)
    for role in set(ROLES) - roles_of(operation):
        answer = api.send(operation, role, ids=ids)
        expected = 404 if role == "STRANGER" and operation in OF_SURVEYS else 403
        assert answer.status_code == expected, (role, answer.text)
    nobody = api.send(operation, None, ids=ids)
    assert nobody.status_code == 401
    assert api.send(operation, None, ids=ids, extra={"x-api-key": "wrong"}).status_code == 401


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_caller_with_the_role_is_accepted(used: Api, operation: Operation) -> None:
    tenant = "zeta" if operation.method in ("POST", "PUT", "PATCH", "GET") else "acme"
    ids = path_ids(used.ids[tenant], operation)
    if operation.method == "DELETE":
        # What is not there is not deleted, but asking is allowed.
        ids |= dict.fromkeys(ids, "gone") | {"survey_id": ids["survey_id"], "kind": "Defect"}
        if operation.path == "/surveys/{survey_id}":
            ids["survey_id"] = used.ids["acme"]["survey_id"]
    for role in sorted(roles_of(operation), key=lambda role: RANKS.get(role, 9)):
        answer = used.send(operation, role, tenant=tenant, ids=ids)
        assert answer.status_code not in (401, 403), (role, answer.text)
        assert answer.status_code < 500, (role, answer.text)


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.method == "GET"], ids=str)
def test_reading_succeeds_with_the_role(api: Api, operation: Operation) -> None:
    ids = path_ids(api.ids["acme"], operation)
    if operation.path == "/images/{image_id}/bytes":
        return  # its bytes are not uploaded
    query = {"type": "Defect"} if operation.path == "/phrases" else {}
    answer = api.send(operation, "GLOBAL_ADMIN", ids=ids, query=query)
    # Without a browser, a server cannot print.
    expected = (200, 406) if operation.path.endswith(".pdf") else (200,)
    assert answer.status_code in expected, answer.text


def test_a_member_lists_the_surveys_that_they_may_see(api: Api) -> None:
    for role, count in (("OWNER", 2), ("VIEWER", 2), ("STRANGER", 0), ("TENANT_ADMIN", 2)):
        assert len(api.ask("GET", "/surveys", role).json()["items"]) == count


def test_a_tenant_that_is_not_there_is_not_begun_by_a_typing_error(api: Api) -> None:
    answer = api.ask(
        "POST", "/surveys", "GLOBAL_ADMIN", json={"title": "x"}, headers={"x-tenant-id": "acmee"}
    )
    assert answer.status_code == 404


def test_s4_39_if_match_is_the_version_of_the_part(api: Api) -> None:
    ids = api.ids["acme"]
    path = f"/surveys/{ids['survey_id']}/sections/{ids['section_id']}"
    etag = api.ask("GET", path, "OWNER", "acme").headers["etag"]
    changed = api.ask("PATCH", path, "OWNER", "acme", json={"notes": "a"}, headers={"if-match": etag})
    assert changed.status_code == 200
    stale = api.ask("PATCH", path, "OWNER", "acme", json={"notes": "b"}, headers={"if-match": etag})
    assert stale.status_code == 412
    assert stale.headers["content-type"] == "application/problem+json"
    whole = api.ask("PUT", path, "OWNER", "acme", json={"name": "Whole"})
    assert (whole.json()["notes"], whole.json()["name"]) == ("", "Whole")
