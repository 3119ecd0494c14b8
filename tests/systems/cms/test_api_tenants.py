"""Tenants and their visitors over HTTP: closing, erasing, forms, messages, settings, invalid data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable import connect
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import GetItem, PutItem
from solotable.systems.cms import cms

from .api import GIF, Api, mark, problem, running


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for all tests here; each creates its own items."""
    with running(tmp_path_factory.mktemp("tenants")) as made:
        yield made


def test_a_suspended_tenant_is_not_served_and_a_closed_one_gives_its_domain_back(api: Api) -> None:
    draft = {"id": "shut", "name": "Shut", "domain": "shut.example"}
    assert api.ask("POST", "/tenants", "GLOBAL_ADMIN", json=draft).status_code == 201
    assert api.ask("GET", "/", tenant="shut").status_code == 200
    problem(api.ask("POST", "/tenants", "GLOBAL_ADMIN", json={**draft, "id": "other"}), 409)
    seen = api.ask("GET", "/tenants/shut", "GLOBAL_ADMIN").headers["etag"]
    change = {"status": "suspended"}
    stale = {"if-match": '"99"'}
    problem(api.ask("PUT", "/tenants/shut", "GLOBAL_ADMIN", json=change, headers=stale), 412)
    assert api.ask("GET", "/", tenant="shut").status_code == 200
    done = api.ask("PUT", "/tenants/shut", "GLOBAL_ADMIN", json=change, headers={"if-match": seen})
    assert (done.status_code, done.headers["etag"]) == (200, '"2"')
    problem(api.ask("PUT", "/tenants/shut", "GLOBAL_ADMIN", json=change, headers={"if-match": seen}), 412)
    problem(api.ask("GET", "/", tenant="shut"), 404)
    problem(api.ask("GET", "/content", "GLOBAL_ADMIN", "shut"), 403)
    assert api.ask("PUT", "/tenants/shut", "GLOBAL_ADMIN", json={"status": "closed"}).status_code == 200
    assert api.ask("POST", "/tenants", "GLOBAL_ADMIN", json={**draft, "id": "heir"}).status_code == 201
    assert api.ask("GET", "/", tenant="shut").status_code == 200


def test_c0_14_a_closed_tenant_is_erased_after_a_confirmation(api: Api) -> None:
    draft = {"id": "ended", "name": "Ended", "domain": "ended.example"}
    assert api.ask("POST", "/tenants", "GLOBAL_ADMIN", json=draft).status_code == 201
    page = api.ask("POST", "/content", "GLOBAL_ADMIN", "ended", json={"title": "x"})
    asset = {"name": "x", "mime": "image/gif", "size": len(GIF)}
    made = api.ask("POST", "/assets", "GLOBAL_ADMIN", "ended", json=asset).json()["id"]
    api.ask("PUT", f"/assets/{made}/bytes", "GLOBAL_ADMIN", "ended", content=GIF)
    path, confirmed = "/tenants/ended/erasure", {"confirm": "ended"}
    for role in ("TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER"):
        problem(api.ask("POST", path, role, json=confirmed), 403)
    problem(api.ask("POST", path, "GLOBAL_ADMIN", json=confirmed), 422)  # it is open
    assert api.ask("PUT", "/tenants/ended", "GLOBAL_ADMIN", json={"status": "closed"}).status_code == 200
    for wrong in ({"confirm": "acme"}, {"confirm": True}, {}):
        problem(api.ask("POST", path, "GLOBAL_ADMIN", json=wrong), 422)
    before = {each: api.ask("GET", each, "TENANT_ADMIN").text for each in ("/content", "/assets", "/users")}
    erased = api.ask("POST", path, "GLOBAL_ADMIN", json=confirmed)
    assert (erased.status_code, erased.json()["done"]) == (200, True)
    assert erased.json()["removed"] > 5
    problem(api.ask("GET", "/tenants/ended", "GLOBAL_ADMIN"), 404)
    problem(api.ask("GET", page.headers["location"], "GLOBAL_ADMIN", "ended"), 404)
    again = api.ask("POST", path, "GLOBAL_ADMIN", json=confirmed).json()
    assert again == {"tenant": "ended", "removed": 0, "done": True, "unknown": 0}
    assert {each: api.ask("GET", each, "TENANT_ADMIN").text for each in before} == before
    folder = Path(api.url.removeprefix("sqlite:///").partition("?")[0]).parent / "files"
    assert [each for each in folder.rglob("*") if "ended" in each.parts and each.is_file()] == []


def test_stored_data_that_does_not_fit_is_a_500_without_its_values(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    made = api.ask("POST", "/products", "EDITOR", json={"title": "Odd"}).json()["product_id"]
    key = {"PK": {"S": "TENANT#acme"}, "SK": {"S": f"PRODUCT#{made}"}}
    with connect(api.url, cms) as db:
        found = db.engine.handle(GetItem(table="Cms", key=key)).item
        assert found is not None
        (stored,) = decode_items([found])
        odd = PutItem(table="Cms", item={**stored, "currency": {"S": "needle-4711"}})
        db.engine.handle(odd)
        answer = problem(api.ask("GET", f"/products/{made}", "EDITOR"), 500)
        db.engine.handle(PutItem(table="Cms", item=stored))
    assert "needle" not in str(answer)
    assert answer["request_id"] in caplog.text
    assert "StoredDataError" in caplog.text
    refused = api.ask("POST", "/content", "EDITOR", json={"title": "x", "slug": "/users/needle"})
    assert "needle" not in problem(refused, 422)["detail"]


def test_c0_13_a_visitors_form_does_not_reveal_known_addresses(api: Api) -> None:
    known = api.ask("POST", "/leads", json={"email": "Customer@ACME.example", "name": "Mallory"})
    new = api.ask("POST", "/leads", json={"email": "new@acme.example"})
    assert (known.status_code, known.json()) == (new.status_code, new.json()) == (202, {"received": True})
    lead = api.ask("GET", f"/leads/{api.ids['acme']['lead_id']}", "TENANT_ADMIN").json()
    assert (lead["name"], lead["email"]) == (mark("acme"), "customer@acme.example")
    problem(
        api.ask("POST", "/leads", json={"email": "a@b.example"}, headers={"origin": "https://evil.example"}),
        403,
    )
    problem(api.ask("POST", "/leads", json={"email": "a@b.example"}, headers={"origin": "null"}), 403)
    own = api.ask("POST", "/leads", json={"email": "a@b.example"}, headers={"origin": "https://acme.example"})
    assert own.status_code == 202


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/leads", {"email": "o@x.example"}),
        ("/contact", {"email": "o@x.example", "message": "Hello"}),
        ("/consent", {"visitor_id": "v-o", "choices": {"a": True}, "policy_version": "1"}),
    ],
)
def test_c0_7_a_form_needs_the_origin_of_its_site(api: Api, path: str, body: dict[str, Any]) -> None:
    host = {"host": "acme.example"}
    problem(api.client.post(path, json=body, headers=host), 403)
    for origin in ("https://zeta.example", "https://evil.example", "null", "", "acme.example", "https://"):
        problem(api.client.post(path, json=body, headers={**host, "origin": origin}), 403)
    doubled = [("host", "acme.example"), *[("origin", "https://acme.example")] * 2]
    problem(api.client.post(path, json=body, headers=doubled), 403)
    # A credential does not make a request come from a page of the site.
    problem(
        api.client.post(path, json=body, headers={**host, "x-api-key": "key-of-GLOBAL_ADMIN-all-0123456789"}),
        403,
    )
    own = {**host, "origin": "https://acme.example:8443"}
    assert api.client.post(path, json=body, headers=own).is_success


def test_messages_are_stored_with_the_lead_and_erased_with_it(api: Api) -> None:
    for text in ("First question", "Second question"):
        answer = api.ask("POST", "/contact", json={"email": "writer@x.example", "message": text})
        assert answer.status_code == 202
    leads = api.ask("GET", "/leads", "TENANT_ADMIN", params={"limit": 100}).json()["items"]
    lead = next(each for each in leads if each["email"] == "writer@x.example")
    assert api.ask("GET", f"/leads/{lead['lead_id']}", "TENANT_ADMIN").json()["data"] == {}
    kept = api.ask("GET", f"/leads/{lead['lead_id']}/messages", "TENANT_ADMIN").json()["items"]
    assert sorted(each["body"] for each in kept) == ["First question", "Second question"]
    inbox = api.ask("GET", "/messages", "TENANT_ADMIN", params={"limit": 100})
    assert {"First question", "Second question"} <= {each["body"] for each in inbox.json()["items"]}
    assert "writer@x.example" not in inbox.text
    for path in ("/messages", f"/leads/{lead['lead_id']}/messages"):
        problem(api.ask("GET", path, "EDITOR"), 403)
    erased = api.ask("DELETE", f"/leads/{lead['lead_id']}", "TENANT_ADMIN").json()
    assert erased["removed"] == {"leads": 1, "messages": 2, "comments": 0}
    problem(api.ask("GET", f"/leads/{lead['lead_id']}", "TENANT_ADMIN"), 404)


def test_b0_3_settings_are_hidden_until_they_are_declared_public(api: Api) -> None:
    api.ask("PUT", "/settings", "TENANT_ADMIN", json={"pay": {"secret": "s3", "mode": "test"}})
    assert api.ask("GET", "/settings", "EDITOR").json()["pay"] == "********"
    declared = api.ask("PUT", "/settings/public", "TENANT_ADMIN", json={"paths": ["/pay/mode"]})
    assert declared.json() == api.ask("GET", "/settings/public", "EDITOR").json() == {"paths": ["/pay/mode"]}
    shown = api.ask("GET", "/settings", "EDITOR").json()
    assert shown["pay"] == {"secret": "********", "mode": "test"}
    api.ask("PUT", "/settings", "TENANT_ADMIN", json={"pay": {**shown["pay"], "mode": "live"}})
    secrets = api.ask("GET", "/settings/secrets", "TENANT_ADMIN")
    assert secrets.json()["pay"] == {"secret": "s3"}
    assert secrets.headers["cache-control"] == "no-store"
    tag = api.ask("GET", "/settings", "EDITOR").headers["etag"]
    api.ask("PUT", "/settings", "TENANT_ADMIN", json={"a": 1}, headers={"if-match": tag})
    problem(api.ask("PUT", "/settings", "TENANT_ADMIN", json={"a": 2}, headers={"if-match": tag}), 412)
    tag = declared.headers["etag"]
    stale = api.ask(
        "PUT", "/settings/public", "TENANT_ADMIN", json={"paths": ["/a"]}, headers={"if-match": tag}
    )
    problem(stale, 412)
    for wrong in ("pay", "", "/a~2", "/a" * 33, "/" + "x" * 300):
        refused = api.ask("PUT", "/settings/public", "TENANT_ADMIN", json={"paths": [wrong]})
        problem(refused, 422)
    problem(api.ask("PUT", "/settings/public", "TENANT_ADMIN", json={"paths": ["/a"] * 201}), 422)
    # The public settings of one tenant are hidden in another, and visitors see none of them.
    api.ask("PUT", "/settings", "TENANT_ADMIN", "zeta", json={"pay": {"mode": "live"}})
    assert api.ask("GET", "/settings", "EDITOR", "zeta").json()["pay"] == "********"
    for path in ("/settings", "/settings/public", "/settings/secrets"):
        assert api.ask("GET", path).status_code == 401
        assert api.ask("GET", path, "RENDERER").status_code == 403
