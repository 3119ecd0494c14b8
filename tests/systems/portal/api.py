"""The portal over HTTP for its tests: a user for every role, some content, a key for each, the routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable import connect_async
from solotable.systems.portal.app import ALL_TABLES, PortalSettings, create_app
from solotable.systems.portal.identity.directory import InvitationDraft, LocalDirectory
from solotable.systems.portal.identity.tokens import issue_token, token_settings
from solotable.systems.portal.roles import ROLES
from solotable.web import ApiKey, Auth
from tests.systems import http
from tests.systems.http import Operation, operations

SECRET = "t" * 32
PASSWORD = "correct horse battery"
#: The cheapest parameter of scrypt: tests sign in often.
FAST = 2
#: Users without a key: the one that requests of the matrix are about, and one for single tests.
_OTHERS = (("Spare", "Viewer"), ("Guest", "Viewer"))
PDF = b"%PDF-1.7 of a test"


def key(role: str) -> str:
    return f"key-of-{role}-0123456789"


def auth() -> Auth:
    names = (*ROLES, "Disabled", "Stranger")
    keys = [ApiKey.of(key(each), id=each.lower(), roles=[], tenants=[]) for each in names]
    return Auth(api_keys=keys, jwt=token_settings(SECRET))


@dataclass
class Api(http.Api):
    """A running portal. The roles are Viewer, Contributor, Approver, Admin, and Disabled."""

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        return {} if role is None else {"x-api-key": key(role)}

    def is_about(self, name: str) -> bool:
        return name == "date"

    def as_user(self, user_id: str, method: str, path: str, **more: Any) -> httpx2.Response:
        """Send a request with a token of a user."""
        headers = {"authorization": f"Bearer {issue_token(SECRET, user_id)}", **more.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **more)

    def data(self, method: str, path: str, role: str | None = "Admin", **more: Any) -> Any:
        """Send a request that succeeds, and return its data."""
        answer = self.ask(method, path, role, **more)
        assert answer.is_success, answer.text
        return answer.json()["data"]

    def work(self) -> None:
        """Do the background work now."""
        workers = self.app.state.workers
        workers.announce()
        workers.index()
        workers.total()

    def draft(self, role: str = "Contributor", **fields: Any) -> Any:
        return self.data("POST", "/v1/content", role, json={"title": "Pricing 101", **fields})

    def approved(self, **fields: Any) -> Any:
        made = self.draft(**fields)
        return self.data("POST", f"/v1/content/{made['content_id']}/approve", "Approver")

    def body(self, operation: Operation, known: Mapping[str, str]) -> dict[str, Any]:
        sent = super().body(operation, known)
        if operation.path.endswith("/invite") and "json" in sent:
            sent["json"]["email"] = f"new-{len(self.ids)}-{id(sent)}@example.com"
        return sent


def fill(api: Api) -> None:
    """Create content with a file, a subscription and a message, and keep their ids."""
    viewer = api.data("POST", "/v1/subscriptions", "Viewer", json={"product_suite": "Compass"})
    approved = api.approved(product_suite="Compass", product_concept="Billing", tags=["pricing"])
    content = api.draft(product_suite="Compass")
    attach(api, content["content_id"])
    api.work()
    message = api.data("GET", "/v1/notifications", "Viewer")["items"][0]
    api.ids["acme"] = {
        "any": content["content_id"],
        "content_id": content["content_id"],
        "approved_id": approved["content_id"],
        "subscription_id": viewer["subscription_id"],
        "notification_id": message["notification_id"],
        "user_id": "spare",
        "date": message["created_at"][:10],
    }


def attach(api: Api, content_id: str, data: bytes = PDF, role: str = "Contributor") -> Any:
    """Upload a file by a presigned URL, and attach it."""
    draft = {
        "content_id": content_id,
        "file_name": "prices.pdf",
        "content_type": "application/pdf",
        "size_bytes": len(data),
    }
    ticket = api.data("POST", "/v1/uploads/presign", role, json=draft)
    stored = api.client.put(ticket["url"], content=data, headers=ticket["headers"])
    assert stored.status_code == 201, stored.text
    body = {"key": ticket["key"], "file_name": "prices.pdf", "content_type": "application/pdf"}
    return api.data("POST", f"/v1/content/{content_id}/attach", role, json=body)


async def add_users(url: str) -> None:
    async with connect_async(url, *ALL_TABLES) as db:
        directory = LocalDirectory(db)
        for name, role in (*((each, each) for each in ROLES), ("Disabled", "Admin"), *_OTHERS):
            draft = InvitationDraft.model_validate(
                {"email": f"{name.lower()}@example.com", "name": f"{name} Person", "role": role}
            )
            await directory.add(name.lower(), draft, password=PASSWORD, n=FAST)
        await directory.set_enabled("disabled", enabled=False, by="admin")


def make_app(folder: Path, **settings: Any) -> FastAPI:
    """Return the portal on a file with its users."""
    url = f"sqlite:///{folder / 'portal.db'}?durability=relaxed"
    asyncio.run(add_users(url))
    given = {"limiter_url": None, "workers": None, "storage": folder / "files", **settings}
    return create_app(url, auth=auth(), settings=PortalSettings(cursor_secrets=[b"s" * 32], **given))


@contextmanager
def running(folder: Path, *, filled: bool = True, **settings: Any) -> Iterator[Api]:
    """Start the portal; without limits and background work unless the settings say so."""
    app = make_app(folder, **settings)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        api = Api(app, client, "")
        if filled:
            fill(api)
        yield api


#: For parametrize: an app that is not started, its document and its routes.
UNSTARTED = create_app("sqlite://")
DOCUMENT = UNSTARTED.openapi()
OPERATIONS = operations(UNSTARTED)
