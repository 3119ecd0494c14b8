"""The tenant of a request is one that its credential reaches, whatever the request holds."""

from __future__ import annotations

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from solotable.web import ANONYMOUS, Principal, choose_tenant

from . import app as shop

NAMES = st.sampled_from(
    ["acme", "zeta", "ACME", "acme ", " acme", "acmé", "a", "", "acme#x", "*", "acme,zeta"]
)


@given(reach=st.none() | st.frozensets(NAMES, max_size=4), wanted=st.none() | NAMES | st.text(max_size=5))
def test_a_request_never_reaches_a_tenant_outside_the_principals(
    reach: frozenset[str] | None, wanted: str | None
) -> None:
    principal = Principal(id="p", kind="jwt", tenants=reach)
    try:
        chosen = choose_tenant(principal, wanted)
    except HTTPException as refused:
        assert refused.status_code in (400, 403)
        # A credential that lists its tenants is never rejected for one of them.
        assert reach is None or wanted not in reach
        assert not (wanted is None and reach is not None and len(reach) == 1)
    else:
        assert principal.reaches(chosen)
        assert wanted in (None, chosen)
        assert chosen if reach is None else chosen in reach


def test_the_anonymous_reach_nothing() -> None:
    for wanted in (None, "acme", "", "anonymous"):
        with pytest.raises(HTTPException):
            choose_tenant(ANONYMOUS, wanted)


@pytest.mark.parametrize(
    ("key", "header", "status", "seen"),
    [
        (shop.EDITOR_KEY, None, 200, "acme"),
        (shop.EDITOR_KEY, "acme", 200, "acme"),
        (shop.EDITOR_KEY, "zeta", 403, None),
        (shop.EDITOR_KEY, "ACME", 403, None),
        (shop.EDITOR_KEY, "", 403, None),
        (shop.EDITOR_KEY, "acme#", 403, None),
        (shop.BOTH_KEY, None, 400, None),
        (shop.BOTH_KEY, "acme", 200, "acme"),
        (shop.BOTH_KEY, "zeta", 200, "zeta"),
        (shop.BOTH_KEY, "acme, zeta", 403, None),
        (shop.BOTH_KEY, "other", 403, None),
        (shop.ADMIN_KEY, None, 400, None),
        (shop.ADMIN_KEY, "zeta", 200, "zeta"),
        (shop.ADMIN_KEY, "*", 400, None),
        (shop.ADMIN_KEY, "", 400, None),
        (shop.ADMIN_KEY, "acme#THING", 400, None),
        (shop.POWERLESS_KEY, None, 403, None),
        (shop.POWERLESS_KEY, "acme", 403, None),
    ],
)
def test_the_matrix_of_narrowing(key: str, header: str | None, status: int, seen: str | None) -> None:
    with shop.client(shop.make()) as http:
        for tenant in ("acme", "zeta"):
            made = http.post(
                "/things",
                json={"thing_id": tenant, "name": tenant},
                headers={"x-api-key": shop.ADMIN_KEY, "x-tenant-id": tenant},
            )
            assert made.status_code == 201
        headers = {"x-api-key": key} | ({} if header is None else {"x-tenant-id": header})
        answer = http.get("/things", headers=headers)
        assert answer.status_code == status
        if seen is not None:
            assert {each["tenant_id"] for each in answer.json()["items"]} == {seen}


def _two(http: TestClient) -> int:
    pairs = [(b"x-api-key", shop.BOTH_KEY.encode()), (b"x-tenant-id", b"acme"), (b"x-tenant-id", b"zeta")]
    return int(http.get("/things", headers=pairs).status_code)


def test_two_tenant_headers_are_rejected() -> None:
    with shop.client(shop.make()) as http:
        assert _two(http) == 400


def test_nothing_but_the_header_names_a_tenant() -> None:
    spoofs = {
        "x-tenant": "zeta",
        "x-forwarded-tenant": "zeta",
        "x-forwarded-host": "xn--mnchen-3ya.example",
        "x-forwarded-for": "127.0.0.1",
        "cookie": "x-tenant-id=zeta; tenant_id=zeta",
        "forwarded": "host=xn--mnchen-3ya.example",
    }
    with shop.client(shop.make(), key=shop.EDITOR_KEY, **spoofs) as http:
        sent = {"thing_id": "1", "name": "x", "tenant_id": "zeta"}
        made = http.post("/things?tenant_id=zeta&x-tenant-id=zeta", json=sent)
        assert made.status_code == 201
        assert made.json()["tenant_id"] == "acme"


def test_a_cursor_may_be_as_long_as_the_longest_key_makes_it() -> None:
    with shop.client(shop.make(), key=shop.EDITOR_KEY) as http:
        sizes = (10_923, 16_384, 16_385)
        answers = [http.get("/things", params={"cursor": "A" * size}) for size in sizes]
    # None of them is a signed cursor; the last one is too long to be decoded.
    assert [answer.status_code for answer in answers] == [400, 400, 422]


def test_a_cursor_of_one_tenant_is_rejected_in_another() -> None:
    with shop.client(shop.make(), key=shop.BOTH_KEY) as http:
        for number in range(3):
            sent = {"thing_id": str(number), "name": "x"}
            assert http.post("/things", json=sent, headers={"x-tenant-id": "acme"}).status_code == 201
        first = http.get("/things?limit=2", headers={"x-tenant-id": "acme"}).json()
        assert [each["thing_id"] for each in first["items"]] == ["0", "1"]
        more = {"limit": "2", "cursor": first["next_cursor"]}
        second = http.get("/things", params=more, headers={"x-tenant-id": "acme"}).json()
        assert [each["thing_id"] for each in second["items"]] == ["2"]
        assert second["next_cursor"] is None
        foreign = http.get("/things", params=more, headers={"x-tenant-id": "zeta"})
        assert foreign.status_code == 400
        assert foreign.json()["type"].endswith(":cursor-rejected")
