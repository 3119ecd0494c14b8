"""Isolation over HTTP: no request of one tenant reads or changes data of another (C4.4, C4.17, C4.18)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.systems.http import Operation

from .api import OPERATIONS as ALL_OPERATIONS
from .api import ROLES, Api, mark, path_ids, running

TRICKS = ("zeta", " zeta", "ZETA", "zeta,acme", "acme#zeta", "acme/../zeta", "*", "TENANT#zeta")
#: They read and change all tenants.
GLOBAL = ("/tenants", "/admin/")
#: Its token is the credential (`test_api_links`).
OPERATIONS = [each for each in ALL_OPERATIONS if not each.public]
LISTS = [each for each in OPERATIONS if "cursor" in each.parameters and not each.path.startswith(GLOBAL)]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Surveys that callers of acme attack; at the end everything of zeta is as it was."""
    with running(tmp_path_factory.mktemp("attacked")) as made:
        before = everything(made, "zeta")
        assert sum(mark("zeta") in each for each in before.values()) > 12
        yield made
        assert everything(made, "zeta") == before


def everything(api: Api, tenant: str) -> dict[str, str]:
    """Return the responses for a tenant's administrator, by route."""
    reads = [each for each in OPERATIONS if each.method == "GET" and "TENANT_ADMIN" in each.roles]
    answers = {
        str(each): api.send(
            each,
            "TENANT_ADMIN",
            tenant=tenant,
            ids=path_ids(api.ids[tenant], each),
            query={"type": "Defect"} if each.path == "/phrases" else {},
        )
        for each in reads
    }
    # A PDF has the time at which it was printed, and the first line of an export that of the export.
    return {
        name: answer.text.partition("\n")[2] if name.endswith("/export") else answer.text
        for name, answer in answers.items()
        if answer.is_success and not name.endswith(".pdf")
    }


def check(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert mark("zeta") not in answer.text
    assert mark("zeta") not in str(answer.headers)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_c4_4_a_header_reaches_no_other_tenant(api: Api, operation: Operation) -> None:
    ids = path_ids(api.ids["zeta"], operation)
    for role in ("TENANT_ADMIN", "OWNER"):
        for trick in TRICKS:
            check(api.send(operation, role, ids=ids, extra={"x-tenant-id": trick}))


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_c4_4_c4_18_ids_of_another_tenant_are_not_there(api: Api, operation: Operation) -> None:
    ids = path_ids(api.ids["zeta"], operation)
    for role in ROLES:
        if role != "GLOBAL_ADMIN" or not operation.path.startswith(GLOBAL):
            check(api.send(operation, role, ids=ids))


@pytest.fixture(scope="module")
def foreign_cursors(api: Api) -> dict[str, str]:
    """The cursors that an administrator of zeta gets, by list."""
    found = {}
    for each in LISTS:
        query = {"limit": "1"} | ({"type": "Defect"} if each.path == "/phrases" else {})
        answer = api.send(each, "TENANT_ADMIN", tenant="zeta", query=query)
        if answer.is_success and answer.json()["next_cursor"]:
            found[str(each)] = answer.json()["next_cursor"]
    assert set(found) == set(map(str, LISTS))
    return found


@pytest.mark.parametrize("operation", LISTS, ids=str)
def test_c4_4_cursors_of_another_tenant_are_rejected(
    api: Api, operation: Operation, foreign_cursors: dict[str, str]
) -> None:
    for cursor in foreign_cursors.values():
        query = {"cursor": cursor} | ({"type": "Defect"} if operation.path == "/phrases" else {})
        answer = api.send(operation, "TENANT_ADMIN", query=query)
        check(answer)
        assert answer.status_code == 400


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if "requestBody" in each.document], ids=str
)
def test_c4_17_no_body_names_a_tenant(api: Api, operation: Operation) -> None:
    ids = path_ids(api.ids["acme"], operation)
    body = api.body(operation, ids)
    if "json" not in body or operation.path.startswith(GLOBAL):
        return
    path = operation.path
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
    answer = api.ask(operation.method, path, "TENANT_ADMIN", json={**body["json"], "tenant_id": "zeta"})
    assert answer.status_code == 422
