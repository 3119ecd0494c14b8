"""Rendering: escaped, stable, complete; with hostile, empty and very long content (C2.11)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from itertools import product
from posixpath import dirname, join, normpath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable.systems.community.builds.render.accent import LEAST_CONTRAST, contrast, readable
from solotable.systems.community.builds.render.content import NeighbourhoodLink, PostContent, SiteContent
from solotable.systems.community.builds.render.markdown import blocks_html, parse
from solotable.systems.community.builds.render.site_files import FEED_POSTS, render_site
from solotable.systems.community.builds.templates.analysis import analyse
from solotable.systems.community.builds.templates.json_schema import check_schema
from solotable.systems.community.builds.templates.manifest import (
    LAYOUTS,
    check_template_schema,
    checked_config,
    shipped_templates,
)
from solotable.systems.errors import InvalidInput

from .pages import check_page

START = datetime(2026, 11, 13, 17, 40, tzinfo=UTC)
ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert(1)</script>\"'&amp;]]>\x00\u202e{{ 7*7 }}"
EVIL_BODY = f"""{EVIL}

## {EVIL}

[a](javascript:alert(1)) [b](data:text/html,x) [c](JaVaScRiPt:x) [d](vbscript:x) [e](\x01javascript:x)
[f](//evil.example) [g](https://ok.example/"onmouseover="x) ![h](https://tracker.example/x.png)
<https://ok.example/<b>> <img src=x onerror=alert(1)> [i](java&#115;cript:x)

- {EVIL}

> {EVIL}

```
{EVIL}
```
"""
FULL: dict[str, dict[str, Any]] = {
    "blog": {"picture": "canal", "posts_per_page": 3},
    "newsletter": {"signup": {"url": "https://example.org/join"}},
    "project": {
        "picture": "garden",
        "figures": [{"label": "Beds", "value": "24"}],
        "tasks": [{"title": "Bees", "state": "Asking"}],
        "call": {"title": "Take a bed", "label": "Write", "url": "mailto:a@example.org"},
    },
}


def post(number: int, **fields: Any) -> PostContent:
    given = {"title": f"Post {number}", "body": f"Text {number}\n\n## Item\n\nMore.", **fields}
    return PostContent(
        rkey=f"3k{number}", name=f"post-{number}", published_at=START - timedelta(days=number), **given
    )


def build(layout: str, posts: list[PostContent], title: str = "Notes", **config: Any) -> dict[str, bytes]:
    """Render a site, with a config that uses everything."""
    full = checked_config(shipped_templates()[layout], {"author": "Ada", **FULL[layout], **config})
    site = SiteContent(
        title=title,
        layout=layout,
        base_url="https://ada.example.org/",
        config=full,
        neighbourhood=NeighbourhoodLink(name="Canal Row", url="https://example.org/canal-row"),
    )
    files = [(file.path, file.data) for file in render_site(site, posts, len(posts))]
    assert len(dict(files)) == len(files)
    return dict(files)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 25])
def test_every_link_of_a_site_leads_to_a_file_of_it(layout: str, count: int) -> None:
    files = build(layout, [post(number) for number in range(count)])
    assert {"index.html", "404.html", "feed.xml", "sitemap.xml", "robots.txt", "site.css"} <= set(files)
    linked = {"index.html"}
    for path, data in files.items():
        if path.endswith(".html"):
            for link in (page := check_page(data)).links + page.sources:
                if "://" not in link and not link.startswith(("#", "mailto:")):
                    linked.add(normpath(join("/", dirname(path), link)).lstrip("/"))
    assert linked <= set(files), linked - set(files)
    # Every page can be reached; the server shows 404.html.
    assert {path for path in files if path.endswith(".html")} - linked == {"404.html"}
    sitemap = ET.fromstring(files["sitemap.xml"])  # noqa: S314 - our own file
    listed = {
        (each[0].text or "").removeprefix("https://ada.example.org/") or "index.html" for each in sitemap
    }
    assert listed == {path for path in files if path.endswith(".html")} - {"404.html"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_input_gives_the_same_bytes(layout: str) -> None:
    posts = [post(number) for number in range(9)]
    assert build(layout, posts) == build(layout, posts)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_hostile_texts_are_escaped_everywhere(layout: str) -> None:
    posts = [post(number, title=EVIL, body=EVIL_BODY, summary=EVIL) for number in range(3)]
    texts: dict[str, Any] = {"author": EVIL[:100], "description": EVIL, "custom_fields": {EVIL: EVIL}}
    if layout == "project":
        texts |= {
            "figures": [{"label": "<script>", "value": "<b>"}],
            "tasks": [{"title": EVIL, "state": "<i>"}],
            "call": {"title": "<u>", "text": EVIL, "label": "<b>", "url": "https://ok.example/\"'<"},
        }
    files = build(layout, posts, title=EVIL, **texts)
    for path, data in files.items():
        if path.endswith(".html"):
            check_page(data)
        if path.endswith(".xml"):
            ET.fromstring(data)  # noqa: S314 - our own file
        if not path.endswith((".css", ".svg")):
            for part in (
                b"<script",
                b"javascript:alert",
                b"\x00",
                b"onerror=alert(1)>",
                "\u202e".encode(),
                b">49<",
            ):
                assert part not in data, (path, part)
    assert b"tracker.example" not in b"".join(files.values())


def test_the_feed_has_the_newest_posts_with_absolute_addresses() -> None:
    files = build("blog", [post(number) for number in range(30)])
    feed = ET.fromstring(files["feed.xml"])  # noqa: S314 - our own file
    entries = feed.findall(f"{ATOM}entry")
    assert len(entries) == FEED_POSTS
    assert feed.findtext(f"{ATOM}updated") == "2026-11-13T17:40:00Z"
    assert entries[0].findtext(f"{ATOM}id") == "https://ada.example.org/posts/post-0.html"
    assert (entries[0].findtext(f"{ATOM}content") or "").startswith("<p>Text 0</p>")
    assert files["robots.txt"].decode().endswith("Sitemap: https://ada.example.org/sitemap.xml\n")


def test_headings_of_a_newsletter_are_numbered_items() -> None:
    body = "Hello.\n\n## First\n\nOne.\n\n## Second\n\nTwo."
    files = build("newsletter", [post(0, body=body), post(1)])
    page = files["index.html"].decode()
    assert "Issue 2, " in page
    assert [page.index(text) for text in ("Hello.", "1. First", "2. Second")] == sorted(
        page.index(text) for text in ("Hello.", "1. First", "2. Second")
    )


def test_accents_of_every_hue_are_readable() -> None:
    for red, green, blue in product(range(0, 256, 51), repeat=3):
        accent = readable(f"#{red:02x}{green:02x}{blue:02x}")
        # Text in the accent, and text on it: white in light pages, nearly black in dark ones.
        assert contrast(accent.light, "#ffffff") >= LEAST_CONTRAST
        assert contrast(accent.dark, "#141716") >= LEAST_CONTRAST
        assert contrast(accent.dark, "#0e1110") >= LEAST_CONTRAST


@settings(max_examples=100)
@given(st.text(st.sampled_from("ab <>&\"'\\`*_[]()!#-\n>:/1.~") | st.characters(), max_size=200))
def test_no_text_becomes_an_element_that_markdown_does_not_have(text: str) -> None:
    page = b"<h1></h1>" + str(blocks_html(parse(text))).encode("utf-8", "replace")
    check_page(page)


@pytest.mark.parametrize("part", ["[", "*a", "[a](", "<", "> ", "![", "- "])
def test_texts_of_one_mark_take_linear_time(part: str) -> None:
    """Quadratic time would be minutes: 90,000 characters are what a post may have."""
    assert blocks_html(parse(part * (90_000 // len(part))))


def test_configs_of_10_mb_are_refused_before_they_are_validated() -> None:
    with pytest.raises(InvalidInput, match="config: has 10000019 bytes as JSON, more than 65536"):
        checked_config(shipped_templates()["blog"], {"description": "x" * 10_000_000})
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    with pytest.raises(InvalidInput, match="config: is nested more than 64 levels deep"):
        checked_config(shipped_templates()["blog"], {"links": deep})
    assert analyse({"name": "x" * 10_000_000}).findings == (
        "manifest: has 10000012 bytes as JSON, more than 65536.",
    )


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ([], "config: must be of the type object."),
        ({"author": 7}, "config.author: must be of the type string."),
        ({"author": "x" * 101}, "config.author: must be at most 100 characters."),
        ({"accent_color": "#12345"}, "config.accent_color: must be a color such as #0f6b6b."),
        ({"accent_color": "#123456;}"}, "config.accent_color: must be a color such as #0f6b6b."),
        ({"picture": "../x"}, "config.picture: must be one of none, canal, garden, studio."),
        ({"language": 'en">'}, "config.language: must be a language such as en or de-AT."),
        ({"posts_per_page": 0}, "config.posts_per_page: must be at least 1."),
        ({"posts_per_page": True}, "config.posts_per_page: must be of the type integer."),
        ({"custom_fields": {"a": {}}}, "config.custom_fields.a: must be of the type string."),
        ({"surprise": 1}, "config.surprise: is not a name of this template."),
        ({"links": [{"label": "x"}]}, "config.links[0].url: is required."),
        (
            {"links": [{"label": "x", "url": "javascript:x"}]},
            "config.links[0].url: must be a link that begins with https://, http://, mailto: or /.",
        ),
    ],
)
def test_a_wrong_config_is_rejected_with_its_place(config: Any, text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        checked_config(shipped_templates()["blog"], config)
    assert str(raised.value) == text


def test_shipped_templates_have_valid_schemas_and_an_empty_config_is_valid() -> None:
    for template in shipped_templates().values():
        assert check_template_schema(template) == []
        assert checked_config(template, {})["accent_color"] == "#0f6b6b"


@pytest.mark.parametrize(
    ("schema", "finding"),
    [
        ({"type": "text"}, "schema.type: must be one of"),
        ({"type": "string", "pattern": "(a+)+$"}, "schema.pattern: this keyword is not supported"),
        ({"type": "object", "$ref": "https://example.org"}, "schema.$ref: this keyword is not supported"),
        ({"type": "string", "maxLength": "9"}, "schema.maxLength: is not a number."),
        ({"type": "string", "default": 7}, "schema.default: : must be of the type string."),
        ({"type": "object", "required": ["a"]}, "schema.required: is not a list of names in properties."),
        ({"type": "array", "items": {"type": "never"}}, "schema.items.type: must be one of"),
    ],
)
def test_a_schema_with_what_is_not_checked_is_rejected(schema: dict[str, Any], finding: str) -> None:
    assert next(check_schema(schema)).startswith(finding)


@pytest.mark.parametrize(
    ("title", "letter"),
    [("notes", ">N<"), ("<script>", ">S<"), ("\U0001f389", ">·<"), ("ßtraße", ">S<"), ("東京", ">東<")],
)
def test_a_site_has_an_icon_which_every_page_names(title: str, letter: str) -> None:
    files = build("blog", [post(1)], title=title, accent_color="#ffee00")
    icon = files["icon.svg"].decode()
    ET.fromstring(icon)  # noqa: S314 - our own file
    assert letter in icon
    assert f'fill="{readable("#ffee00").light}"' in icon
    for path, data in files.items():
        if path.endswith(".html"):
            root = "/" if path == "404.html" else "../" * path.count("/")
            assert f'rel="icon" type="image/svg+xml" href="{root}icon.svg"'.encode() in data, path
