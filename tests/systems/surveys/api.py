"""The surveys over HTTP for their tests: two tenants with marked data, a key for every role, the routes.

Every text of a tenant holds its mark, so a leak is a mark where it must not be. The roles OWNER, EDITOR,
VIEWER and STRANGER are members with that role, or none, in the survey of their tenant.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from solotable.systems.surveys.app import create_app
from solotable.web import ApiKey, Auth
from tests.systems import http
from tests.systems.http import Operation, operations

MEMBERS = ("OWNER", "EDITOR", "VIEWER", "STRANGER")
ROLES = ("GLOBAL_ADMIN", "TENANT_ADMIN", *MEMBERS)
TENANTS = ("acme", "zeta")
GIF = b"GIF89a" + bytes(10)


def mark(tenant: str) -> str:
    """Return the mark that every text of a tenant holds."""
    return f"marked-by-{tenant}-7f3a"


def key(role: str, tenant: str) -> str:
    return f"key-of-{role}-{'all' if role == 'GLOBAL_ADMIN' else tenant}-0123456789"


def auth() -> Auth:
    keys: dict[str, ApiKey] = {}
    for tenant in TENANTS:
        for role in ROLES:
            held = None if role == "GLOBAL_ADMIN" else [tenant]
            granted = "MEMBER" if role in MEMBERS else role
            secret = key(role, tenant)
            keys[secret] = ApiKey.of(secret, id=role.lower(), roles=[granted], tenants=held)
        # A credential of the tenant for another system.
        secret = key("GUEST", tenant)
        keys[secret] = ApiKey.of(secret, id="guest", roles=["GUEST"], tenants=[tenant])
    return Auth(api_keys=keys.values())


class Api(http.Api):
    """Running surveys."""

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        if role is None:
            return {}
        named = {"x-tenant-id": tenant} if role == "GLOBAL_ADMIN" else {}
        return {"x-api-key": key(role, tenant), **named}

    def body(self, operation: Operation, known: Mapping[str, str]) -> dict[str, Any]:
        content = operation.document.get("requestBody", {}).get("content", {})
        if "application/octet-stream" in content:
            return {"content": GIF if "/images" in operation.path else b"text"}
        return super().body(operation, known)


def path_ids(known: Mapping[str, str], operation: Operation) -> dict[str, str]:
    """Return what is known, with the ids that the path of an operation means by `part_id` or `item_id`."""
    kinds = {"sections": "section_id", "elements": "element_id", "components": "component_id"}
    words = operation.path.split("/")
    kind = next((kinds[word] for word in words if word in kinds), "section_id")
    library = f"library_{kind}" if "library" in words else kind
    return {**known, "part_id": known[kind], "item_id": known[library]}


def fill(api: Api, tenant: str) -> None:
    """Create two of everything in a tenant, all marked, and keep the ids of the first."""
    text = mark(tenant)
    known: dict[str, str] = {"tenant": tenant, "kind": "Defect", "user_id": "ben", "name": "x"}

    def make(path: str, body: Any, role: str = "TENANT_ADMIN", method: str = "POST", **more: Any) -> Any:
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        answer = api.ask(method, path, role, tenant, **sent, **more)
        assert answer.is_success, (path, answer.text)
        return answer.json()

    make("/tenants", {"id": tenant, "name": text}, "GLOBAL_ADMIN")
    for count in range(2):
        section = make("/library/sections", {"name": text, "description": text})
        element = make("/library/elements", {"section_id": section["section_id"], "name": text})
        make("/library/components", {"element_id": element["element_id"], "name": text})
        other = make("/library/components", {"element_id": element["element_id"], "name": text})
        phrase = make(
            "/phrases",
            {"kind": "Defect", "name": text, "text": text, "element_ids": [element["element_id"]]},
        )
        data = GIF + f"{tenant}{count}".encode()
        draft = {
            "sha256": hashlib.sha256(data).hexdigest(),
            "name": text,
            "mime": "image/gif",
            "size": len(data),
        }
        image = make("/images", draft, "OWNER")["image"]
        survey = make("/surveys", {"title": text, "address": text}, "OWNER")
        base = f"/surveys/{survey['survey_id']}"
        make(f"{base}/access", {"editors": ["editor"], "viewers": ["viewer"]}, "OWNER", "PUT")
        part = make(f"{base}/sections", {"name": text, "notes": text, "photos": [image["image_id"]]}, "OWNER")
        of_part = make(f"{base}/elements", {"section_id": part["section_id"], "name": text}, "EDITOR")
        of_element = make(f"{base}/components", {"element_id": of_part["element_id"], "name": text}, "EDITOR")
        make(f"{base}/configs", {}, "OWNER")
        config = make(f"{base}/configs", {}, "OWNER")
        link = make(f"{base}/report/links", {}, "OWNER")
        document = make("/documents", text.encode(), "OWNER", params={"name": text})
        make("/members", {"user_id": "ben" if not count else "cy", "name": text})
        if count:
            continue
        known |= {
            "any": survey["survey_id"],
            "survey_id": survey["survey_id"],
            "section_id": part["section_id"],
            "element_id": of_part["element_id"],
            "component_id": of_element["component_id"],
            "config_id": config["config_id"],
            "library_section_id": section["section_id"],
            "library_element_id": element["element_id"],
            "library_component_id": other["component_id"],
            "phrase_id": phrase["phrase_id"],
            "image_id": image["image_id"],
            "document_id": document["document_id"],
            "token": link["path"].rpartition("/")[2],
        }
    api.ids[tenant] = known


@contextmanager
def running(folder: Path) -> Iterator[Api]:
    """Start the surveys with both tenants full."""
    url = f"sqlite:///{folder / 'surveys.db'}?durability=relaxed"
    app = create_app(url, auth=auth(), storage=folder / "files", cursor_secrets=[b"s" * 32])
    with TestClient(app, raise_server_exceptions=False) as client:
        api = Api(app, client, url)
        for tenant in TENANTS:
            fill(api, tenant)
        yield api


#: For parametrize: an app that is not started, its document and its routes.
UNSTARTED = create_app("sqlite://")
DOCUMENT = UNSTARTED.openapi()
OPERATIONS = operations(UNSTARTED)
