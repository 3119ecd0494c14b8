"""A system over HTTP for its suite: the route table of its app, and requests made from its OpenAPI document.

So a route that is added is asked without being named in a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute


@dataclass(frozen=True, slots=True)
class Operation:
    """One route by its method and path, as the app and its OpenAPI document have it."""

    method: str
    path: str
    roles: tuple[str, ...]
    document: Mapping[str, Any] = field(compare=False, hash=False, repr=False)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def public(self) -> bool:
        return not self.roles

    @property
    def parameters(self) -> dict[str, Mapping[str, Any]]:
        return {each["name"]: each for each in self.document.get("parameters", ())}


def routes_of(app: FastAPI) -> list[APIRoute]:
    """Return every API route of an app, also those of the routers that it includes."""

    def flat(routes: list[BaseRoute]) -> Iterator[APIRoute]:
        for route in routes:
            if isinstance(route, APIRoute):
                yield route
            elif hasattr(route, "original_router"):  # newer FastAPIs keep included routers whole
                yield from flat(route.original_router.routes)

    return list(flat(app.router.routes))


def operations(app: FastAPI) -> list[Operation]:
    """Return the app's operations; a route that is not in the document fails here."""
    paths = app.openapi()["paths"]
    found = []
    for route in routes_of(app):
        for method in sorted(route.methods or ()):
            document = paths[re.sub(r":\w+\}", "}", route.path)][method.lower()]
            found.append(Operation(method, route.path, tuple(document["x-roles"]), document))
    return found


@dataclass
class Api:
    """A running system, and what each tenant has in it."""

    app: FastAPI
    client: TestClient
    url: str
    ids: dict[str, dict[str, str]] = field(default_factory=dict)

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        """Return the headers of somebody with a role in a tenant."""
        raise NotImplementedError

    def is_about(self, name: str) -> bool:
        """Whether an optional parameter of the query is always sent."""
        return False

    def ask(
        self, method: str, path: str, role: str | None = None, tenant: str = "acme", **more: Any
    ) -> httpx2.Response:
        """Send a request as somebody; `more` goes to the client, and its headers come on top."""
        given = {**self.headers_of(role, tenant), **more.pop("headers", {})}
        return self.client.request(method, path, headers=given, **more)

    def send(
        self,
        operation: Operation,
        role: str | None,
        *,
        tenant: str = "acme",
        ids: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Send an operation as its document describes it, about the things that `ids` names."""
        known = self.ids[tenant] if ids is None else ids
        path = re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: known.get(found[1], known["any"]), operation.path)
        params = {
            name: known.get(name, "1")
            for name, each in operation.parameters.items()
            if each["in"] == "query" and (each.get("required") or self.is_about(name))
        }
        return self.ask(
            operation.method,
            path,
            role,
            tenant,
            params={**params, **(query or {})},
            headers=dict(extra or {}),
            **self.body(operation, known),
        )

    def body(self, operation: Operation, known: Mapping[str, str]) -> dict[str, Any]:
        """Return what is sent: the example of the document, about the things that are known."""
        content = operation.document.get("requestBody", {}).get("content", {})
        if "application/json" not in content:
            return {}
        example = self.example(content["application/json"])
        return {"json": {name: known.get(name, value) for name, value in example.items()}}

    def example(self, content: Mapping[str, Any]) -> dict[str, Any]:
        if "example" in content:
            return dict(content["example"])
        name = content["schema"]["$ref"].rpartition("/")[2]
        return dict(self.app.openapi()["components"]["schemas"][name]["examples"][0])


def check_without_the_role(api: Api, operation: Operation, roles: Sequence[str]) -> None:
    """Fail unless everybody without the role is refused, and so is nobody at all."""
    answers = {role: api.send(operation, role) for role in roles if role not in operation.roles}
    assert {role: answer.status_code for role, answer in answers.items()} == dict.fromkeys(answers, 403)
    nobody = api.send(operation, None)
    assert nobody.status_code == 401
    assert "bearer" in nobody.headers["www-authenticate"].lower()
    assert api.send(operation, None, extra={"x-api-key": "wrong"}).status_code == 401


def check_with_the_role(api: Api, operation: Operation, tenant: str) -> None:
    """Fail unless everybody with the role is let in."""
    for role in operation.roles or (None,):
        answer = api.send(operation, role, tenant=tenant)
        assert answer.status_code not in (401, 403), (role, answer.text)
        assert answer.status_code < 500, (role, answer.text)
