"""The limiter over HTTP for its suite: two namespaces full of marked data, and a key for every role.

Texts of a namespace hold its mark and its numbers are its own, so a leak is a mark where it must not be.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable.systems.limiter.http.app import create_app, do_jobs
from solotable.systems.limiter.http.bucket_feed import StreamSettings
from solotable.systems.limiter.http.chat import router
from solotable.web import ApiKey, Auth
from tests.systems import http
from tests.systems.http import Operation, operations

ROLES = ("GLOBAL_OPERATOR", "OPERATOR", "APP")
NAMESPACES = ("acme", "zeta")
EVERYWHERE = ("GLOBAL_OPERATOR",)
MODEL = "echo-1"
#: Numbers that are in a namespace's limits, leases and usage, and nowhere else.
NUMBERS = {"acme": 7_654_301, "zeta": 7_654_303}


def mark(namespace: str) -> str:
    """Return what every text of a namespace holds."""
    return f"marked-by-{namespace}-7f3a"


def marks(namespace: str) -> tuple[str, ...]:
    """Return what tells of a namespace, wherever it is."""
    return mark(namespace), str(NUMBERS[namespace])


def key(role: str, namespace: str) -> str:
    return f"key-of-{role}-{'all' if role in EVERYWHERE else namespace}-0123456789"


def headers(role: str | None, namespace: str) -> dict[str, str]:
    """Return the headers of somebody with a role in a namespace."""
    if role is None:
        return {}
    named = {"x-tenant-id": namespace} if role in EVERYWHERE else {}
    return {"x-api-key": key(role, namespace), **named}


def auth() -> Auth:
    keys: dict[str, ApiKey] = {}
    for namespace in NAMESPACES:
        for role in ROLES:
            held = None if role in EVERYWHERE else [namespace]
            secret = key(role, namespace)
            keys[secret] = ApiKey.of(secret, id=secret[7:-11], roles=[role], tenants=held)
    return Auth(api_keys=keys.values())


class Api(http.Api):
    """A running limiter."""

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        return headers(role, tenant)

    def is_about(self, name: str) -> bool:
        return name == "entity"

    def send(self, operation: Operation, role: str | None, **about: Any) -> httpx2.Response:
        if operation.path.endswith("/children"):
            known = about.get("ids") or self.ids[about.get("tenant", "acme")]
            about["ids"] = {**known, "entity": known["parent"]}
        return super().send(operation, role, **about)

    def acquired(self, entity: str, tenant: str = "acme", **consume: float) -> Any:
        """Take tokens, and return the answer's body."""
        body = {"entity": entity, "resource": MODEL, "consume": consume}
        answer = self.ask("POST", "/acquire", "APP", tenant, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def left(self, entity: str, tenant: str = "acme") -> dict[str, int]:
        """Return how many tokens an entity has."""
        path = f"/api/dashboard/availability/{entity}"
        answer = self.ask("GET", path, "APP", tenant, params={"resource": MODEL})
        found: dict[str, int] = answer.json()["available"]
        return found


def made_app(source: str, **options: Any) -> FastAPI:
    """Return the app with the demo's echo in it, and streams of events that end soon."""
    stream = options.pop("stream", StreamSettings(most_seconds=0.05))
    app = create_app(source, auth=auth(), cursor_secrets=[b"s" * 32], stream=stream, **options)
    app.include_router(router)
    return app


def fill(api: Api, namespace: str) -> None:
    """Make two of everything in a namespace, all marked, and note the names of the first."""
    text, number = mark(namespace), NUMBERS[namespace]
    plenty = [
        {"name": "rpm", "refill": 100_000, "period_seconds": 60},
        {"name": "tpm", "refill": number, "capacity": number * 10_000, "period_seconds": 60},
    ]

    def made(path: str, body: Any, method: str = "POST", **more: Any) -> Any:
        answer = api.ask(method, path, "OPERATOR", namespace, json=body, **more)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    registered = api.ask("POST", "/namespaces", "GLOBAL_OPERATOR", namespace, json={"name": namespace})
    assert registered.status_code == 201, registered.text
    made("/defaults/system", {"limits": plenty}, "PUT")
    lease = ""
    for count in range(2):
        org, user, resource = f"{namespace}-org{count}", f"{namespace}-user{count}", f"{namespace}-r{count}"
        made("/api/entities", {"entity_id": org, "name": text})
        for child in (user, f"{user}-b"):
            made("/api/entities", {"entity_id": child, "name": text, "parent": org, "cascade": True})
        made(f"/api/limits/{user}", {"limits": plenty}, "PUT")
        for on in (resource, f"{namespace}-r{1 - count}", MODEL):
            made(f"/api/limits/{user}", {"limits": plenty}, "PUT", params={"resource": on})
            body = {"entity": user, "resource": on, "consume": {"rpm": 1, "tpm": number}}
            lease = made("/acquire", body)["lease"]["lease_id"]
        made(f"/defaults/resources/{resource}", {"limits": plenty}, "PUT")
    api.ids[namespace] = {
        "any": f"{namespace}-user0",
        "entity": f"{namespace}-user0",
        "entity_id": f"{namespace}-new",
        "user": f"{namespace}-user0",
        "parent": f"{namespace}-org0",
        "resource": f"{namespace}-r0",
        "lease_id": lease,
        "name": namespace,
        "consume": "rpm:1",
    }


@contextmanager
def running(folder: Path, **options: Any) -> Iterator[Api]:
    """Start a limiter with both namespaces full."""
    url = f"sqlite:///{folder / 'limiter.db'}?durability=relaxed"
    app = made_app(url, **options)
    with TestClient(app, raise_server_exceptions=False) as client:
        api = Api(app, client, url)
        for namespace in NAMESPACES:
            fill(api, namespace)
        do_jobs(url)
        yield api


#: For parametrize: an app that is not started, its document and its routes.
UNSTARTED = made_app("sqlite://")
DOCUMENT = UNSTARTED.openapi()
OPERATIONS = operations(UNSTARTED)
