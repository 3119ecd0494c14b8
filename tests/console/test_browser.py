"""The console in headless Chromium: every page in both themes, keyboard, phone, zoom, and without scripts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.systems.looks import launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS, wait_until

from .site import Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TABLE = "/t/SurveyorData"
ROOF = f"{TABLE}/Section/TENANT%23acme/SURVEY%23s-1042%23SECTION%23roof"
PAGES = [
    "/",
    "/-/jump?q=Se",
    "/-/shortcuts",
    "/-/migrations",
    f"{TABLE}/Section?tenant=acme",
    f"{TABLE}/-/unclaimed",
    f"{TABLE}/-/pk",
    f"{TABLE}/-/pk/TENANT%23acme?item=SURVEY%23s-1042%23SECTION%23roof",
    f"{TABLE}/-/patterns/Survey.owned?a.tenant=acme&a.owner=ana@acme.example&run=1",
    f"{TABLE}/-/patterns/Survey.owned?run=1",
    f"{TABLE}/-/heat?by=read",
    f"{TABLE}/-/sync",
    f"{TABLE}/-/backups",
    f"{TABLE}/-/backups/TENANT%23acme/SURVEY%23s-1042",
    f"{TABLE}/-/new",
    f"{TABLE}/-/new?entity=Section&tenant=acme",
    f"{TABLE}/-/schema",
    f"{TABLE}/-/requests",
    f"{TABLE}/-/requests/1",
    ROOF,
    f"{ROOF}?tab=json",
    f"{ROOF}?delete=1",
    f"{ROOF}/history",
    "/t/nothing",
]
WIDE = "() => document.documentElement.scrollWidth > innerWidth + 1"


@dataclass
class Watched:
    """A served console, and what browsers reported about it."""

    base: str
    site: Site
    browser: Browser
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def page(self, **options: Any) -> Page:
        """Return a tab in a new context."""
        context = self.browser.new_context(**options)
        context.set_default_timeout(HANG_SECONDS * 1000)
        tab = context.new_page()
        tab.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("console", lambda message: self._hear(message.text))
        return tab

    def _hear(self, text: str) -> None:
        # The browser reports statuses of error pages, which tests ask for.
        if not text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(text)


@pytest.fixture(scope="module")
def watched(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    from playwright.sync_api import sync_playwright

    path = tmp_path_factory.mktemp("browser") / "surveys.db"
    shutil.copy(filled, path)
    site = Site(path, write=True)
    with serving(site.app) as base, sync_playwright() as playwright:
        chromium = launch(playwright)
        made = Watched(base, site, chromium)
        try:
            yield made
        finally:
            chromium.close()
            site.close()
    # No page broke its policy, raised an error, or asked another host.
    assert made.complaints == []
    assert made.hosts == {base.removeprefix("http://")}


#: The rules of WCAG 2.2 AA; the dark theme differs from the light one in its colours only.
RULES = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]},
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
#: A phone, a screen of 1280 pixels at a zoom of 200 %, and a tablet.
WIDTHS = (390, 640, 1024)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_every_width(watched: Watched, scheme: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    tab = watched.page(viewport={"width": 1280, "height": 800}, color_scheme=scheme)
    found: dict[str, list[str]] = {}
    for path in PAGES:
        tab.set_viewport_size({"width": 1280, "height": 800})
        tab.goto(watched.base + path)
        result = (
            axe.Axe().run(tab, options={"runOnly": RULES[scheme], "resultTypes": ["violations"]}).response
        )
        problems = [
            f"{each['id']}: {node['html'][:120]}" for each in result["violations"] for node in each["nodes"]
        ]
        for width in WIDTHS if scheme == "light" else ():
            tab.set_viewport_size({"width": width, "height": 800})
            if tab.evaluate(WIDE):
                problems.append(f"scrolls sideways at {width} pixels")
        if problems:
            found[path] = problems
    tab.context.close()
    assert found == {}


def test_the_keyboard_reaches_everything(watched: Watched) -> None:
    tab = watched.page()
    tab.goto(f"{watched.base}{TABLE}/Section?tenant=acme")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.id") == "jump"
    tab.keyboard.type("g h")
    tab.keyboard.press("Escape")
    assert tab.input_value("#jump") == "g h"
    tab.keyboard.press("j")
    tab.keyboard.press("j")
    tab.keyboard.press("k")
    assert tab.get_attribute("tr.sel", "data-key") == "TENANT#acme SURVEY#s-1042#SECTION#cellar"
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/SURVEY%23s-1042%23SECTION%23cellar*")
    for keys, url in (("gp", "**/-/patterns/**"), ("gc", "**/-/pk*"), ("gt", "**/-/heat*"), ("gh", "**:*/")):
        for key in keys:
            tab.keyboard.press(key)
        tab.wait_for_url(url)
    tab.keyboard.press("?")
    tab.wait_for_url("**/-/shortcuts")
    tab.keyboard.press("t")
    tab.wait_for_selector("html[data-theme=dark]")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 23)"
    tab.context.close()


def test_an_item_is_edited_and_saved_in_the_browser(watched: Watched) -> None:
    text = "  Lines\n\nand “quotes”, <b>tags</b> & \t tabs \u2028 \U0001f600  "
    path = f"{TABLE}/Section/TENANT%23acme/SURVEY%23s-1043%23SECTION%23loft"
    before = watched.site.json(f"{path}.json")["item"]
    tab = watched.page()
    tab.goto(watched.base + path)
    tab.get_by_label("Value of notes", exact=True).fill(text)
    tab.keyboard.press("Control+s")
    tab.wait_for_selector(".toast >> text=Saved as version 2")
    after = watched.site.json(f"{path}.json")["item"]
    assert after["notes"] == {"S": text}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"notes", "version", "updated_at"}
    # A view is another notation of the same draft.
    tab.get_by_label("Value of notes", exact=True).fill("draft")
    tab.get_by_role("button", name="DynamoDB JSON").click()
    wait_until(lambda: '"draft"' in tab.input_value("#json"))
    tab.context.close()


def test_two_people_settle_a_conflict_in_the_browser(watched: Watched) -> None:
    path = f"{TABLE}/Section/TENANT%23acme/SURVEY%23s-1044%23SECTION%23walls"
    one, other = watched.page(), watched.page()
    for tab in (one, other):
        tab.goto(watched.base + path)
    other.get_by_label("Value of name", exact=True).fill("Theirs")
    other.click("[data-save]")
    other.wait_for_selector(".toast")
    one.get_by_label("Value of name", exact=True).fill("Mine")
    one.click("[data-save]")
    one.wait_for_selector("[role=alert] >> text=Not saved")
    one.click("[data-save]")
    # The browser asks for the choice first.
    assert one.evaluate("document.querySelector('input[type=radio]').validity.valueMissing")
    one.get_by_label("mine: Mine").check()
    one.click("[data-save]")
    one.wait_for_selector(".toast >> text=Saved as version 3")
    assert watched.site.json(f"{path}.json")["item"]["name"] == {"S": "Mine"}
    one.context.close()
    other.context.close()


def test_every_page_works_without_scripts(watched: Watched) -> None:
    tab = watched.page(java_script_enabled=False)
    for path in ("/", f"{TABLE}/Section?tenant=acme", f"{TABLE}/-/heat?by=read", f"{ROOF}/history"):
        tab.goto(watched.base + path)
        assert tab.locator("h1").count() == 1
    tab.goto(watched.base + ROOF.replace("roof", "cellar"))
    tab.get_by_label("Value of notes", exact=True).fill("Without scripts")
    tab.get_by_role("button", name="DynamoDB JSON").click()
    assert "Without scripts" in tab.input_value("#json")
    tab.click("[data-save]")
    assert "Saved as version 2" in tab.inner_text(".toast")
    tab.click("#theme")
    assert tab.locator("html").get_attribute("data-theme") == "dark"
    tab.context.close()
