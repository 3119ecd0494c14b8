"""Attacks on the API, beyond the tables of roles and tenants."""

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
        gone = client.post("/tenants/zeta/erasure", headers=narrow, json={"confirm": "zeta"})
        assert gone.status_code == 403
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
        for name in ("full", "unknown")
    ]
    assert [(each.status_code, each.json()) for each in answers] == [(202, {"received": True})] * 2


def test_c0_13_an_address_is_not_a_visitor_id(api: Api) -> None:
    consent = {"visitor_id": "ann@x.example", "choices": {"a": True}, "policy_version": "1"}
    assert api.ask("POST", "/consent", json=consent).status_code == 422
    assert api.ask("POST", "/consent", json={**consent, "visitor_id": "v.1:2-3_4"}).status_code == 201


@pytest.mark.parametrize("said", ["yes", "off", 1, 0, None])
def test_c0_4_a_consent_is_strictly_true_or_false(api: Api, said: object) -> None:
    consent = {"visitor_id": "strict", "choices": {"a": said}, "policy_version": "1"}
    assert api.ask("POST", "/consent", json=consent).status_code == 422


def test_bytes_that_are_served_for_ever_are_not_replaced(api: Api) -> None:
    path = f"/assets/{api.ids['acme']['asset_id']}"
    assert api.ask("PUT", f"{path}/bytes", "EDITOR", content=b"GIF89a" + b"x" * 10).status_code == 409
    assert api.ask("GET", f"/public{path}").content == GIF


def test_addresses_of_a_site_are_those_that_its_visitors_see() -> None:
    key = ApiKey.of("of-all-tenants-0123456789", id="all", roles=["GLOBAL_ADMIN"], tenants=None)
    app = create_app("sqlite://", auth=Auth(api_keys=[key]), trusted_hosts=["10.0.0.0/8"], hsts_seconds=60)
    forwarded = {"host": "127.0.0.1:8080", "x-forwarded-host": "acme.example", "x-forwarded-proto": "https"}
    with TestClient(app, client=("10.1.1.1", 5)) as client:
        draft = {"id": "acme", "name": "Acme", "domain": "acme.example"}
        client.post("/tenants", headers={"x-api-key": "of-all-tenants-0123456789"}, json=draft)
        answer = client.get("/robots.txt", headers=forwarded)
        assert "Sitemap: https://acme.example/sitemap.xml" in answer.text
        assert answer.headers["strict-transport-security"] == "max-age=60"
        assert "<loc>https://acme.example/</loc>" in client.get("/sitemap.xml", headers=forwarded).text
        at_port = client.get("/robots.txt", headers={**forwarded, "x-forwarded-host": "acme.example:8443"})
        assert "https://acme.example:8443/sitemap.xml" in at_port.text
        odd = client.get("/robots.txt", headers={**forwarded, "x-forwarded-proto": "javascript"})
        assert "Sitemap: http://acme.example/sitemap.xml" in odd.text
    with TestClient(app, client=("192.0.2.1", 5)) as client:
        client.post("/tenants", headers={"x-api-key": "of-all-tenants-0123456789"}, json=draft)
        said = client.get("/robots.txt", headers={**forwarded, "host": "acme.example"})
        assert "Sitemap: http://acme.example/sitemap.xml" in said.text
        assert "strict-transport-security" not in said.headers


def test_c0_14_the_source_of_a_lead_cannot_be_an_address(api: Api) -> None:
    sent = {"email": "src@x.example", "source": "mail to src@x.example"}
    assert api.ask("POST", "/leads", json=sent).status_code == 422
    assert api.ask("POST", "/leads", json={**sent, "source": "newsletter"}).status_code == 202


def test_s0_7_comments_are_shown_as_long_as_their_page_is(api: Api) -> None:
    page = api.ask("POST", "/content", "EDITOR", json={"title": "Talk", "status": "published"}).json()
    said = {"page_id": page["node_id"], "author_name": "Vi", "body": "Hello"}
    made = api.ask("POST", "/comments", "RENDERER", json=said).json()
    decision = {name: made[name] for name in ("page_id", "at", "comment_id")}
    api.ask("PUT", "/comments", "EDITOR", json={**decision, "status": "approved"})
    path, query = f"/content/{page['node_id']}", {"page_id": page["node_id"]}

    def shown(role: str | None = None) -> int:
        return len(api.ask("GET", "/comments", role, params=query).json()["items"])

    assert (shown(), shown("CUSTOMER"), shown("EDITOR")) == (1, 1, 1)
    api.ask("PUT", path, "EDITOR", json={"status": "draft"})
    assert (shown(), shown("CUSTOMER"), shown("EDITOR")) == (0, 0, 1)
    api.ask("PUT", path, "EDITOR", json={"status": "published"})
    assert shown() == 1
    api.ask("DELETE", path, "EDITOR")
    assert (shown(), shown("EDITOR")) == (0, 1)


def test_files_are_handed_out_piece_by_piece_with_their_length(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def whole(*_: object) -> bytes:
        raise AssertionError("a file was read whole")

    monkeypatch.setattr("solotable.systems.storage.FolderStorage.get", whole)
    ids = api.ids["acme"]
    asked = {
        f"/public/assets/{ids['asset_id']}": None,
        f"/resources/{ids['resource_id']}/download": "TENANT_ADMIN",
    }
    for path, role in asked.items():
        answer = api.ask("GET", path, role)
        assert (answer.status_code, answer.content) == (200, GIF)
        assert answer.headers["content-length"] == str(len(GIF))
        assert answer.headers["content-type"] == "image/gif"


def test_s0_20_a_redirect_does_not_reveal_the_path_of_a_draft(api: Api) -> None:
    made = {"title": "Plan", "slug": "/plan-a", "status": "published"}
    page = api.ask("POST", "/content", "EDITOR", json=made).json()
    hidden = {"slug": "/secret-merger", "status": "draft"}
    assert api.ask("PUT", f"/content/{page['node_id']}", "EDITOR", json=hidden).status_code == 200
    never = api.ask("GET", "/never-there")
    for method, path in (("GET", "/plan-a"), ("HEAD", "/plan-a"), ("GET", "/PLAN_A/"), ("GET", "/plan-a/")):
        answer = api.ask(method, path)
        assert answer.status_code == 404, path
        assert "location" not in answer.headers
        assert "secret" not in answer.text + str(answer.headers)
        assert method == "HEAD" or answer.json()["detail"] == never.json()["detail"]
    for role in ("RENDERER", "EDITOR"):
        asked = {"path": "/plan-a"}
        assert api.ask("GET", "/resolve", role, params=asked).status_code == 404
        shown = api.ask("GET", "/resolve", role, params={**asked, "preview": "true"})
        assert shown.json() == {"path": "/plan-a", "to": "/secret-merger"}
    for stranger in (None, "CUSTOMER"):
        shown = api.ask("GET", "/resolve", stranger, params={"path": "/plan-a", "preview": "true"})
        assert shown.status_code in (401, 403)
