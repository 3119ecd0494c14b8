"""Isolation over HTTP: no request of one tenant reads or changes data of another (S0.17, C0.7).

All of it is made from the route table: headers, ids, cursors and bodies of the other tenant, to every route
with every role. What the other tenant holds is marked, and is compared before and after.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest

from tests.systems.http import Operation

from .api import EVERYWHERE, OPERATIONS, ROLES, Api, headers, mark, running

LISTS = [each for each in OPERATIONS if "cursor" in each.parameters]
TRICKS = (
    "zeta",
    " zeta",
    "ZETA",
    "zeta,acme",
    "acme,zeta",
    "acme#zeta",
    "acme/../zeta",
    "*",
    "zeta%00",
    "TENANT#zeta",
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS that callers of acme attack; at the end everything of zeta is as it was."""
    with running(tmp_path_factory.mktemp("attacked")) as made:
        before = everything(made, "zeta")
        assert sum(mark("zeta") in each for each in before.values()) > 20
        yield made
        assert everything(made, "zeta") == before


def everything(api: Api, tenant: str) -> dict[str, str]:
    """Return the responses for a tenant's administrator, by route."""
    reads = [each for each in OPERATIONS if each.method == "GET" and "TENANT_ADMIN" in each.roles]
    answers = {str(each): api.send(each, "TENANT_ADMIN", tenant=tenant) for each in reads}
    return {name: answer.text for name, answer in answers.items() if answer.is_success}


def scoped(operation: Operation, role: str) -> bool:
    """Return whether a role reads one tenant by a route; GLOBAL_ADMIN and RENDERER list all tenants."""
    return role not in EVERYWHERE or "x-tenant-id" in operation.parameters


def check(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert mark("zeta") not in answer.text
    assert mark("zeta") not in str(answer.headers)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_s0_17_c0_7_a_header_reaches_no_other_tenant(api: Api, operation: Operation) -> None:
    for role in ("TENANT_ADMIN", "EDITOR", "CUSTOMER"):
        for trick in TRICKS:
            answer = api.send(operation, role, extra={"x-tenant-id": trick})
            check(answer)
            if "x-tenant-id" in operation.parameters and role in operation.roles:
                assert answer.status_code == 403, (role, trick)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_s0_17_c0_7_ids_of_another_tenant_are_not_there(api: Api, operation: Operation) -> None:
    for role in ROLES:
        if scoped(operation, role):
            check(api.send(operation, role, ids=api.ids["zeta"]))
    check(api.send(operation, None, ids=api.ids["zeta"]))


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.public], ids=str)
def test_s0_17_the_host_alone_decides_the_site(api: Api, operation: Operation) -> None:
    for spoof in (
        {"x-tenant-id": "zeta"},
        {"x-forwarded-host": "zeta.example"},
        {"forwarded": "host=zeta.example"},
        {"origin": "https://zeta.example"},
        {"x-original-url": "http://zeta.example/"},
    ):
        check(api.send(operation, None, ids=api.ids["zeta"], extra=spoof))


@pytest.fixture(scope="module")
def foreign_cursors(api: Api) -> dict[str, str]:
    """The cursors that callers of zeta get, by list."""
    found = {}
    for each in LISTS:
        role = "TENANT_ADMIN" if each.roles else None
        answer = api.send(each, role, tenant="zeta", query={"limit": "1"})
        if answer.is_success and answer.json()["next_cursor"]:
            found[str(each)] = answer.json()["next_cursor"]
    assert len(found) >= len(LISTS) - 2, set(map(str, LISTS)) - set(found)
    return found


@pytest.mark.parametrize("operation", LISTS, ids=str)
def test_s0_17_cursors_of_another_tenant_are_rejected(
    api: Api, operation: Operation, foreign_cursors: dict[str, str]
) -> None:
    role = "TENANT_ADMIN" if operation.roles else None
    for cursor in foreign_cursors.values():
        answer = api.send(operation, role, query={"cursor": cursor})
        check(answer)
        assert answer.status_code == 400
        if role is None:
            continue
        spoofed = api.send(operation, "GLOBAL_ADMIN", query={"cursor": cursor})
        check(spoofed)
        assert spoofed.status_code == 400


@pytest.mark.parametrize(
    "operation",
    [each for each in OPERATIONS if "requestBody" in each.document and each.path != "/settings"],
    ids=str,
)
def test_s0_17_no_body_names_a_tenant(api: Api, operation: Operation) -> None:
    body = api.body(operation, api.ids["acme"])
    if "json" not in body or operation.path.startswith("/tenants"):
        return
    path = operation.path
    for name, value in api.ids["acme"].items():
        path = path.replace(f"{{{name}}}", value)
    role = "TENANT_ADMIN" if operation.roles else None
    answer = api.ask(operation.method, path, role, json={**body["json"], "tenant_id": "zeta"})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    "path",
    [
        "/..%2f..%2fzeta",
        "/%2e%2e/zeta.example/r0",
        "//zeta.example/r0",
        "/http:%2f%2fzeta.example%2fr0",
        "/r0%23zeta",
        "/R0",
        "/%EF%BD%920",
        "/r0%00",
        "/r0%0d%0alocation:%20https:%2f%2fevil.example",
        "/" + "a" * 5000,
        "/%ff%fe",
        "/q0",
    ],
)
def test_s0_5_no_path_leads_to_another_site(api: Api, path: str) -> None:
    for accept in ("text/html", "application/json"):
        answer = api.ask("GET", path, headers={"accept": accept})
        check(answer)
        assert answer.status_code in (200, 301, 404)
        if answer.status_code == 301:
            assert answer.headers["location"] == "/r0"


def test_s0_17_a_key_of_one_tenant_is_none_of_the_other(api: Api) -> None:
    own = api.ask("GET", "/tenants", "TENANT_ADMIN").json()["items"]
    assert [each["id"] for each in own] == ["acme"]
    assert api.ask("GET", "/tenants/zeta", "TENANT_ADMIN").status_code == 403
    doubled = [*headers("TENANT_ADMIN", "acme").items(), *headers("TENANT_ADMIN", "zeta").items()]
    assert api.client.get("/content", headers=doubled).status_code == 401
    twice = [*headers("GLOBAL_ADMIN", "acme").items(), ("x-tenant-id", "zeta")]
    assert api.client.get("/content", headers=twice).status_code == 400
