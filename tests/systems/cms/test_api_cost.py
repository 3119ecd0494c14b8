"""The cost of requests: the operations that an HTTP request sends to the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import httpx2
import pytest

from solotable.systems.cms.app import create_app

from .api import auth, headers
from .site import Site

Ask = Callable[[httpx2.AsyncClient], Awaitable[httpx2.Response]]


def sent(site: Site, ask: Ask) -> tuple[httpx2.Response, list[str]]:
    """Send a request twice; return the second response and its operations."""
    app = create_app(site.db, auth=auth())

    async def twice() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://www.acme.example") as client,
        ):
            await ask(client)
            site.sent()
            return await ask(client)

    answer = site.run(twice())
    return answer, site.sent()


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_s0_5_c0_11_a_page_is_two_reads_and_the_tenant_none(site: Site, accept: str) -> None:
    site.page("/about", "Over HTTP")
    answer, operations = sent(site, lambda client: client.get("/about", headers={"accept": accept}))
    assert answer.status_code == 200
    assert "Over HTTP" in answer.text
    assert answer.headers["content-type"].startswith(accept)
    assert operations == ["GetItem", "GetItem"]


def test_s0_20_a_redirect_is_two_reads_and_one_of_the_index(site: Site) -> None:
    page = site.page("/about")
    editor = headers("EDITOR", "acme")
    app = create_app(site.db, auth=auth())

    async def move() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://www.acme.example") as client,
        ):
            return await client.put(f"/content/{page.node_id}", json={"slug": "/team"}, headers=editor)

    assert site.run(move()).status_code == 200
    answer, operations = sent(site, lambda client: client.get("/about"))
    assert (answer.status_code, answer.headers["location"]) == (301, "/team")
    assert operations == ["GetItem", "GetItem", "Query"]


def test_s0_15_s0_16_c0_2_a_list_is_one_query_that_reads_no_blocks(site: Site) -> None:
    for count in range(10):
        site.page(f"/large-{count}", blocks=[{"text": "x" * 40_000}])
    editor = headers("EDITOR", "acme")
    answer, operations = sent(site, lambda client: client.get("/content?limit=50", headers=editor))
    assert len(answer.json()["items"]) == 12
    assert len(answer.content) < 5_000
    assert operations == ["Query"]
