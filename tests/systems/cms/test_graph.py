"""The graph of a site (B0.1): links between pages, broken links, orphans; its cost and its bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from solotable._protocol.requests import Query
from solotable.systems.cms import ContentPatch, GraphNode, Graphs
from solotable.systems.cms.formats.links import links_in, path_of

from .api import Api, mark, running
from .site import Site


def graph_of(site: Site, tenant: str = "acme", **options: Any) -> dict[str, GraphNode]:
    """Return the nodes of a tenant's site by their paths."""
    graphs = Graphs(site.db, site.of(tenant).store)
    graph = site.run(graphs.read(**options))
    found: dict[str, GraphNode] = {}
    cursor: str | None = None
    while True:
        page = site.run(graphs.nodes(graph, limit=3, cursor=cursor))
        found |= {each.slug: each for each in page}
        cursor = page.cursor
        if cursor is None:
            return found


def linking(*paths: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": [{"marks": [{"type": "link", "href": path}]}]} for path in paths]


def test_b0_1_pages_have_outgoing_and_incoming_links(site: Site) -> None:
    about = site.page("/about", blocks=linking("/team", "/About/#top", "/gone", "https://other.example/team"))
    team = site.page("/team", blocks=[{"buttonLink": "http://WWW.acme.example:80/about?x=1"}])
    draft = site.page("/draft", status="draft", blocks=linking("/lonely"))
    lonely = site.page("/lonely")
    nodes = graph_of(site)
    assert set(nodes) == {"/", "/contact", "/about", "/team", "/draft", "/lonely"}
    assert (nodes["/about"].links, nodes["/about"].broken) == ([team.node_id], ["/gone"])
    assert (nodes["/team"].links, nodes["/team"].incoming) == ([about.node_id], 1)
    # A link from a draft is shown, but visitors cannot follow it.
    assert nodes["/draft"].links == [lonely.node_id]
    assert (nodes["/lonely"].incoming, nodes["/lonely"].orphan) == (0, True)
    orphans = {slug for slug, node in nodes.items() if node.orphan}
    assert orphans == {"/lonely", "/draft"}
    assert nodes["/draft"].node_id == draft.node_id
    assert set(graph_of(site, "zeta")) == {"/", "/contact"}


def test_b0_1_former_paths_and_menus_count(site: Site) -> None:
    page = site.page("/old")
    site.page("/other", blocks=linking("/old"))
    site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/new")))
    site.run(site.settings().merge({"navLinks": [{"label": "Other", "href": "/other"}]}))
    nodes = graph_of(site)
    assert (nodes["/new"].incoming, nodes["/new"].orphan) == (1, False)
    assert nodes["/other"].broken == []
    assert nodes["/other"].orphan is False


def test_b0_1_a_graph_reads_the_index_and_each_page_once(site: Site) -> None:
    for number in range(12):
        site.page(f"/p{number}", blocks=linking("/"))
    site.sent()
    graphs = Graphs(site.db, site.acme.store)
    graph = site.run(graphs.read())
    queries = [each for each in site.journal.requests() if isinstance(each, Query)]
    assert all(each.projection for each in queries)
    of_pages = [each for each in queries if "blocks" in repr(each.projection)]
    assert len(of_pages) == 14
    assert sum(each.index == "GSI_Type" for each in queries) == 1
    assert len(queries) == 14 + 2  # the index of pages, and the redirects
    site.sent()
    site.run(graphs.nodes(graph, limit=50))
    assert site.sent() == ["Query"]


def test_b0_1_a_site_that_is_too_large_has_a_part_of_its_graph_and_no_orphans(site: Site) -> None:
    for number in range(5):
        site.page(f"/p{number}", blocks=linking("/nowhere"))
    nodes = graph_of(site, max_pages=3)
    assert len(nodes) == 7
    assert {node.orphan for node in nodes.values()} == {None}
    assert not any(node.broken for node in nodes.values())


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("/a", "/a"),
        ("/A B/?x#y", "/a-b"),
        ("https://a.org", "/"),
        ("https://A.org:8443/x/", "/x"),
        ("//a.org/x", "/x"),
        ("https://user:pass@a.org/x", "/x"),
        ("/%61bout", "/about"),
        ("https://b.org/x", None),
        ("https://a.org.evil.example/x", None),
        ("https://\u0430.org/x", None),
        ("//b.org/x", None),
        ("javascript:alert(1)", None),
        ("mailto:a@a.org", None),
        ("x", None),
        ("#top", None),
        ("", None),
        ("https://[::1/x", None),
        ("/" + "x" * 3000, None),
        ("/!!!", None),
    ],
)
def test_b0_1_a_link_is_a_path_of_the_site_or_nothing(link: str, path: str | None) -> None:
    assert path_of(link, "a.org") == path


def test_b0_1_links_are_found_at_any_depth_and_nowhere_else() -> None:
    deep: Any = {"href": "/deep"}
    for _ in range(30):
        deep = [{"children": deep}]
    blocks = [deep, {"text": "/no-link", "title": "/nor-this", "link": 7, "url": ["/list"]}, "/bare"]
    assert links_in(blocks) == {"/deep"}
    endless: Any = {"href": "/x"}
    for _ in range(5000):
        endless = [endless]
    assert links_in(endless) == set()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for all tests here."""
    with running(tmp_path_factory.mktemp("graph")) as made:
        yield made


def nodes_of(api: Api, tenant: str = "acme", role: str = "EDITOR") -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cursor: str | None = None
    while True:
        params = {"limit": "2", **({} if cursor is None else {"cursor": cursor})}
        answer = api.ask("GET", "/audit/graph", role, tenant, params=params)
        assert answer.status_code == 200, answer.text
        found |= {each["slug"]: each for each in answer.json()["items"]}
        cursor = answer.json()["next_cursor"]
        if cursor is None:
            return found


def test_b0_1_the_graph_follows_every_change(api: Api) -> None:
    assert nodes_of(api)["/r0"]["orphan"] is True
    home = nodes_of(api)["/"]
    path = f"/content/{home['node_id']}"
    assert api.ask("PUT", path, "EDITOR", json={"blocks": linking("/r0", "/q1")}).status_code == 200
    assert nodes_of(api)["/r0"]["orphan"] is False
    assert nodes_of(api)["/r1"]["incoming"] == 1  # /q1 redirects there
    assert api.ask("DELETE", "/redirects", "EDITOR", params={"path": "/q1"}).status_code == 204
    assert nodes_of(api)["/"]["broken"] == ["/q1"]
    version = {"version": 1}
    assert api.ask("POST", f"{path}/restore", "EDITOR", json=version).status_code == 200
    assert nodes_of(api)["/r0"]["orphan"] is True
    menus = {"footerLinks": [{"href": "/r0"}]}
    assert api.ask("PUT", "/settings", "TENANT_ADMIN", json=menus).status_code == 200
    assert nodes_of(api)["/r0"]["orphan"] is False


def test_b0_1_the_graph_of_another_tenant_is_not_there(api: Api) -> None:
    own = nodes_of(api, "zeta")
    assert mark("zeta") in repr(own)
    assert mark("acme") not in repr(own)
    first = api.ask("GET", "/audit/graph", "EDITOR", "acme", params={"limit": "1"}).json()["next_cursor"]
    stolen = api.ask("GET", "/audit/graph", "EDITOR", "zeta", params={"cursor": first})
    assert stolen.status_code == 400
    foreign = api.ask("GET", "/audit/graph", "EDITOR", "zeta", headers={"x-tenant-id": "acme"})
    assert foreign.status_code == 403
