"""Current roles over HTTP: the tenant's record narrows the roles that a token claims (0b, C0.7)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from fastapi.testclient import TestClient

from solotable._connect import connect
from solotable._expressions.ast import KeyTerm
from solotable._protocol.requests import Query
from solotable.systems.cms import Users, cms, current_roles
from solotable.systems.cms.app import create_app
from solotable.systems.cms.services.tenancy.identities import MAX_ADDRESSES
from solotable.web import ApiKey, Auth, JwtSettings

from .site import Site

SECRET = "a-secret-of-thirty-two-bytes-or-more"
ADMIN = {"x-api-key": "key-of-the-operator-0123456789"}


def token(
    subject: str,
    role: str,
    *tenants: str,
    email: str | None = "other@x.example",
    issuer: str = "https://id.example",
) -> dict[str, str]:
    claims = {"iss": issuer, "aud": "cms", "sub": subject, "exp": time.time() + 3600}
    about = {"roles": [role], "tenants": list(tenants or ("acme",)), "email": email}
    return {"authorization": f"Bearer {jwt.encode({**claims, **about}, SECRET, algorithm='HS256')}"}


@contextmanager
def opened(folder: Path, **options: Any) -> Iterator[TestClient]:
    """Start a CMS that accepts tokens of two issuers."""
    tokens = [
        JwtSettings(
            issuer=issuer,
            audience="cms",
            secrets=[SECRET],
            all_tenants_roles=frozenset({"GLOBAL_ADMIN"}),
        )
        for issuer in ("https://id.example", "https://pool.example")
    ]
    key = ApiKey.of(ADMIN["x-api-key"], id="ops", roles=["GLOBAL_ADMIN"], tenants=None, email="ops@x.example")
    url = f"sqlite:///{folder / 'cms.db'}?durability=relaxed"
    app = create_app(url, auth=Auth(api_keys=[key], jwt=tokens), **options)
    with TestClient(app) as client:
        for tenant in ("acme", "zeta"):
            client.post("/tenants", headers=ADMIN, json={"id": tenant, "name": tenant})
        yield client


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with opened(tmp_path) as found:
        yield found


def add(client: TestClient, tenant: str = "acme", **user: Any) -> str:
    made = client.post("/users", headers={**ADMIN, "x-tenant-id": tenant}, json=user)
    assert made.status_code == 201, made.text
    found: str = made.json()["user_id"]
    return found


def allow(client: TestClient, user_id: str, enabled: bool, tenant: str = "acme") -> None:
    body = {"enabled": enabled}
    path, head = f"/users/{user_id}/status", {**ADMIN, "x-tenant-id": tenant}
    assert client.put(path, headers=head, json=body).status_code == 200


def test_c0_7_the_token_of_a_disabled_user_is_rejected(client: TestClient) -> None:
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
    # API keys are configuration, and are not looked up.
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

    assert can("unknown@x.example", "TENANT_ADMIN") == (200, 200)
    assert can("ed@x.example", "TENANT_ADMIN") == (200, 403)
    assert can("ed@x.example", "EDITOR") == (200, 403)
    assert can("ad@x.example", "TENANT_ADMIN") == (200, 200)
    assert can("ad@x.example", "EDITOR") == (200, 403)
    assert can("ad@x.example", "CUSTOMER") == (403, 403)
    assert can("ad@x.example", "RENDERER") == (200, 403)
    assert can("cu@x.example", "TENANT_ADMIN") == (403, 403)
    assert can("cu@x.example", "EDITOR") == (403, 403)


def test_c0_7_each_of_several_tenants_checks_its_own_users(client: TestClient) -> None:
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
    # No header gives access to a tenant that has disabled the user.
    for tenant in (None, "zeta", "nova", "ACME", " acme"):
        assert asked("/tenants/acme", tenant) == 403, tenant
    for tenant in (None, "zeta"):
        named = {"x-tenant-id": tenant} if tenant else {}
        listed = client.get("/tenants", headers={**eve, **named}).json()["items"]
        assert [each["id"] for each in listed] == ["zeta"]


def test_a_tenant_cannot_disable_a_principal_of_all_tenants(client: TestClient) -> None:
    allow(client, add(client, email="root@x.example"), False)
    root = token("root", "GLOBAL_ADMIN", email="root@x.example")
    assert client.get("/leads", headers={**root, "x-tenant-id": "acme"}).status_code == 200


def test_a_token_cannot_change_its_own_users_record(client: TestClient) -> None:
    own = add(client, email="ad@x.example", role="TENANT_ADMIN")
    admin = token("sub-9", "TENANT_ADMIN", email="ad@x.example")
    for path, body in (
        (f"/users/{own}", {"role": "EDITOR"}),
        (f"/users/{own}/status", {"enabled": True}),
    ):
        assert client.put(path, headers=admin, json=body).status_code == 403
    assert client.delete(f"/users/{own}", headers=admin).status_code == 403


def reads(client: TestClient, who: dict[str, str], path: str = "/content", tenant: str | None = None) -> int:
    named = {"x-tenant-id": tenant} if tenant else {}
    return int(client.get(path, headers={**who, **named}).status_code)


#: Addresses that a token may have instead: none, another user's, look-alikes, invalid ones.
OTHERS = [
    None,
    "",
    "other@x.example",
    "\u0435ve@x.example",
    "eve@x.examp1e",
    "eve\u200b@x.example",
    "eve@x.example@y.example",
    "no address",
    "x" * 5000,
]


@pytest.mark.parametrize("email", OTHERS)
def test_c0_7_a_disabled_user_stays_disabled_without_the_address_or_with_another(
    client: TestClient, email: str | None
) -> None:
    user = add(client, email="eve@x.example")
    assert reads(client, token("sub-1", "EDITOR", email="EVE@x.example")) == 200
    allow(client, user, False)
    for path in ("/content", "/tenants", "/settings", "/comments?page_id=x"):
        assert reads(client, token("sub-1", "EDITOR", email=email), path) == 403
        assert reads(client, token("sub-1", "TENANT_ADMIN", email=email), path) == 403
    allow(client, user, True)
    assert reads(client, token("sub-1", "EDITOR", email=email)) == 200


@pytest.mark.parametrize("email", OTHERS)
def test_c0_7_a_demoted_user_stays_demoted_without_the_address_or_with_another(
    client: TestClient, email: str | None
) -> None:
    add(client, email="ed@x.example", role="EDITOR")
    assert reads(client, token("sub-1", "TENANT_ADMIN", email="ed@x.example"), "/leads") == 403
    assert reads(client, token("sub-1", "TENANT_ADMIN", email=email), "/leads") == 403
    assert reads(client, token("sub-1", "TENANT_ADMIN", email=email)) == 200


def test_c0_7_a_record_applies_to_a_subject_that_was_bound_before(client: TestClient) -> None:
    assert reads(client, token("sub-1", "EDITOR", email="eve@x.example")) == 200
    allow(client, add(client, email="eve@x.example"), False)
    for email in (None, "eve@x.example", "new@x.example"):
        assert reads(client, token("sub-1", "EDITOR", email=email)) == 403


def test_c0_7_an_address_that_came_first_does_not_hide_the_one_on_record(client: TestClient) -> None:
    user = add(client, email="eve@x.example")
    for email in ("alias@x.example", "eve@x.example", "alias@x.example"):
        assert reads(client, token("sub-1", "EDITOR", email=email)) == 200
    allow(client, user, False)
    for other in ("alias@x.example", None, "third@x.example"):
        assert reads(client, token("sub-1", "EDITOR", email=other)) == 403


@pytest.mark.parametrize("email", [None, "", "no address", "x" * 300])
def test_c0_7_a_token_without_a_subject_is_rejected_everywhere(client: TestClient, email: str | None) -> None:
    allow(client, add(client, email="eve@x.example"), False)
    for subject in ("never-seen", "s" * 5000):
        assert reads(client, token(subject, "EDITOR", email=email)) == 403
    # Unless an operator has created a user with its subject as the id.
    add(client, email="machine@x.example", user_id="never-seen")
    assert reads(client, token("never-seen", "EDITOR", email=email)) == 200


def test_c0_7_too_many_addresses_are_rejected_and_none_is_forgotten(client: TestClient) -> None:
    user = add(client, email="a0@x.example")
    for number in range(MAX_ADDRESSES):
        assert reads(client, token("sub-1", "EDITOR", email=f"a{number}@x.example")) == 200
    assert reads(client, token("sub-1", "EDITOR", email="one-more@x.example")) == 403
    assert reads(client, token("sub-1", "EDITOR", email="a3@x.example")) == 200
    allow(client, user, False)
    assert reads(client, token("sub-1", "EDITOR", email="a3@x.example")) == 403


def test_c0_7_a_tenant_admin_does_not_lock_out_a_peer_by_their_subject(client: TestClient) -> None:
    peer = token("peer", "TENANT_ADMIN", email="peer@x.example")
    assert reads(client, peer, "/leads") == 200
    mallory = token("mallory", "TENANT_ADMIN", email="mallory@x.example")
    for role in ("CUSTOMER", "EDITOR", "TENANT_ADMIN"):
        body = {"email": f"{role.lower()}@x.example", "user_id": "peer", "role": role}
        assert client.post("/users", headers=mallory, json=body).status_code == 403
    assert reads(client, peer, "/leads") == 200
    by_address = client.post("/users", headers=mallory, json={"email": "new@x.example"})
    assert by_address.status_code == 201
    # Subjects belong to one issuer, and records to one tenant.
    assert reads(client, token("peer", "EDITOR", email=None, issuer="https://pool.example")) == 403
    allow(client, add(client, "zeta", email="peer@x.example"), False, "zeta")
    both = token("peer", "TENANT_ADMIN", "acme", "zeta", email=None)
    assert reads(client, both, "/leads", "acme") == 200
    assert reads(client, both, "/leads", "zeta") == 403


def test_c0_7_a_token_without_the_address_cannot_change_its_own_users_record(client: TestClient) -> None:
    own = add(client, email="ad@x.example", role="TENANT_ADMIN")
    assert reads(client, token("sub-9", "TENANT_ADMIN", email="ad@x.example")) == 200
    for email in (None, "other@x.example"):
        admin = token("sub-9", "TENANT_ADMIN", email=email)
        for path, body in (
            (f"/users/{own}", {"role": "EDITOR"}),
            (f"/users/{own}/status", {"enabled": False}),
        ):
            assert client.put(path, headers=admin, json=body).status_code == 403
        assert client.delete(f"/users/{own}", headers=admin).status_code == 403


def test_c0_7_an_installation_can_reject_unknown_users(tmp_path: Path) -> None:
    with opened(tmp_path, unknown_users="reject") as client:
        add(client, email="eve@x.example")
        assert reads(client, token("sub-1", "EDITOR", email="eve@x.example")) == 200
        assert reads(client, token("sub-2", "EDITOR", email="stranger@x.example")) == 403
        assert reads(client, ADMIN, "/content", "acme") == 200


def test_c0_7_a_token_writes_nothing_where_no_tenant_is_open(client: TestClient, tmp_path: Path) -> None:
    user = add(client, email="eve@x.example")
    assert reads(client, token("sub-1", "EDITOR", email="eve@x.example")) == 200
    allow(client, user, False)
    client.put("/tenants/acme", headers=ADMIN, json={"status": "closed"})
    everywhere = ("acme", "nova", "zeta")
    for email in ("eve@x.example", None, "new@x.example"):
        assert reads(client, token("sub-1", "EDITOR", *everywhere, email=email), "/content", "acme") == 403
        reads(client, token("sub-1", "EDITOR", *everywhere, email=email), "/content", "nova")
    client.post("/tenants/acme/erasure", headers=ADMIN, json={"confirm": "acme"})
    reads(client, token("sub-1", "EDITOR", *everywhere, email="eve@x.example"), "/content", "acme")
    with connect(f"sqlite:///{tmp_path / 'cms.db'}", cms) as db:
        for tenant in ("acme", "nova"):
            query = Query(
                table=cms.name, key=(KeyTerm("PK", "=", ({"S": f"TENANT#{tenant}"},)),), consistent=True
            )
            assert not db.engine.handle(query).items


def test_c0_7_subjects_that_are_seen_at_once_are_bound_once(site: Site) -> None:
    async def many() -> list[frozenset[str] | None]:
        found = [
            current_roles(site.acme.store, "s", f"a{number % 4}@x.example", ["EDITOR"])
            for number in range(12)
        ]
        return await asyncio.gather(*found)

    assert site.run(many()) == [None] * 12
    (identity,) = [item for item in site.raw() if item["_type"]["S"] == "Identity"]
    assert len(identity["user_ids"]["L"]) == 4
    assert "x.example" not in repr(identity)


def test_c0_11_current_roles_are_two_reads_and_a_binding_is_stored(site: Site) -> None:
    users = Users(site.acme.store, manager_id="boss", roles=["TENANT_ADMIN"])
    site.run(users.create(email="ed@example.org"))
    site.sent()
    store = site.acme.store
    found = site.run(current_roles(store, "subject", "Ed@example.org", ["TENANT_ADMIN"]))
    # The first token writes the binding.
    assert site.sent() == ["GetItem", "PutItem", "BatchGetItem"]
    assert found == frozenset({"EDITOR", "RENDERER"})
    for email in ("Ed@example.org", None):
        assert site.run(current_roles(store, "subject", email, ["TENANT_ADMIN"])) == found
        assert site.sent() == ["GetItem", "BatchGetItem"]
    assert site.run(current_roles(store, "other", None, ["EDITOR"])) == frozenset()
    assert site.run(current_roles(store, "s" * 5000, "no address", ["EDITOR"])) == frozenset()
    assert site.run(current_roles(site.zeta.store, "subject", "ed@example.org", ["EDITOR"])) is None
