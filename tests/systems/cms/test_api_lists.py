"""Hard rule 2 (S0.16) for every route of the app: a list route reads with a projection.

A list route is one whose answer is a page of rows. A new one is found here by its answer alone; it fails if
it reads whole items, or if it cannot be asked with what `VARIANTS` and the document say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from solotable import AsyncDatabase
from solotable._protocol.engine import AsyncEngine
from solotable._protocol.requests import BatchGetItem, GetItem, Query, Request
from tests.systems.http import Operation

from .api import OPERATIONS, Api, running

#: Attributes that no list sends: long texts, and private data of visitors and administrators.
LONG = {"blocks", "seo", "description", "text", "data", "settings"}
#: Queries of a route that lead to other reads than the route alone does.
VARIANTS: dict[str, list[dict[str, str]]] = {
    "/content": [{}, {"status": "published"}, {"type": "Redirect"}],
    "/products": [{}, {"status": "active"}],
    "/signals": [{}, {"status": "new"}],
    "/comments": [{"page_id": ""}, {"status": "approved"}, {}],
}


def pages_of(operation: Operation) -> bool:
    """Return whether an operation returns pages of a list."""
    schema = operation.document.get("responses", {}).get("200", {}).get("content", {})
    found = schema.get("application/json", {}).get("schema", {})
    refs = [each.get("$ref", "") for each in (found, *found.get("anyOf", ()))]
    return any("/Page_" in ref for ref in refs)


LISTS = [each for each in OPERATIONS if each.method == "GET" and pages_of(each)]
ROLES = ("GLOBAL_ADMIN", "TENANT_ADMIN", "EDITOR", "RENDERER", None)
ASKED = [
    (each, query, role)
    for each in LISTS
    for query in VARIANTS.get(each.path, [{}])
    for role in ROLES
    if role in each.roles or each.public
]


def test_s0_16_every_list_route_is_found() -> None:
    assert len(LISTS) >= 20
    assert {each.path for each in LISTS} >= set(VARIANTS)
    paged = {each.path for each in OPERATIONS if "cursor" in each.parameters}
    assert paged == {each.path for each in LISTS}


class Noting:
    """An engine that records its requests."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self.sleep = engine.sleep
        self.requests: list[Request[Any]] = []

    async def handle(self, request: Request[Any], /) -> Any:
        self.requests.append(request)
        return await self._engine.handle(request)

    async def close(self) -> None:
        await self._engine.close()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS with two of everything."""
    with running(tmp_path_factory.mktemp("lists")) as made:
        database: AsyncDatabase = made.app.state.database
        made.app.state.database = AsyncDatabase(Noting(database.engine), database.scope)
        yield made
        made.app.state.database = database


@pytest.mark.parametrize(
    ("operation", "query", "role"), ASKED, ids=[" ".join(map(str, each)) for each in ASKED]
)
def test_s0_16_every_list_reads_with_a_projection(
    api: Api, operation: Operation, query: dict[str, str], role: str | None
) -> None:
    ids = api.ids["acme"]
    asked = {name: value or ids[name] for name, value in query.items()}
    noting: Noting = api.app.state.database.engine
    noting.requests.clear()
    path = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], operation.path)
    answer = api.ask("GET", path, role, params=asked)
    if operation.path == "/comments" and role in (None, "RENDERER") and "page_id" not in asked:
        assert answer.status_code == 422
        return
    assert answer.status_code == 200, answer.text
    assert answer.json()["items"], "a list without rows proves nothing"
    queries = [each for each in noting.requests if isinstance(each, Query)]
    assert queries
    for each in queries:
        assert each.projection, each
        assert not LONG & {path[0] for path in each.projection} or operation.path == "/audit/graph"
    assert not [each for each in noting.requests if isinstance(each, BatchGetItem)]
    # Whether the tenant is active; and for the graph its menus.
    assert sum(isinstance(each, GetItem) for each in noting.requests) <= 1 + (
        operation.path == "/audit/graph"
    )
    for name in LONG | {"tenant_id"}:
        assert all(name not in row for row in answer.json()["items"])
