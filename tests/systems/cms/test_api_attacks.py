"""What somebody who means harm tries on the API, beyond the tables of roles and tenants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from solotable.systems.cms.app import create_app
from solotable.web import ApiKey, Auth

from .api import GIF, Api, running


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for all tests here."""
    with running(tmp_path_factory.mktemp("attacks")) as made:
        yield made


def test_c0_7_a_role_for_all_tenants_opens_none_that_the_credential_does_not_reach() -> None:
    keys = [
        ApiKey.of("of-all-tenants-0123456789", id="all", roles=["GLOBAL_ADMIN"], tenants=None),
        ApiKey.of("of-acme-only-0123456789ab", id="one", roles=["GLOBAL_ADMIN"], tenants=["acme"]),
    ]
    everywhere, narrow = (
        {"x-api-key": "of-all-tenants-0123456789"},
        {"x-api-key": "of-acme-only-0123456789ab"},
    )
    with TestClient(create_app("sqlite://", auth=Auth(api_keys=keys))) as client:
        for tenant in ("acme", "zeta"):
            draft = {"id": tenant, "name": tenant}
            assert client.post("/tenants", headers=everywhere, json=draft).status_code == 201
        for change in ({"status": "closed"}, {"domain": "evil.example"}):
            assert client.put("/tenants/zeta", headers=narrow, json=change).status_code == 403
        made = client.post("/tenants", headers=narrow, json={"id": "mine", "name": "Mine"})
        assert made.status_code == 403
        assert client.get("/tenants/zeta", headers=everywhere).json()["status"] == "active"
        moved = client.put("/tenants/acme", headers=narrow, json={"domain": "acme.example"})
        assert moved.status_code == 200


def test_an_administrator_is_themselves_by_their_address(api: Api) -> None:
    own = api.ask("POST", "/users", "TENANT_ADMIN", json={"email": "Tenant_Admin@acme.example"}).json()
    path = f"/users/{own['user_id']}"
    assert api.ask("PUT", path, "TENANT_ADMIN", json={"role": "TENANT_ADMIN"}).status_code == 403
    assert api.ask("PUT", f"{path}/status", "TENANT_ADMIN", json={"enabled": False}).status_code == 403
    assert api.ask("DELETE", path, "TENANT_ADMIN").status_code == 403
    assert api.ask("PUT", path, "TENANT_ADMIN", json={"name": "Tia"}).json()["name"] == "Tia"
    assert api.ask("PUT", path, "GLOBAL_ADMIN", json={"role": "CUSTOMER"}).json()["role"] == "CUSTOMER"


def test_c0_13_a_stranger_does_not_learn_from_a_full_lead_that_it_is_known(api: Api) -> None:
    sent = {"data": {"first": "x" * 15_000}}
    assert api.ask("POST", "/leads", json={"email": "full@x.example", **sent}).status_code == 202
    answers = [
        api.ask("POST", "/leads", json={"email": f"{name}@x.example", "data": {"second": "x" * 15_000}})
        for name in ("full", "nobody")
    ]
    assert [(each.status_code, each.json()) for each in answers] == [(202, {"received": True})] * 2


def test_c0_13_an_address_is_no_visitors_id(api: Api) -> None:
    consent = {"visitor_id": "ann@x.example", "choices": {"a": True}, "policy_version": "1"}
    assert api.ask("POST", "/consent", json=consent).status_code == 422
    assert api.ask("POST", "/consent", json={**consent, "visitor_id": "v.1:2-3_4"}).status_code == 201


def test_bytes_that_are_served_for_ever_are_not_replaced(api: Api) -> None:
    path = f"/assets/{api.ids['acme']['asset_id']}"
    assert api.ask("PUT", f"{path}/bytes", "EDITOR", content=b"GIF89a" + b"x" * 10).status_code == 409
    assert api.ask("GET", f"/public{path}").content == GIF
