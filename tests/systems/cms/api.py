"""The CMS over HTTP for its tests: two tenants with marked data, a key for every role, the routes.

Every text of a tenant holds its mark, so a leak is a mark where it must not be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastapi.testclient import TestClient

from solotable.systems.cms.app import create_app
from solotable.systems.cms.demo import deliver_audit
from solotable.web import ApiKey, Auth
from tests.systems import http
from tests.systems.http import Operation, operations

ROLES = ("GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", "CUSTOMER")
TENANTS = ("acme", "zeta")
EVERYWHERE = ("GLOBAL_ADMIN", "RENDERER")
GIF = b"GIF89a" + bytes(10)


def mark(tenant: str) -> str:
    """Return the mark that every text of a tenant holds."""
    return f"marked-by-{tenant}-7f3a"


def key(role: str, tenant: str) -> str:
    return f"key-of-{role}-{'all' if role in EVERYWHERE else tenant}-0123456789"


def headers(role: str | None, tenant: str) -> dict[str, str]:
    """Return the headers of a user with a role in a tenant."""
    if role is None:
        return {}
    named = {"x-tenant-id": tenant} if role in EVERYWHERE else {}
    return {"x-api-key": key(role, tenant), **named}


def auth() -> Auth:
    keys: dict[str, ApiKey] = {}
    for tenant in TENANTS:
        for role in ROLES:
            held = None if role in EVERYWHERE else [tenant]
            secret = key(role, tenant)
            email = f"{role.lower()}@{tenant}.example"
            keys[secret] = ApiKey.of(secret, id=secret[7:-11], roles=[role], tenants=held, email=email)
    return Auth(api_keys=keys.values())


class Api(http.Api):
    """A running CMS; the host name is that of the tenant's site."""

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        site = f"{tenant}.example"
        return {"host": site, "origin": f"https://{site}", **headers(role, tenant)}

    def is_about(self, name: str) -> bool:
        return name == "page_id"

    def body(self, operation: Operation, known: Mapping[str, str]) -> dict[str, Any]:
        content = operation.document.get("requestBody", {}).get("content", {})
        if "application/octet-stream" in content:
            return {"content": GIF}
        return super().body(operation, known)


def fill(api: Api, tenant: str) -> None:
    """Create two of everything in a tenant, all marked, and return the ids of the first."""
    text, known = (
        mark(tenant),
        {"tenant": tenant, "path": "", "visitor_id": f"v-{tenant}", "before": "1", "after": "2"},
    )

    def make(
        path: str, body: Mapping[str, Any], role: str | None = "TENANT_ADMIN", method: str = "POST"
    ) -> Any:
        answer = api.ask(method, path, role, tenant, json=dict(body))
        assert answer.is_success, (path, answer.text)
        return answer.json()

    make("/tenants", {"id": tenant, "name": text, "domain": f"{tenant}.example"}, "GLOBAL_ADMIN")
    make("/settings", {"note": text, "mail": {"api_key": text}}, method="PUT")
    for count in range(2):
        page = make(
            "/content",
            {"title": text, "slug": f"/p{count}", "status": "published", "blocks": [{"text": text}]},
        )
        for slug in ("q", "r"):
            make(f"/content/{page['node_id']}", {"slug": f"/{slug}{count}"}, method="PUT")
        comment = {
            "page_id": page["node_id"],
            "author_name": text,
            "author_email": f"{text}@x.example",
            "body": text,
        }
        said: dict[str, str] = {}
        for _ in range(2):
            said = make("/comments", comment, "RENDERER")
            decision = {name: said[name] for name in ("page_id", "at", "comment_id")}
            make("/comments", {**decision, "status": "approved"}, method="PUT")
        make("/comments", comment, "RENDERER")
        # Responses repeat the path of the request, so slugs are not marked.
        goods = {"title": text, "slug": f"goods-{tenant}-{count}", "description": text, "status": "active"}
        product = make("/products", goods)
        context = make("/context", {"title": text, "text": text})
        signal = make("/signals", {"title": text, "source": text})
        lead = f"{text}{count}@x.example" if count else f"customer@{tenant}.example"
        make("/leads", {"email": lead, "name": text}, None)
        for _ in range(2):
            make("/contact", {"email": lead, "name": text, "message": text}, None)
        make("/consent", {"visitor_id": f"v-{tenant}", "choices": {"a": True}, "policy_version": text}, None)
        user = make("/users", {"email": f"{text}{count}@x.example", "name": text})
        make("/erasures", {"visitor_id": f"gone-{tenant}"})
        file = {"name": f"{text}.gif", "mime": "image/gif", "size": len(GIF)}
        asset, resource = make("/assets", file)["id"], make("/resources/upload", file)["id"]
        for path in (f"/assets/{asset}/bytes", f"/resources/{resource}/bytes"):
            assert api.ask("PUT", path, "TENANT_ADMIN", tenant, content=GIF).status_code == 200
        if count:
            continue
        known |= {
            "any": page["node_id"],
            "node_id": page["node_id"],
            "version": "1",
            "at": said["at"],
            "comment_id": said["comment_id"],
        }
        known |= {
            "page_id": page["node_id"],
            "product_id": product["product_id"],
            "slug": product["slug"],
            "context_id": context["context_id"],
        }
        known |= {"signal_id": signal["signal_id"], "user_id": user["user_id"], "path": "r0"}
        known |= {"asset_id": asset, "resource_id": resource}
    leads = api.ask("GET", "/leads", "TENANT_ADMIN", tenant).json()["items"]
    known["lead_id"] = next(each["lead_id"] for each in leads if each["email"].startswith("customer@"))
    api.ids[tenant] = known


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    """Check the form of a problem and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail", "instance", "request_id"} <= set(body)
    assert body["status"] == status
    assert body["request_id"] == answer.headers["x-request-id"]
    assert "Traceback" not in answer.text
    return body


@contextmanager
def running(folder: Path, *, limiter_url: str | None = None) -> Iterator[Api]:
    """Start a CMS with both tenants full; the forms of visitors have no limits by default."""
    url = f"sqlite:///{folder / 'cms.db'}?durability=relaxed"
    app = create_app(
        url, auth=auth(), storage=folder / "files", cursor_secrets=[b"s" * 32], limiter_url=limiter_url
    )
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        api = Api(app, client, url)
        for tenant in TENANTS:
            fill(api, tenant)
        deliver_audit(url)
        yield api


#: For parametrize: an app that is not started, its document and its routes.
UNSTARTED = create_app("sqlite://")
DOCUMENT = UNSTARTED.openapi()
OPERATIONS = operations(UNSTARTED)
