"""The API for editors and browsers: entity tags, cursors, problems, hosts, the site, inert markup."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest

from solotable.systems.browser.render import POLICY
from solotable.systems.cms.routes.site.pages import PublicPage
from solotable.systems.cms.theme.blocks import BLOCK_TYPES

from .api import GIF, OPERATIONS, Api, mark, problem, running

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'onmouseover='alert(1)",
    "</title></head><script>alert(1)</script>",
    "<!--<svg/onload=alert(1)>",
    "javascript:alert(1)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "]]><x/>",
    "\u2028\u2029\u202e<b>",
)
HTML = {"accept": "text/html"}
#: Names that the theme reads in blocks, in their links, pictures and entries.
NAMES = (
    *(
        "text",
        "title",
        "caption",
        "by",
        "label",
        "href",
        "url",
        "asset",
        "alt",
        "id",
        "items",
        "rows",
        "head",
    ),
    *("link", "buttons", "blocks", "columns", "right", "width", "height", "limit", "wide", "ordered"),
)
LISTS = ("text", "items", "rows", "blocks", "buttons")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for all tests here; each creates its own pages."""
    with running(tmp_path_factory.mktemp("pages")) as made:
        yield made


def create(api: Api, **draft: Any) -> dict[str, Any]:
    answer = api.ask("POST", "/content", "EDITOR", json={"status": "published", **draft})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_s0_19_an_update_needs_the_version_that_was_read(api: Api) -> None:
    made = api.ask("POST", "/content", "EDITOR", json={"title": "Tagged"})
    path, tag = made.headers["location"], made.headers["etag"]
    first = api.ask("PUT", path, "EDITOR", json={"title": "One"}, headers={"if-match": tag})
    assert (first.status_code, first.headers["etag"]) == (200, '"2"')
    lost = api.ask("PUT", path, "EDITOR", json={"title": "Two"}, headers={"if-match": tag})
    assert problem(lost, 412)["current_version"] == 2
    for stale in ({"if-match": tag}, {"if-match": 'W/"2"'}, {"if-match": '"other"'}):
        problem(api.ask("DELETE", path, "EDITOR", headers=stale), 412)
        problem(api.ask("POST", f"{path}/restore", "EDITOR", json={"version": 1}, headers=stale), 412)
    assert api.ask("GET", path, "EDITOR").json()["title"] == "One"
    assert (
        api.ask("PUT", path, "EDITOR", json={"title": "Three"}, headers={"if-match": "*"}).status_code == 200
    )


@pytest.mark.parametrize("kind", ["products", "context"])
def test_other_things_have_entity_tags_too(api: Api, kind: str) -> None:
    made = api.ask("POST", f"/{kind}", "EDITOR", json={"title": "Tagged"})
    path = f"/{kind}/{made.json()[kind.rstrip('s') + '_id']}"
    assert api.ask("PUT", path, "EDITOR", json={"title": "b"}, headers={"if-match": '"1"'}).status_code == 200
    problem(api.ask("PUT", path, "EDITOR", json={"title": "c"}, headers={"if-match": '"1"'}), 412)
    problem(api.ask("DELETE", path, "EDITOR", headers={"if-match": '"1"'}), 412)
    assert api.ask("DELETE", path, "EDITOR", headers={"if-match": '"2"'}).status_code == 204


def test_s0_19_versions_are_listed_compared_and_restored(api: Api) -> None:
    node = create(api, title="First", slug="/versions-1", blocks=[{"text": "one"}])["node_id"]
    api.ask("PUT", f"/content/{node}", "EDITOR", json={"title": "Second", "blocks": [{"text": "two"}]})
    listed = api.ask("GET", f"/content/{node}/versions", "EDITOR")
    assert [each["version"] for each in listed.json()["items"]] == [1]
    assert "one" not in listed.text
    difference = api.ask("GET", f"/content/{node}/diff", "EDITOR", params={"before": 1, "after": 2}).json()
    assert {each["field"] for each in difference["changes"]} == {"title", "blocks"}
    restored = api.ask("POST", f"/content/{node}/restore", "EDITOR", json={"version": 1}).json()
    assert (restored["title"], restored["version"], restored["restored_from"]) == ("First", 3, 1)
    problem(api.ask("GET", f"/content/{node}/versions/77", "EDITOR"), 404)


def test_s0_20_a_moved_page_redirects_and_its_old_path_can_be_given_up(api: Api) -> None:
    node = create(api, title="Moving", slug="/moving-a")["node_id"]
    for slug in ("/moving-b", "/moving-c"):
        api.ask("PUT", f"/content/{node}", "EDITOR", json={"slug": slug})
    for old in ("/moving-a", "/moving-b", "/MOVING-a/"):
        answer = api.ask("GET", old)
        assert (answer.status_code, answer.headers["location"]) == (301, "/moving-c")
    listed = api.ask("GET", "/content", "EDITOR", params={"type": "Redirect", "limit": 100}).json()["items"]
    assert {"path": "/moving-a", "to": "/moving-c"} in listed
    assert api.ask("DELETE", "/redirects", "EDITOR", params={"path": "/moving-a"}).status_code == 204
    problem(api.ask("GET", "/moving-a"), 404)


def test_s0_18_the_two_pages_of_every_site_can_be_neither_deleted_nor_moved(api: Api) -> None:
    routes = api.ask("GET", "/routes", "EDITOR", params={"limit": 100}).json()["items"]
    nodes = {each["slug"]: each["node_id"] for each in routes}
    for slug in ("/", "/contact"):
        moved = api.ask("PUT", f"/content/{nodes[slug]}", "GLOBAL_ADMIN", json={"slug": "/elsewhere"})
        assert 400 <= moved.status_code < 500
        deleted = api.ask("DELETE", f"/content/{nodes[slug]}", "GLOBAL_ADMIN")
        assert 400 <= deleted.status_code < 500
        assert api.ask("GET", slug).status_code == 200


def test_s0_22_a_taken_path_is_a_conflict_and_nothing_is_written(api: Api) -> None:
    create(api, title="Taken", slug="/taken")
    before = api.ask("GET", "/content", "EDITOR", params={"limit": 100}).json()["items"]
    found = problem(api.ask("POST", "/content", "EDITOR", json={"title": "Other", "slug": "/Taken"}), 409)
    assert found["detail"] == "The slug '/taken' is taken; choose another one."
    assert (found["field"], found["type"]) == ("slug", "urn:problem:solotable:already-exists")
    assert api.ask("GET", "/content", "EDITOR", params={"limit": 100}).json()["items"] == before
    problem(api.ask("POST", "/content", "EDITOR", json={"title": "x", "slug": "/users/me"}), 422)


def test_cursors_visit_every_item_once_and_the_last_page_has_none(api: Api) -> None:
    whole = api.ask("GET", "/content", "EDITOR", params={"limit": 100}).json()
    assert whole["next_cursor"] is None
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = api.ask("GET", "/content", "EDITOR", params={"limit": "2", **cursor}).json()
        seen += [each["node_id"] for each in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [each["node_id"] for each in whole["items"]]
    for forged in (seen[0], cursor["cursor"][:-1], "A" + cursor["cursor"], cursor["cursor"].swapcase()):
        problem(api.ask("GET", "/content", "EDITOR", params={"cursor": forged}), 400)
    problem(api.ask("GET", "/products", "EDITOR", params=cursor), 400)


def test_s0_16_no_list_carries_blocks_or_addresses_for_those_who_may_not_see_them(api: Api) -> None:
    listed = api.ask("GET", "/content", "EDITOR").json()["items"]
    assert all("blocks" not in each and "seo" not in each for each in listed)
    page = {"page_id": api.ids["acme"]["page_id"]}
    for role in (None, "RENDERER", "CUSTOMER"):
        comments = api.ask("GET", "/comments", role, params=page)
        assert comments.json()["items"]
        assert "author_email" not in comments.text
        assert {each["status"] for each in comments.json()["items"]} == {"approved"}
        problem(api.ask("GET", "/comments", role, params={**page, "status": "pending"}), 422)
    with_addresses = api.ask("GET", "/comments", "EDITOR", params=page).json()["items"]
    assert {each["status"] for each in with_addresses} == {"approved", "pending"}
    assert all(each["author_email"] for each in with_addresses)


def test_errors_are_problems(api: Api) -> None:
    problem(api.ask("GET", "/content/none", "EDITOR"), 404)
    problem(api.ask("GET", "/no/such/page"), 404)
    problem(api.ask("PATCH", "/content", "EDITOR"), 405)
    problem(api.ask("GET", "/content", "EDITOR", params={"limit": 0}), 422)
    problem(api.ask("POST", "/content", "EDITOR", json={"title": ""}), 422)
    problem(api.ask("POST", "/content", "EDITOR", json={"title": "x", "surprise": 1}), 422)
    problem(
        api.ask("POST", "/content", "EDITOR", content=b"{", headers={"content-type": "application/json"}), 422
    )
    problem(api.ask("GET", "/content"), 401)
    problem(api.ask("GET", "/leads", "EDITOR"), 403)
    named = api.ask("GET", "/content/none", "EDITOR", headers={"x-request-id": "mine-1"})
    assert problem(named, 404)["request_id"] == "mine-1"


def test_bodies_that_are_too_large_or_too_deep_are_refused(api: Api) -> None:
    large = json.dumps({"title": "x", "description": "y" * 1_000_001}).encode()
    json_type = {"content-type": "application/json"}
    problem(api.ask("POST", "/content", "EDITOR", content=large, headers=json_type), 413)
    problem(api.ask("POST", "/leads", content=large, headers=json_type), 413)

    def streamed() -> Iterator[bytes]:
        for start in range(0, len(large), 65_536):
            yield large[start : start + 65_536]

    problem(api.ask("POST", "/content", "EDITOR", content=streamed(), headers=json_type), 413)
    for depth in (40, 900, 100_000):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        answer = api.ask("PUT", "/settings", "TENANT_ADMIN", content=deep, headers=json_type)
        assert answer.status_code in (400, 413, 422), depth
        nested = b'{"title":"x","blocks":[' + deep + b"]}"
        answer = api.ask("POST", "/content", "EDITOR", content=nested, headers=json_type)
        assert answer.status_code in (201, 400, 413, 422), depth
    for odd in (b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"\\u0000":1}'):
        answer = api.ask("PUT", "/settings", "TENANT_ADMIN", content=odd, headers=json_type)
        assert answer.status_code < 500, odd


def test_s0_12_the_host_name_chooses_the_site(api: Api) -> None:
    def title(host: str) -> httpx2.Response:
        answer: httpx2.Response = api.client.get("/r0", headers={"host": host})
        return answer

    for host, tenant in (
        ("acme.example", "acme"),
        ("ZETA.example.:8080", "zeta"),
        ("zeta.example:443", "zeta"),
    ):
        assert title(host).json()["title"] == mark(tenant)
    problem(title("unknown.example"), 404)
    problem(title("bad host"), 400)
    problem(title("acme.example.evil.example"), 404)


def test_sitemap_and_robots_name_the_published_pages_of_the_site_only(api: Api) -> None:
    create(api, title="Ünder & <construction>", slug="/ünder-way")
    create(api, title="Hidden", slug="/hidden", status="draft")
    answer = api.ask("GET", "/sitemap.xml", headers={"x-forwarded-host": "evil.example"})
    assert answer.headers["content-type"].startswith("application/xml")
    names = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    found = {each.text for each in ElementTree.fromstring(answer.content).findall("s:url/s:loc", names)}  # noqa: S314 - our own answer
    base = "http://acme.example"
    assert {f"{base}/", f"{base}/contact", f"{base}/r0", f"{base}/%C3%BCnder-way"} <= found
    assert not any("hidden" in each or "zeta" in each for each in found if each)
    robots = api.ask("GET", "/robots.txt")
    assert f"Sitemap: {base}/sitemap.xml" in robots.text
    assert api.ask("GET", "/%C3%BCnder-way").status_code == 200


def test_head_is_get_without_the_body(api: Api) -> None:
    for path in ("/r0", "/q0", "/sitemap.xml", "/robots.txt", "/nothing-here"):
        for accept in ("text/html", "application/json"):
            got = api.ask("GET", path, headers={"accept": accept})
            head = api.ask("HEAD", path, headers={"accept": accept})
            assert head.status_code == got.status_code
            ignored = {"x-request-id"} | ({"content-length"} if got.status_code == 404 else set())
            shown = [{k: v for k, v in each.headers.items() if k not in ignored} for each in (head, got)]
            assert shown[0] == shown[1]
            assert head.content == b"" or head.status_code == 404  # which the server cuts
    tag = api.ask("HEAD", "/r0").headers["etag"]
    assert api.ask("HEAD", "/r0", headers={"if-none-match": tag}).status_code == 304


def test_what_is_not_published_is_not_there(api: Api) -> None:
    create(api, title="Draft", slug="/draft-only", status="draft")
    problem(api.ask("GET", "/draft-only"), 404)
    assert api.ask("GET", "/resolve", "RENDERER", params={"path": "/draft-only"}).status_code == 404
    shown = api.ask("GET", "/resolve", "RENDERER", params={"path": "/draft-only", "preview": "true"})
    assert shown.json()["title"] == "Draft"


def test_a_page_is_what_the_document_says(api: Api) -> None:
    body = api.ask("GET", "/r0").json()
    assert PublicPage.model_validate(body, strict=False).model_dump(mode="json") == body
    assert body["updated"].endswith("Z")


def test_a_page_that_the_browser_has_is_not_sent_again(api: Api) -> None:
    first = api.ask("GET", "/r0", headers=HTML)
    assert first.headers["content-type"].startswith("text/html")
    again = api.ask("GET", "/r0", headers={**HTML, "if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    as_json = api.ask("GET", "/r0", headers={"if-none-match": first.headers["etag"]})
    assert as_json.status_code == 200


class Elements(HTMLParser):
    """Collects the elements and attributes of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in ("href", "src", "action")}

    def handle_comment(self, data: str) -> None:
        self.tags.add("<!--")

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("number", range(len(PAYLOADS)))
def test_scripts_are_stored_as_they_are_and_served_inert(api: Api, number: int) -> None:
    payload = PAYLOADS[number]
    hostile = {**dict.fromkeys(NAMES, payload), payload: payload}
    lists = {name: [hostile] for name in LISTS}
    blocks = [
        {"type": payload, "text": payload, payload: payload, "items": [payload, {"text": payload}]},
        {"type": "code", "content": payload, "href": payload, "onclick": payload},
        *({"type": kind, **dict.fromkeys(NAMES, payload)} for kind in BLOCK_TYPES),
        *({"type": kind, **lists, "columns": [[hostile]]} for kind in BLOCK_TYPES),
    ]
    draft = {"title": payload, "slug": f"/inert-{number}", "description": payload, "blocks": blocks}
    node = create(api, **draft, seo={payload: payload})["node_id"]
    page = api.ask("GET", f"/inert-{number}", headers=HTML)
    seen = Elements()
    seen.feed(page.text)
    assert not seen.tags & {"script", "style", "img", "svg", "x", "b", "<!--", "iframe", "object", "base"}
    assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
    assert all(each.startswith(("/", "#")) and not each.startswith("//") for each in seen.targets)
    assert payload in seen.text
    assert page.headers["content-security-policy"] == POLICY
    assert payload not in page.text or "<" not in payload
    comment = {"page_id": node, "author_name": payload, "body": payload}
    said = api.ask("POST", "/comments", "RENDERER", json=comment)
    assert said.status_code == 201
    for answer in (said, api.ask("GET", f"/inert-{number}"), api.ask("GET", "/sitemap.xml")):
        assert answer.headers["content-type"].partition(";")[0] in ("application/json", "application/xml")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert api.ask("GET", f"/content/{node}", "EDITOR").json()["title"] == payload


def test_html_names_the_site_and_its_language_and_has_lists(api: Api) -> None:
    blocks = [{"type": "list", "items": ["<a>", {"text": "b"}, {"type": "list", "items": ["c"]}, 7]}]
    create(api, title="Lists", slug="/lists", blocks=blocks)
    page = api.ask("GET", "/lists", headers=HTML)
    assert '<html lang="en">' in page.text
    name = api.ask("GET", "/tenants/acme", "TENANT_ADMIN").json()["name"]
    assert f"<title>Lists – {name}</title>" in page.text
    assert "description" not in page.text
    prose = page.text.partition('<div class="prose">')[2].partition("</div>")[0].replace("\n", "")
    assert prose == "<ul><li>&lt;a&gt;</li><li>b</li><li><ul><li>c</li></ul></li></ul>"
    tag = page.headers["etag"]
    assert api.ask("GET", "/lists", headers={**HTML, "if-none-match": tag}).status_code == 304
    for language, shown in (("pt-BR", "pt-BR"), ('"><script>', "en"), (7, "en"), ("de", "de")):
        api.ask("PUT", "/settings", "TENANT_ADMIN", json={"language": language})
        page = api.ask("GET", "/lists", headers={**HTML, "if-none-match": tag})
        assert page.status_code == (304 if shown == "en" else 200)
        assert f'<html lang="{shown}">' in page.text or shown == "en"
    api.ask("PUT", "/settings", "TENANT_ADMIN", json={"language": None})


def test_files_are_served_as_the_registered_type_and_never_run(api: Api) -> None:
    for mime in ("image/svg+xml", "text/html", "application/javascript", "image/png\r\nx: y"):
        answer = api.ask("POST", "/assets", "EDITOR", json={"name": "x", "mime": mime, "size": 10})
        problem(answer, 422)
    announced = api.ask(
        "POST", "/assets", "EDITOR", json={"name": "x", "mime": "image/gif", "size": len(GIF)}
    )
    path = f"/assets/{announced.json()['id']}"
    problem(api.ask("GET", f"/public{path}"), 404)
    problem(api.ask("PUT", f"{path}/bytes", "EDITOR", content=b"<script>" + bytes(8)), 422)
    problem(api.ask("PUT", f"{path}/bytes", "EDITOR", content=GIF + b"x"), 422)
    assert api.ask("PUT", f"{path}/bytes", "EDITOR", content=GIF).json()["status"] == "stored"
    served = api.ask("GET", f"/public{path}")
    assert (served.content, served.headers["content-type"]) == (GIF, "image/gif")
    assert served.headers["x-content-type-options"] == "nosniff"


def test_s0_24_s0_25_the_trail_says_who_did_what_and_in_which_request(api: Api) -> None:
    trail = api.ask("GET", "/audit", "TENANT_ADMIN", params={"limit": 100}).json()["items"]
    made = next(each for each in trail if each["target"]["entity"] == "Product")
    assert made["actor"]["email"] == "tenant_admin@acme.example"
    assert made["target"]["title"] == mark("acme")
    assert made["request_id"]
    assert made["snapshot"]["title"] == mark("acme")


def test_every_answer_has_a_request_id_and_safe_headers(api: Api) -> None:
    for operation in OPERATIONS:
        if operation.method == "GET":
            answer = api.send(operation, "TENANT_ADMIN" if operation.roles else None)
            assert answer.headers["x-request-id"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "access-control-allow-origin" not in answer.headers
