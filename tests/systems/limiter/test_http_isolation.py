"""Namespaces over HTTP: whatever a caller of one sends, nothing of the other is seen or changed.

All of it is made from the route table: headers, names, leases and cursors of the other namespace, to every
route with every role. What the other one holds is marked, and is compare before and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx2
import pytest

from tests.systems.http import Operation

from .api import EVERYWHERE, MODEL, NUMBERS, OPERATIONS, ROLES, Api, marks, running

LISTS = [each for each in OPERATIONS if "cursor" in each.parameters]
SCOPED = [each for each in OPERATIONS if "x-tenant-id" in each.parameters]
TRICKS = ("zeta", " zeta", "ZETA", "zeta,acme", "acme#zeta", "acme/../zeta", "*", "_", "zeta%00")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A limiter that callers of acme attack; at the end everything of zeta is as it was."""
    with running(tmp_path_factory.mktemp("attacked")) as made:
        before = everything(made, "zeta")
        assert sum(any(mark in each for mark in marks("zeta")) for each in before.values()) >= 11
        yield made
        assert everything(made, "zeta") == before


def everything(api: Api, namespace: str) -> dict[str, str]:
    """Return what an operator of a namespace sees, by route, and how many tokens there are."""
    reads = [each for each in OPERATIONS if each.method == "GET" and "OPERATOR" in each.roles]
    answers = {str(each): api.send(each, "OPERATOR", tenant=namespace) for each in reads}
    assert {answer.status_code for answer in answers.values()} == {200}
    # Buckets fill up again while the others are asked.
    return {
        name: re.sub(r'"(?:available|wait_seconds)":(?:[0-9.-]+|\{[^}]*\})', "", answer.text)
        for name, answer in answers.items()
    }


def judge(answer: httpx2.Response) -> None:
    assert answer.status_code < 500, answer.text
    for each in marks("zeta"):
        assert each not in answer.text
        assert each not in str(answer.headers)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_header_reaches_no_other_namespace(api: Api, operation: Operation) -> None:
    for role in ("OPERATOR", "APP"):
        for trick in TRICKS:
            answer = api.send(operation, role, extra={"x-tenant-id": trick})
            judge(answer)
            if operation in SCOPED and role in operation.roles:
                assert answer.status_code == 403, (role, trick)


@pytest.mark.parametrize("operation", SCOPED, ids=str)
def test_names_of_another_namespace_are_not_there(api: Api, operation: Operation) -> None:
    for role in ROLES:
        judge(api.send(operation, role, ids=api.ids["zeta"]))


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if "{lease_id}" in each.path], ids=str)
def test_a_lease_of_another_namespace_is_not_there(api: Api, operation: Operation) -> None:
    for role in ROLES:
        answer = api.send(operation, role, ids=api.ids["zeta"])
        assert answer.status_code == 404, (role, answer.text)
    lease = api.ask("GET", f"/leases/{api.ids['zeta']['lease_id']}", "APP", "zeta").json()
    assert (lease["consumed"], lease["ended"]) == ({"rpm": 1, "tpm": NUMBERS["zeta"]}, None)


@pytest.fixture(scope="module")
def foreign_cursors(api: Api) -> dict[str, str]:
    """The cursors that operators of zeta get, by list."""
    found = {}
    for each in LISTS:
        role = next(role for role in ("OPERATOR", "GLOBAL_OPERATOR") if role in each.roles)
        answer = api.send(each, role, tenant="zeta", query={"limit": "1"})
        if answer.is_success and answer.json()["next_cursor"]:
            found[str(each)] = answer.json()["next_cursor"]
    assert len(found) >= len(LISTS) - 1, set(map(str, LISTS)) - set(found)
    return found


@pytest.mark.parametrize("operation", [each for each in LISTS if each in SCOPED], ids=str)
def test_cursors_of_another_namespace_are_refused(
    api: Api, operation: Operation, foreign_cursors: dict[str, str]
) -> None:
    for role in ("OPERATOR", *EVERYWHERE):
        for cursor in foreign_cursors.values():
            answer = api.send(operation, role, query={"cursor": cursor})
            judge(answer)
            assert answer.status_code == 400


@pytest.mark.parametrize("operation", [each for each in SCOPED if "requestBody" in each.document], ids=str)
def test_no_body_names_a_namespace(api: Api, operation: Operation) -> None:
    body = api.body(operation, api.ids["acme"])["json"]
    path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: api.ids["acme"][found[1]], operation.path)
    answer = api.ask(operation.method, path, "OPERATOR", json={**body, "namespace": "zeta"})
    assert answer.status_code == 422


def test_the_same_name_in_two_namespaces_is_two_entities(api: Api) -> None:
    limits = {"limits": [{"name": "rpm", "refill": 3, "period_seconds": 3600}]}
    for namespace in ("acme", "zeta"):
        path = "/api/limits/twin"
        assert api.ask("PUT", path, "OPERATOR", namespace, json=limits).status_code == 200
    body = {"entity": "twin", "resource": MODEL, "consume": {"rpm": 3}}
    assert api.ask("POST", "/acquire", "APP", "acme", json=body).status_code == 201
    assert api.ask("POST", "/acquire", "APP", "acme", json=body).status_code == 429
    assert api.left("twin", "zeta") == {"rpm": 3}
    for namespace in ("acme", "zeta"):
        assert api.ask("DELETE", "/api/limits/twin", "OPERATOR", namespace).status_code == 204
