"""Built sites over HTTP: hosts, paths, ETags, types, policies, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from solotable.systems.community.builds.serve import SitesByHost, SiteServer
from solotable.systems.community.entities.users import User

from .workshop import ADA, Workshop, add_post


async def _app_page(request: Request) -> PlainTextResponse:
    return PlainTextResponse("the app")


@dataclass
class Visitor:
    """Sends requests to an app that serves sites below nbhd.example."""

    workshop: Workshop
    app: Starlette

    @classmethod
    def of(cls, workshop: Workshop, **options: Any) -> Visitor:
        app = Starlette(routes=[Route("/{path:path}", _app_page)], middleware=[Middleware(SitesByHost)])
        app.state.sites = SiteServer(workshop.db, workshop.storage, domain="nbhd.example", **options)
        return cls(workshop, app)

    def get(self, path: str = "/", host: str = "ada.nbhd.example:8084", **options: Any) -> httpx2.Response:
        return self.send("GET", path, host, **options)

    def send(self, method: str, path: str, host: str, **options: Any) -> httpx2.Response:
        # In the loop of the harness, because the store's connections belong to it.
        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=self.app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
                headers = {"host": host, **options}
                return await client.request(method, path, headers=headers)

        return self.workshop.run(ask())


@pytest.fixture
def visitor(workshop: Workshop) -> Visitor:
    """A visitor of a site that is live."""
    workshop.build(workshop.site(config={"author": "Ada", "picture": "canal"}))
    return Visitor.of(workshop)


TYPES = {
    "/": "text/html; charset=utf-8",
    "/index.html": "text/html; charset=utf-8",
    "/posts/post-1": "text/html; charset=utf-8",
    "/posts/post-1.html": "text/html; charset=utf-8",
    "/site.css": "text/css; charset=utf-8",
    "/canal.svg": "image/svg+xml",
    "/feed.xml": "application/atom+xml; charset=utf-8",
    "/sitemap.xml": "application/xml; charset=utf-8",
    "/robots.txt": "text/plain; charset=utf-8",
}


def test_files_have_their_type_an_etag_and_a_policy_without_scripts(visitor: Visitor) -> None:
    for path, kind in TYPES.items():
        found = visitor.get(path)
        assert (found.status_code, found.headers["content-type"]) == (200, kind), path
        policy = found.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "script" not in policy
        assert "unsafe" not in policy
        assert found.headers["x-content-type-options"] == "nosniff"
        cached = visitor.get(path, **{"if-none-match": f'"other", W/{found.headers["etag"]}'})
        assert (cached.status_code, cached.content) == (304, b"")
        head = visitor.send("HEAD", path, "ada.nbhd.example")
        assert (head.headers["content-length"], head.content) == (str(len(found.content)), b"")


def test_other_paths_show_the_page_for_missing_ones(visitor: Visitor) -> None:
    for path in (
        "/missing",
        "/posts/",
        "/manifest.json",
        "/../manifest.json",
        "/%2e%2e/manifest.json",
        "/..%2f..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/posts/..%5c..%5cindex.html",
        "/index.html%00.css",
        "/404.html",
    ):
        found = visitor.get(path)
        assert found.status_code == 404, path
        assert b"<h1>Page not found</h1>" in found.content
        assert b'href="/site.css"' in found.content


def test_other_hosts_do_not_show_the_site(visitor: Visitor) -> None:
    assert visitor.get(host="eva.nbhd.example").text == "No site has this address.\n"
    for host in ("a.ada.nbhd.example", "nbhd.example", "adaxnbhd.example", "ada.nbhd.example.evil.org", ""):
        assert visitor.get(host=host).text == "the app", host


def test_hosts_are_compared_as_names(visitor: Visitor) -> None:
    assert visitor.get(host="ADA.nbhd.example.").status_code == 200


def test_sites_take_no_forms(visitor: Visitor) -> None:
    refused = visitor.send("POST", "/", "ada.nbhd.example")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")


def test_a_new_build_shows_and_keeps_the_etags_of_what_it_did_not_change(workshop: Workshop) -> None:
    site = workshop.site()
    workshop.build(site)
    visitor = Visitor.of(workshop, cache_seconds=0.0)
    before = {path: visitor.get(path).headers["etag"] for path in ("/", "/posts/post-0", "/site.css")}
    add_post(workshop.blocking, site, 2)
    workshop.pass_time(seconds=1)
    workshop.build(site)
    after = {path: visitor.get(path).headers["etag"] for path in before}
    assert [path for path in before if before[path] != after[path]] == ["/"]


def test_a_server_that_remembers_removed_files_looks_again(workshop: Workshop) -> None:
    site = workshop.site()
    workshop.build(site)
    visitor = Visitor.of(workshop, cache_seconds=3600.0)
    assert visitor.get().status_code == 200
    workshop.pass_time(seconds=1)
    workshop.build(site)
    workshop.pass_time(hours=1)
    assert workshop.work().removed_files
    assert visitor.get().status_code == 200


def test_sites_that_are_not_built_or_deleted_are_not_found(workshop: Workshop) -> None:
    site = workshop.site()
    visitor = Visitor.of(workshop, cache_seconds=0.0)
    assert visitor.get().status_code == 404
    workshop.build(site)
    assert visitor.get().status_code == 200
    workshop.blocking.delete(workshop.live(site))
    assert visitor.get().status_code == 404
    workshop.blocking.undelete(type(site), did=ADA, site_id=site.site_id)
    assert visitor.get().status_code == 200
    # So are those of an account that is being deleted (S2.22).
    workshop.blocking.delete(workshop.blocking.require(User, did=ADA))
    assert visitor.get().status_code == 404


def test_a_visit_reads_the_table_once_in_a_while(visitor: Visitor) -> None:
    visitor.workshop.sent()
    for _ in range(5):
        visitor.get("/")
        visitor.get("/site.css")
    # The site by its subdomain, and its owner.
    assert visitor.workshop.sent() == ["Query", "GetItem"]
