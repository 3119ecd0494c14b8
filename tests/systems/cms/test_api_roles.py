"""Roles: every route of the app with every role, and without a credential."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.systems.cms.app import create_app
from solotable.systems.cms.formats.slugs import RESERVED
from tests.systems.http import (
    Operation,
    check_with_the_role,
    check_without_the_role,
    operations,
    routes_of,
)

from .api import OPERATIONS, ROLES, Api, running

G = {"GLOBAL_ADMIN"}
A = G | {"TENANT_ADMIN"}
E = A | {"EDITOR"}
R = E | {"RENDERER"}
#: The endpoints of system 0 as in the requirements; RENDERER reads too.
WRITTEN = {
    "GET /content": R,
    "POST /content": E,
    "GET /content/{node_id}": R,
    "PUT /content/{node_id}": E,
    "GET /content/{node_id}/versions": E,
    "POST /content/{node_id}/restore": E,
    "GET /context": E,
    "POST /context": E,
    "GET /context/{context_id}": E,
    "PUT /context/{context_id}": E,
    "DELETE /context/{context_id}": E,
    "GET /assets": R,
    "POST /assets": E,
    "GET /resources/list": E,
    "GET /products": R,
    "POST /products": E,
    "GET /products/{product_id}": R,
    "PUT /products/{product_id}": E,
    "DELETE /products/{product_id}": E,
    "GET /settings": E,
    "GET /users": E,
    "PUT /settings": A,
    "GET /settings/secrets": A,
    "GET /audit": A,
    "GET /audit/graph": E,
    "GET /settings/public": E,
    "PUT /settings/public": A,
    "GET /public/products": set(),
    "GET /public/products/{slug}": set(),
    "GET /products/by-slug/{slug}": R,
    "GET /leads": A,
    "DELETE /leads/{lead_id}": A,
    "POST /resources/upload": A,
    "POST /signals": A,
    "GET /signals": A,
    "PUT /signals/{signal_id}": A,
    "POST /users": A,
    "PUT /users/{user_id}": A,
    "DELETE /users/{user_id}": A,
    "PUT /users/{user_id}/status": A,
    "POST /tenants": G,
    "POST /tenants/{tenant}/erasure": G,
    "GET /messages": A,
    "GET /leads/{lead_id}/messages": A,
    "GET /tenants": R,
    "GET /comments": set(),
    "POST /comments": R,
    "PUT /comments": E,
    "POST /leads": set(),
    "POST /contact": set(),
    "POST /consent": set(),
    "GET /resources/{resource_id}/download": A | {"CUSTOMER"},
    "GET /{path:page}": set(),
    "GET /sitemap.xml": set(),
    "GET /robots.txt": set(),
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for requests that are rejected."""
    with running(tmp_path_factory.mktemp("refused")) as made:
        yield made


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS that tests change."""
    with running(tmp_path_factory.mktemp("used")) as made:
        yield made


def test_the_written_endpoints_are_there_with_their_roles() -> None:
    found = {str(each): set(each.roles) for each in OPERATIONS}
    assert {name: found.get(name) for name in WRITTEN} == WRITTEN


def test_every_route_declares_its_roles_and_is_documented() -> None:
    app = create_app("sqlite://")
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert len(documented) == len(OPERATIONS)
    assert len(OPERATIONS) == sum(len(each.methods or ()) for each in routes_of(app))


def test_a_route_without_roles_is_found() -> None:
    app = create_app("sqlite://")

    @app.get("/forgotten")
    async def forgotten() -> None: ...

    with pytest.raises(KeyError, match="x-roles"):
        operations(app)


def test_no_page_can_lie_in_the_shadow_of_a_route() -> None:
    first = {each.path.split("/")[1] for each in OPERATIONS if each.method == "GET"}
    own = {each.replace(".", "-") for each in first if not each.startswith("{")}
    assert own - RESERVED == set()


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if not each.public], ids=str)
def test_a_caller_without_the_role_is_rejected(api: Api, operation: Operation) -> None:
    check_without_the_role(api, operation, ROLES)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_a_caller_with_the_role_is_accepted(used: Api, operation: Operation) -> None:
    check_with_the_role(used, operation, "zeta")


@pytest.mark.parametrize("operation", [each for each in OPERATIONS if each.method == "GET"], ids=str)
def test_reading_succeeds_with_the_role(api: Api, operation: Operation) -> None:
    role = next((role for role in ("TENANT_ADMIN", "GLOBAL_ADMIN") if role in operation.roles), None)
    answer = api.send(operation, role)
    assert answer.status_code == 200, answer.text


def test_a_caller_with_several_tenants_selects_one(api: Api) -> None:
    for role in ("GLOBAL_ADMIN", "RENDERER"):
        answer = api.client.get("/content", headers={"x-api-key": f"key-of-{role}-all-0123456789"})
        assert answer.status_code == 400
        assert "x-tenant-id" in answer.json()["detail"]


def test_a_tenant_that_is_not_there_is_not_begun_by_a_typing_error(api: Api) -> None:
    answer = api.ask(
        "POST", "/content", "GLOBAL_ADMIN", "acme", json={"title": "x"}, headers={"x-tenant-id": "acmee"}
    )
    assert answer.status_code == 404


def test_users_cannot_change_their_own_role_or_manage_a_higher_one(api: Api) -> None:
    ids = api.ids["acme"]
    as_editor = api.ask("PUT", f"/users/{ids['user_id']}", "EDITOR", json={"role": "TENANT_ADMIN"})
    assert as_editor.status_code == 403
    own = api.ask("POST", "/users", "TENANT_ADMIN", json={"email": "x@y.example", "role": "GLOBAL_ADMIN"})
    assert own.status_code == 422  # no role that can be given


def test_a_customer_downloads_resources_for_leads_and_none_for_purchases(used: Api) -> None:
    file = {"name": 'a"\r\n.gif', "mime": "image/gif", "size": 16, "gate": "purchase"}
    gated = used.ask("POST", "/resources/upload", "TENANT_ADMIN", json=file).json()["id"]
    used.ask("PUT", f"/resources/{gated}/bytes", "TENANT_ADMIN", content=b"GIF89a" + bytes(10))
    assert used.ask("GET", f"/resources/{gated}/download", "CUSTOMER").status_code == 403
    assert used.ask("GET", f"/resources/{gated}/download", "TENANT_ADMIN").status_code == 200
    free = used.ask("GET", f"/resources/{used.ids['acme']['resource_id']}/download", "CUSTOMER")
    assert free.status_code == 200
    assert free.headers["content-disposition"].startswith("attachment")
