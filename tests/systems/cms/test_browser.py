"""The demo's site in headless Chromium: forms, widths, keyboard, contrast, policies, and no other host."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from solotable.systems.cms import demo
from solotable.systems.cms.app import create_app
from solotable.systems.demo_server import make_auth
from tests.systems.looks import COLOURS, CONTROLS, contrast, launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = ("/", "/blog/first-notes", "/about-us", "/contact", "/missing", "/long")
LONG = "A title of two hundred characters, " + "averylongwordwithoutaspace" * 6


@dataclass
class Shown:
    """A served demo, and what the browser reported about it."""

    base: str
    key: str
    browser: Browser
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def open(self, path: str, **options: Any) -> Page:
        context = self.browser.new_context(**options)
        context.set_default_timeout(HANG_SECONDS * 1000)
        tab = context.new_page()
        tab.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("console", lambda message: self._hear(message.text))
        tab.goto(self.base + path)
        return tab

    def _hear(self, text: str) -> None:
        # The browser reports statuses of error pages, which tests ask for.
        if not text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(text)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("browser")
    url = f"sqlite:///{folder / 'cms.db'}"
    asyncio.run(demo.prepare(url))
    keys = demo.credentials()
    app = create_app(url, auth=make_auth(keys), storage=folder / demo.FILES)
    editor = next(each.key for each in keys if each.name == "eve")
    with serving(app) as base, sync_playwright() as playwright:
        chromium = launch(playwright)
        made = Shown(base.replace("127.0.0.1", "acme.localhost"), editor, chromium)
        try:
            yield made
        finally:
            chromium.close()


def test_a_visitor_writes_a_message_without_scripts(shown: Shown) -> None:
    tab = shown.open("/contact", java_script_enabled=False)
    assert tab.get_attribute(".nav [aria-current=page]", "href") == "/contact"
    tab.fill("#email", "ilse.example.org")
    tab.fill("#message", "Is the shop open?")
    tab.click("text=Send message")
    tab.wait_for_selector("[role=alert]")
    assert tab.title().startswith("Error:")
    assert tab.input_value("#message") == "Is the shop open?"
    tab.fill("#email", "ilse@example.org")
    tab.click("text=Send message")
    tab.wait_for_selector("[role=status]")
    assert "ilse@example.org" in tab.inner_text("[role=status]")
    assert "@" not in tab.url
    tab.context.close()


def test_the_keyboard_reaches_the_content_first_by_the_skip_link(shown: Shown) -> None:
    tab = shown.open("/contact")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "name", "the hidden trap is not reached"
    for _ in range(3):
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Send message"
    tab.context.close()


def test_pages_fit_every_width_and_have_contrast_and_focus_in_both_schemes(shown: Shown) -> None:
    import httpx2

    headers = {"x-api-key": shown.key}
    # Many blocks of long words, below a title of 191 characters.
    blocks = [
        {"type": kind, "text": LONG, "title": LONG, "items": [LONG]} for kind in ("text", "quote", "list")
    ]
    draft = {"title": LONG[:200], "slug": "/long", "status": "published", "blocks": blocks}
    api = shown.base.replace("acme.localhost", "127.0.0.1")
    made = httpx2.post(f"{api}/content", json=draft, headers=headers)
    assert made.status_code == 201
    link = httpx2.post(f"{api}/content/{made.json()['node_id']}/preview", json={}, headers=headers).json()
    wrong: list[tuple[str, object]] = []
    tab = shown.open("/")
    for path in (*PAGES, link["path"]):
        tab.goto(shown.base + path)
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for text, front, behind in tab.evaluate(COLOURS):
                if contrast(front, behind) < (3 if text == "border" else 4.5):
                    wrong.append((path, (scheme, text, front, behind)))
        controls = [each for each in tab.evaluate(CONTROLS) if 'name="website"' not in each[0]]
        wrong += [(path, each) for each in controls]
        # 640 pixels are a window of 1280 at a zoom of 200 %.
        for width in (320, 390, 640, 1280):
            tab.set_viewport_size({"width": width, "height": 800})
            if tab.evaluate("document.documentElement.scrollWidth") > width:
                wrong.append((path, width))
        if not tab.evaluate("[...document.images].every(each => !each.complete || each.naturalWidth > 0)"):
            wrong.append((path, "a picture did not load"))
    tab.context.close()
    assert wrong == []
    assert shown.complaints == []
    assert shown.hosts == {shown.base.removeprefix("http://")}
