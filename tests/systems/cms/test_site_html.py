"""The site in HTML: theme, menus, errors, previews, schedules, and the contact form without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from solotable.systems.browser.render import POLICY
from solotable.systems.cms.app import create_app
from solotable.systems.cms.theme.blocks import BLOCK_TYPES, blocks_of
from solotable.systems.cms.theme.brand import brand_css, contrast
from solotable.systems.cms.theme.words import Words, words_of
from solotable.systems.limiter import Limit

from .api import Api, auth, mark, problem

HTML = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class HandClock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.at = NOON

    def __call__(self) -> datetime:
        return self.at


CLOCK = HandClock()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS with two empty tenants, a clock to set, and small limits of visitors' forms."""
    folder = tmp_path_factory.mktemp("site")
    url = f"sqlite:///{folder / 'cms.db'}?durability=relaxed"
    limits = [Limit.per_hour("contact", 25), Limit.per_hour("mails", 3)]
    app = create_app(
        url,
        auth=auth(),
        storage=folder / "files",
        cursor_secrets=[b"s" * 32],
        visitor_limits=limits,
        now=CLOCK,
    )
    with TestClient(app, follow_redirects=False, raise_server_exceptions=False) as client:
        made = Api(app, client, url)
        for tenant in ("acme", "zeta"):
            body = {"id": tenant, "name": mark(tenant), "domain": f"{tenant}.example"}
            assert made.ask("POST", "/tenants", "GLOBAL_ADMIN", tenant, json=body).is_success
        yield made


def create(api: Api, **draft: Any) -> dict[str, Any]:
    answer = api.ask("POST", "/content", "EDITOR", json={"status": "published", **draft})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def settings(api: Api, **patch: Any) -> httpx2.Response:
    answer: httpx2.Response = api.ask("PUT", "/settings", "TENANT_ADMIN", json=patch)
    return answer


def send(api: Api, **fields: str) -> httpx2.Response:
    given = {"name": "", "email": "", "message": "", "website": "", **fields}
    answer: httpx2.Response = api.ask("POST", "/contact", data=given, headers=HTML)
    return answer


def messages(api: Api) -> list[str]:
    listed = api.ask("GET", "/messages", "TENANT_ADMIN", params={"limit": 100}).json()["items"]
    return [each["body"] for each in listed]


def test_every_page_has_the_theme_the_menus_and_a_strict_policy(api: Api) -> None:
    page = api.ask("GET", "/", headers=HTML)
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["referrer-policy"] == "same-origin"
    assert f'<a class="logo" href="/">{mark("acme")}</a>' in page.text
    assert '<a href="/contact">Contact</a>' in page.text
    assert page.text.count("<h1>") == 1
    assert not re.search(r"<script| style=|://", page.text)
    for url in re.findall(r'<link rel="(?:stylesheet|icon)" href="([^"]+)"', page.text):
        file = api.ask("GET", url)
        assert file.status_code == 200
        assert "immutable" in file.headers["cache-control"]
    assert len(api.ask("GET", re.findall(r'stylesheet" href="([^"]+)"', page.text)[0]).content) < 12_000


def test_menus_and_details_come_from_the_settings(api: Api) -> None:
    create(api, title="Team", slug="/team/people")
    menu = [
        {"label": "Team <b>", "href": "/team"},
        {"label": "Mail", "href": "mailto:a@b.example"},
        {"label": "Evil", "href": "javascript:alert(1)"},
        {"label": "Other host", "href": "//evil.example"},
        {"href": "/no-label"},
        "text",
    ]
    changed = settings(
        api, navLinks=menu, footerLinks=[{"label": "Privacy", "url": "/privacy"}], site={"brand": "#1F6F5C"}
    )
    assert changed.status_code == 200, changed.text
    page = api.ask("GET", "/team/people", headers=HTML)
    assert '<a href="/team" aria-current="true">Team &lt;b&gt;</a>' in page.text
    assert '<a href="mailto:a@b.example">Mail</a>' in page.text
    assert "Evil" not in page.text
    assert "Other host" not in page.text
    assert '<li><a href="/privacy">Privacy</a></li>' in page.text
    brand = api.ask("GET", "/public/theme/brand/1F6F5C.css")
    assert brand.headers["content-type"].startswith("text/css")
    assert "/public/theme/brand/1F6F5C.css" in page.text
    for wrong in ("1F6F5", "red", "1F6F5C;}", "..%2Ftheme"):
        assert api.ask("GET", f"/public/theme/brand/{wrong}.css").status_code == 404
    # The other site has none of it.
    other = api.ask("GET", "/", None, "zeta", headers=HTML)
    assert "Privacy" not in other.text
    assert "brand" not in other.text
    for name in ("navLinks", "footerLinks", "site"):
        settings(api, **{name: None})


@pytest.mark.parametrize(
    "details",
    [{"brand": "red"}, {"brand": "#12345"}, {"color": "#123456"}, {"hours": [{"label": "x"}]}, "text"],
)
def test_details_that_the_theme_cannot_show_are_rejected(api: Api, details: Any) -> None:
    found = problem(settings(api, site=details), 422)
    assert "SiteSettings" in found["detail"]


@pytest.mark.parametrize("colour", ["#9c3f24", "#ffff00", "#000000", "#ffffff", "#0000ff", "#808080"])
def test_every_brand_colour_is_readable_in_both_schemes(colour: str) -> None:
    values = dict(re.findall(r"--([a-z-]+):(#[0-9a-f]{6})", brand_css(colour)))
    assert min(contrast(values["brand"], each) for each in ("#fdfbf8", "#f5f0e9")) >= 4.5
    assert min(contrast(values["brand-dark"], each) for each in ("#181513", "#221e1a")) >= 4.5
    assert contrast(values["brand"], values["on-brand"]) >= 4.5
    assert contrast(values["brand-dark"], values["on-brand-dark"]) >= 4.5


def test_the_words_of_a_page_have_its_language(api: Api) -> None:
    settings(
        api, language="de-AT", words={"send": "Ab damit", "sent_to": "{email.__class__}", "nothing": "x"}
    )
    page = api.ask("GET", "/contact", headers=HTML).text
    assert '<html lang="de-AT">' in page
    assert "Zum Inhalt" in page
    assert "Ab damit" in page
    assert (
        words_of("de", {"sent_to": "{email.__class__}"}).fill("sent_to", email="a") == "Wir antworten an a."
    )
    assert (Words("es").day(NOON).text, Words("pt").day(NOON).text) == (
        "20 de noviembre de 2026",
        "2026-11-20",
    )
    settings(api, language=None, words=None)


def test_blocks_render_images_lists_links_and_tables(api: Api) -> None:
    blocks = [
        {"type": "image", "asset": "01JD0QK7", "alt": 'A "mug"', "caption": "Ours", "width": 8, "height": 6},
        {"type": "image", "asset": "../../etc", "alt": "no"},
        {"type": "text", "text": ["See ", {"text": "the shop", "href": "/shop", "strong": True}, "."]},
        {"type": "text", "text": [{"text": "bad", "href": "data:text/html,x"}]},
        {"type": "table", "head": ["Size", "Price"], "rows": [["Small", 3], ["Large", 4.5]], "right": [1]},
        {"type": "quote", "text": "Good.", "by": "Ann"},
        {"type": "later", "text": "Unknown types show their text."},
    ]
    create(api, title="Blocks", slug="/blocks", blocks=blocks)
    page = api.ask("GET", "/blocks", headers=HTML).text
    image = '<img src="/public/assets/01JD0QK7" alt="A &#34;mug&#34;" width="8" height="6" loading="lazy">'
    assert f"<figure>{image}<figcaption>Ours</figcaption></figure>" in page
    assert "etc" not in page
    assert '<p>See <a href="/shop"><strong>the shop</strong></a>.</p>' in page
    assert "<p>bad</p>" in page
    assert '<th scope="row">Large</th><td class="r">4.5</td>' in page
    assert "<blockquote><p>Good.</p><footer>Ann</footer></blockquote>" in page
    assert "<p>Unknown types show their text.</p>" in page


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, [[]], [{}], [None], [["x"]], {"text": 1}, True])
def test_no_stored_form_of_a_block_breaks_a_page(value: Any) -> None:
    names = (
        "text",
        "title",
        "items",
        "rows",
        "head",
        "columns",
        "blocks",
        "buttons",
        "link",
        "asset",
        "right",
    )
    for kind in (*BLOCK_TYPES, value):
        blocks_of([{"type": kind, **dict.fromkeys((*names, "limit", "id"), value)}, value])
    blocks_of(value)


def test_deep_blocks_end_at_a_depth() -> None:
    tree: dict[str, Any] = {"type": "section", "blocks": [{"text": "deep"}]}
    for _ in range(200):
        tree = {"type": "section", "blocks": [tree], "columns": [[tree]]}
    assert "deep" not in repr(blocks_of([tree]))


def test_errors_are_pages_for_browsers_and_problems_for_programs(api: Api) -> None:
    missing = api.ask("GET", "/nothing", headers=HTML)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert missing.headers["content-security-policy"] == POLICY
    assert missing.headers["cache-control"] == "no-store"
    assert "This page does not exist" in missing.text
    assert '<a class="btn primary" href="/">' in missing.text
    problem(api.ask("GET", "/nothing"), 404)
    problem(api.ask("GET", "/nothing", headers={"accept": "application/json, text/html;q=0.5"}), 404)
    unknown = api.client.get("/", headers={"host": "unknown.example", **HTML})
    assert (unknown.status_code, "This site is closed" in unknown.text) == (404, True)
    assert "btn" not in unknown.text
    refused = api.ask("GET", "/content", headers=HTML)
    assert refused.status_code == 401


def test_a_message_is_stored_and_the_page_names_the_address_once(api: Api) -> None:
    sent = send(api, name="Ann", email=" Ann@Example.org ", message="Hello <b>\r\nthere")
    assert (sent.status_code, sent.headers["location"]) == (303, "/contact?sent=1")
    assert "example" not in sent.headers["location"]
    assert "httponly" in sent.headers["set-cookie"].lower()
    assert messages(api)[0] == "Hello <b>\nthere"
    page = api.ask("GET", "/contact?sent=1", headers=HTML)
    assert 'role="status"' in page.text
    assert "We will answer to Ann@Example.org." in page.text
    assert page.headers["cache-control"] == "no-store"
    again = api.ask("GET", "/contact?sent=1", headers=HTML)
    assert "We will answer by e-mail." in again.text
    # JSON goes to the same path as before.
    body = {"email": "a@b.example", "message": "from a program"}
    assert api.ask("POST", "/contact", json=body).status_code == 202
    assert messages(api)[0] == "from a program"


def test_a_refused_form_keeps_what_was_typed_and_says_where_it_is_wrong(api: Api) -> None:
    before = len(messages(api))
    page = send(api, name='Il"se', email="ilse.example.org", message=" ")
    assert page.status_code == 422
    assert page.headers["cache-control"] == "no-store"
    assert "<title>Error: Contact" in page.text
    assert 'role="alert"' in page.text
    for name in ("email", "message"):
        assert f'<a href="#{name}">' in page.text
        assert re.search(rf'id="{name}"[^>]* aria-invalid="true" aria-describedby="{name}-error"', page.text)
        assert f'id="{name}-error"' in page.text
    assert 'value="Il&#34;se"' in page.text
    assert 'value="ilse.example.org"' in page.text
    long = send(api, email="a@b.example", message="x" * 4001, name="y" * 201)
    assert long.status_code == 422
    assert "at most 4,000 characters" in unescape(long.text)
    assert "x" * 4001 in long.text
    assert len(messages(api)) == before


def test_a_robot_that_fills_the_hidden_field_is_thanked_and_nothing_is_stored(api: Api) -> None:
    before = messages(api)
    sent = send(api, email="bot@b.example", message="buy", website="https://spam.example")
    assert (sent.status_code, sent.headers["location"]) == (303, "/contact?sent=1")
    assert messages(api) == before


@pytest.mark.parametrize("origin", [None, "null", "https://evil.example", "https://zeta.example"])
def test_a_form_of_another_site_is_refused(api: Api, origin: str | None) -> None:
    before = messages(api)
    headers = {"host": "acme.example", **HTML} | ({} if origin is None else {"origin": origin})
    answer = api.client.post("/contact", data={"email": "a@b.example", "message": "forged"}, headers=headers)
    assert answer.status_code == 403
    assert messages(api) == before


def test_a_form_that_no_browser_sends_is_refused(api: Api) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded", **HTML}
    assert api.ask("POST", "/contact", content=b"message=%FF%FE", headers=kind).status_code == 400
    assert api.ask("POST", "/contact", content=b"message=" + b"x" * 70_000, headers=kind).status_code == 413
    assert api.ask("POST", "/", content=b"a=b", headers=kind).status_code == 405


def test_too_many_messages_are_refused_and_the_text_stays(api: Api) -> None:
    answers = [send(api, email="often@b.example", message=f"again {n}") for n in range(5)]
    assert [each.status_code for each in answers] == [303, 303, 303, 429, 429]
    refused = answers[-1]
    assert int(refused.headers["retry-after"]) > 0
    assert "again 4" in refused.text
    assert "many messages" in refused.text
    assert not [each for each in messages(api) if each in ("again 3", "again 4")]


def preview(api: Api, node_id: str, **body: Any) -> str:
    answer = api.ask("POST", f"/content/{node_id}/preview", "EDITOR", json=body)
    assert answer.status_code == 201, answer.text
    path: str = answer.json()["path"]
    return path


def test_a_signed_link_shows_a_draft_until_it_expires(api: Api) -> None:
    page = create(api, title="Secret plan", slug="/plan", status="draft")
    path = preview(api, page["node_id"], hours=2)
    assert api.ask("GET", "/plan", headers=HTML).status_code == 404
    shown = api.ask("GET", path, headers=HTML)
    assert shown.status_code == 200
    assert "Secret plan" in shown.text
    assert "Draft, version 1." in shown.text
    assert (shown.headers["cache-control"], shown.headers["x-robots-tag"]) == ("no-store", "noindex")
    assert "etag" not in shown.headers
    api.ask("PUT", f"/content/{page['node_id']}", "EDITOR", json={"title": "Better plan"})
    assert "Better plan" in api.ask("GET", path, headers=HTML).text
    # Another site, another text, and a later hour.
    assert api.ask("GET", path, None, "zeta", headers=HTML).status_code == 404
    assert api.ask("GET", path[:-2] + "AA", headers=HTML).status_code == 404
    assert api.ask("GET", "/plan?preview=" + "x" * 5000, headers=HTML).status_code == 404
    CLOCK.at = NOON + timedelta(hours=2)
    assert api.ask("GET", path, headers=HTML).status_code == 404
    CLOCK.at = NOON
    api.ask("DELETE", f"/content/{page['node_id']}", "EDITOR")
    assert api.ask("GET", path, headers=HTML).status_code == 404
    problem(api.ask("POST", f"/content/{page['node_id']}/preview", "EDITOR", json={"hours": 10_000}), 422)


def test_a_scheduled_post_appears_by_itself_also_in_lists(api: Api) -> None:
    later = NOON + timedelta(days=1)
    draft = {"title": "Opening party", "slug": "/party", "kind": "post", "publish_at": later.isoformat()}
    page = create(api, **{**draft, "status": "scheduled"})
    create(api, title="News", slug="/news", blocks=[{"type": "posts"}])
    waiting = api.ask("GET", preview(api, page["node_id"]), headers=HTML).text
    assert "Scheduled, version 1." in waiting
    assert "21 November 2026" in waiting
    assert api.ask("GET", "/party").status_code == 404
    before = api.ask("GET", "/news", headers=HTML)
    assert "Opening party" not in before.text
    CLOCK.at = later
    assert api.ask("GET", "/party").json()["title"] == "Opening party"
    assert (
        '<time datetime="2026-11-21">21 November 2026</time>' in api.ask("GET", "/party", headers=HTML).text
    )
    # Any change of a page forgets the cached list, which lasts for a minute otherwise.
    create(api, title="Other", slug="/other")
    after = api.ask("GET", "/news", headers={**HTML, "if-none-match": before.headers["etag"]})
    assert (after.status_code, "Opening party" in after.text) == (200, True)
    assert "/party<" in api.ask("GET", "/sitemap.xml").text
    CLOCK.at = NOON


def test_s0_7_a_post_shows_approved_comments_without_addresses(api: Api) -> None:
    page = create(api, title="Post", slug="/post", kind="post")
    first = api.ask("GET", "/post", headers=HTML)
    comment = {"page_id": page["node_id"], "author_name": "Ben <i>", "author_email": "ben@x.example"}
    said = api.ask("POST", "/comments", "RENDERER", json={**comment, "body": "Well <b>said"}).json()
    assert "Well" not in api.ask("GET", "/post", headers=HTML).text
    decision = {name: said[name] for name in ("page_id", "at", "comment_id")}
    api.ask("PUT", "/comments", "EDITOR", json={**decision, "status": "approved"})
    shown = api.ask("GET", "/post", headers={**HTML, "if-none-match": first.headers["etag"]})
    assert shown.status_code == 200
    assert "Ben &lt;i&gt;" in shown.text
    assert "Well &lt;b&gt;said" in shown.text
    assert "ben@x.example" not in shown.text
