"""People over HTTP: a token says what somebody was, the tenant's record what they still are (0b, C0.7)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from fastapi.testclient import TestClient

from solotable.systems.cms import Users, standing
from solotable.systems.cms.app import create_app
from solotable.web import ApiKey, Auth, JwtSettings

from .site import Site

SECRET = "a-secret-of-thirty-two-bytes-or-more"
ADMIN = {"x-api-key": "key-of-the-operator-0123456789"}


def token(subject: str, role: str, *tenants: str, email: str | None = None) -> dict[str, str]:
    claims = {"iss": "https://id.example", "aud": "cms", "sub": subject, "exp": time.time() + 3600}
    about = {"roles": [role], "tenants": list(tenants or ("acme",)), "email": email}
    return {"authorization": f"Bearer {jwt.encode({**claims, **about}, SECRET, algorithm='HS256')}"}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    tokens = JwtSettings(
        issuer="https://id.example",
        audience="cms",
        secrets=[SECRET],
        all_tenants_roles=frozenset({"GLOBAL_ADMIN"}),
    )
    key = ApiKey.of(ADMIN["x-api-key"], id="ops", roles=["GLOBAL_ADMIN"], tenants=None, email="ops@x.example")
    app = create_app(
        f"sqlite:///{tmp_path / 'cms.db'}?durability=relaxed", auth=Auth(api_keys=[key], jwt=tokens)
    )
    with TestClient(app) as opened:
        for tenant in ("acme", "zeta"):
            opened.post("/tenants", headers=ADMIN, json={"id": tenant, "name": tenant})
        yield opened


def add(client: TestClient, tenant: str = "acme", **user: Any) -> str:
    made = client.post("/users", headers={**ADMIN, "x-tenant-id": tenant}, json=user)
    assert made.status_code == 201, made.text
    found: str = made.json()["user_id"]
    return found


def allow(client: TestClient, user_id: str, enabled: bool, tenant: str = "acme") -> None:
    body = {"enabled": enabled}
    path, head = f"/users/{user_id}/status", {**ADMIN, "x-tenant-id": tenant}
    assert client.put(path, headers=head, json=body).status_code == 200


def test_c0_7_who_is_disabled_is_refused_with_the_token_that_they_have(client: TestClient) -> None:
    by_address = add(client, email="eve@x.example")
    by_subject = add(client, email="bo@x.example", user_id="sub-2")
    eve = token("sub-1", "EDITOR", email="EVE@x.example")
    bo = token("sub-2", "EDITOR", email="renamed@x.example")
    for who, user_id in ((eve, by_address), (bo, by_subject)):
        assert client.get("/content", headers=who).status_code == 200
        allow(client, user_id, False)
        for path in ("/content", "/tenants", "/comments?page_id=x", "/settings"):
            refused = client.get(path, headers=who)
            assert (refused.status_code, refused.json()["type"]) == (403, "urn:problem:solotable:forbidden")
        assert client.post("/content", headers=who, json={"title": "x"}).status_code == 403
        allow(client, user_id, True)
        assert client.get("/content", headers=who).status_code == 200
    # A key is the operator's own, and is not looked up.
    own = f"/users/{add(client, email='ops@x.example')}/status"
    root = {**token("root", "GLOBAL_ADMIN"), "x-tenant-id": "acme"}
    assert client.put(own, headers=root, json={"enabled": False}).status_code == 200
    assert client.get("/content", headers={**ADMIN, "x-tenant-id": "acme"}).status_code == 200


def test_c0_7_a_stored_role_narrows_the_claim_and_never_widens_it(client: TestClient) -> None:
    add(client, email="ed@x.example", role="EDITOR")
    add(client, email="ad@x.example", role="TENANT_ADMIN")
    add(client, email="cu@x.example", role="CUSTOMER")

    def can(email: str, claimed: str) -> tuple[int, int]:
        who = token(f"{email}-{claimed}", claimed, email=email)
        return client.get("/content", headers=who).status_code, client.get("/leads", headers=who).status_code

    assert can("nobody@x.example", "TENANT_ADMIN") == (200, 200)
    assert can("ed@x.example", "TENANT_ADMIN") == (200, 403)
    assert can("ed@x.example", "EDITOR") == (200, 403)
    assert can("ad@x.example", "TENANT_ADMIN") == (200, 200)
    assert can("ad@x.example", "EDITOR") == (200, 403)
    assert can("ad@x.example", "CUSTOMER") == (403, 403)
    assert can("ad@x.example", "RENDERER") == (200, 403)
    assert can("cu@x.example", "TENANT_ADMIN") == (403, 403)
    assert can("cu@x.example", "EDITOR") == (403, 403)


def test_c0_7_of_several_tenants_each_judges_its_own(client: TestClient) -> None:
    user = add(client, email="eve@x.example", role="TENANT_ADMIN")
    add(client, "zeta", email="eve@x.example", role="EDITOR")
    eve = token("s", "TENANT_ADMIN", "acme", "zeta", email="eve@x.example")

    def asked(path: str, tenant: str | None) -> int:
        answer = client.get(path, headers={**eve, **({"x-tenant-id": tenant} if tenant else {})})
        return int(answer.status_code)

    assert (asked("/leads", "acme"), asked("/leads", "zeta")) == (200, 403)
    assert (asked("/content", "zeta"), asked("/content", None)) == (200, 400)
    assert len(client.get("/tenants", headers=eve).json()["items"]) == 2
    allow(client, user, False)
    assert (asked("/content", "acme"), asked("/content", "zeta")) == (403, 200)
    # No header makes somebody of a tenant again that keeps them out.
    for tenant in (None, "zeta", "nova", "ACME", " acme"):
        assert asked("/tenants/acme", tenant) == 403, tenant
    for tenant in (None, "zeta"):
        named = {"x-tenant-id": tenant} if tenant else {}
        listed = client.get("/tenants", headers={**eve, **named}).json()["items"]
        assert [each["id"] for each in listed] == ["zeta"]


def test_who_reaches_all_tenants_is_none_of_theirs_to_keep_out(client: TestClient) -> None:
    allow(client, add(client, email="root@x.example"), False)
    root = token("root", "GLOBAL_ADMIN", email="root@x.example")
    assert client.get("/leads", headers={**root, "x-tenant-id": "acme"}).status_code == 200


def test_nobody_with_a_token_changes_their_own_record(client: TestClient) -> None:
    own = add(client, email="ad@x.example", role="TENANT_ADMIN")
    admin = token("sub-9", "TENANT_ADMIN", email="ad@x.example")
    for path, body in (
        (f"/users/{own}", {"role": "EDITOR"}),
        (f"/users/{own}/status", {"enabled": True}),
    ):
        assert client.put(path, headers=admin, json=body).status_code == 403
    assert client.delete(f"/users/{own}", headers=admin).status_code == 403


def test_c0_11_where_somebody_stands_is_one_read_and_is_remembered(site: Site) -> None:
    users = Users(site.acme.store, manager_id="boss", roles=["TENANT_ADMIN"])
    site.run(users.create(email="ed@example.org"))
    site.sent()
    store = site.acme.store
    found = site.run(standing(store, "subject", "Ed@example.org", ["TENANT_ADMIN"]))
    assert site.sent() == ["BatchGetItem"]
    assert found == frozenset({"EDITOR", "RENDERER"})
    assert site.run(standing(store, "subject", None, ["EDITOR"])) is None
    assert site.run(standing(store, "s" * 5000, "no address", ["EDITOR"])) is None
    assert site.run(standing(site.zeta.store, "subject", "ed@example.org", ["EDITOR"])) is None
