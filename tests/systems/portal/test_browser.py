"""Pages in headless Chromium: flows of each role, the live inbox, policies, widths, keyboard, contrast."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from solotable.systems.portal.pages.inbox import LiveSettings
from solotable.systems.portal.roles import ROLES
from solotable.systems.portal.workers import WorkerSettings
from tests.systems.looks import COLOURS, CONTROLS, contrast, launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS, wait_until

from .api import PASSWORD, PDF, make_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


PAGES = {
    "Viewer": ["/", "/?query=pricing", "/?query=nothing", "/inbox", "/subscriptions", "/account", "/missing"],
    "Contributor": ["/content/new"],
    "Admin": ["/analytics", "/people", "/content/{id}", "/content/{id}/edit", "/content/{id}/delete"],
}
LONG = "A title of two hundred characters, " + "averylongwordwithoutaspace" * 6


@dataclass
class Site:
    """A served portal, and what browsers reported about it."""

    base: str
    browser: Browser
    #: Messages of the console about policies and errors of scripts.
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    contexts: dict[Any, BrowserContext] = field(default_factory=dict)

    def page(self, role: str, **options: Any) -> Page:
        """Return a tab of a signed-in user; sessions are opened once for each set of options."""
        key = (role, repr(sorted(options.items(), key=str)))
        if key not in self.contexts:
            context = self.contexts[key] = self.browser.new_context(**options)
            context.set_default_timeout(HANG_SECONDS * 1000)
            tab = self.watch(context.new_page())
            tab.goto(f"{self.base}/sign-in")
            tab.fill("#email", f"{role.lower()}@example.com")
            tab.fill("#password", PASSWORD)
            tab.click("button")
            tab.wait_for_url(f"{self.base}/")
            tab.close()
        return self.watch(self.contexts[key].new_page())

    def watch(self, tab: Page) -> Page:
        tab.on("request", lambda request: self.hosts.add(request.url.split("/")[2]))
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("console", lambda message: self._hear(message.text))
        return tab

    def _hear(self, text: str) -> None:
        # The browser reports statuses of error pages, which tests ask for.
        if not text.startswith("Failed to load resource: the server responded with a status of 4"):
            self.complaints.append(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    from playwright.sync_api import sync_playwright

    app = make_app(
        tmp_path_factory.mktemp("browser"),
        workers=WorkerSettings(announce_seconds=0.2, index_seconds=0.5, total_seconds=5),
        live=LiveSettings(poll_seconds=0.2),
    )
    with serving(app) as base, sync_playwright() as playwright:
        chromium = launch(playwright)
        made = Site(base, chromium)
        try:
            yield made
        finally:
            chromium.close()
    assert made.complaints == []
    assert made.hosts == {base.removeprefix("http://")}


@pytest.fixture(scope="module")
def content_id(site: Site) -> str:
    """Content with a long title, written and approved in the browser."""
    tab = site.page("Contributor")
    tab.goto(f"{site.base}/content/new")
    tab.fill("#title", LONG[:200])
    tab.fill("#summary", "What changes, for whom. " * 20)
    tab.fill("#product_suite", "Compass")
    tab.fill("#tags", "pricing, " + "x" * 50)
    tab.click("text=Save draft")
    tab.wait_for_selector("text=Draft saved.")
    tab.set_input_files("#file", {"name": "prices.pdf", "mimeType": "application/pdf", "buffer": PDF})
    tab.click("text=Attach file")
    tab.wait_for_selector("text=File attached.")
    found = tab.url.split("/content/")[1].partition("?")[0]
    tab.close()
    return found


def test_an_approval_appears_in_an_open_inbox(site: Site, content_id: str) -> None:
    """The main flow: a viewer follows, an approver approves, the message arrives, the viewer reads it."""
    viewer = site.page("Viewer")
    viewer.goto(f"{site.base}/subscriptions")
    viewer.fill("#more_tags", "pricing")
    viewer.click("button:text-is('Follow')")
    viewer.wait_for_selector("text=You now follow")
    viewer.goto(f"{site.base}/inbox")
    viewer.wait_for_selector("text=Nothing new")
    viewer.evaluate("window.unchanged = true")
    approver = site.page("Approver")
    approver.goto(f"{site.base}/content/{content_id}")
    assert approver.locator("text=Expire now").count() == 1
    assert approver.locator("text=Delete").count() == 0
    approver.click("button:has-text('Approve')")
    approver.wait_for_selector("text=Everyone who follows it gets a message")
    viewer.wait_for_selector(".mail.unread")
    assert viewer.evaluate("window.unchanged"), "the page was not loaded again"
    assert viewer.inner_text("#unread").startswith("1")
    viewer.click(".mail-t a")
    viewer.wait_for_selector("h1")
    assert viewer.locator("#unread").count() == 0
    with viewer.expect_download() as download:
        viewer.click("text=Download")
    assert download.value.suggested_filename == "prices.pdf"
    assert download.value.path().read_bytes() == PDF
    assert viewer.locator("button:has-text('Expire')").count() == 0
    viewer.close()
    approver.close()


def test_an_administrator_deletes_behind_a_second_page(site: Site, content_id: str) -> None:
    contributor = site.page("Contributor")
    contributor.goto(f"{site.base}/content/new")
    contributor.fill("#title", "Short-lived")
    contributor.keyboard.press("Enter")
    contributor.wait_for_selector("text=Draft saved.")
    admin = site.page("Admin")
    admin.goto(contributor.url.partition("?")[0])
    admin.click("text=Delete")
    admin.wait_for_selector("text=This cannot be undone.")
    admin.click("text=Delete this content")
    admin.wait_for_selector("text=The content and its file are gone.")
    contributor.reload()
    assert contributor.title().startswith("Error: Nothing is here")
    admin.close()
    contributor.close()


def test_the_inbox_and_forms_work_without_scripts(site: Site, content_id: str) -> None:
    tab = site.page("Viewer", java_script_enabled=False)
    tab.goto(f"{site.base}/inbox")
    assert tab.inner_text("h1") == "Inbox"
    tab.goto(f"{site.base}/subscriptions")
    tab.fill("#more_tags", "without scripts")
    tab.click("button:text-is('Follow')")
    tab.click("li:has-text('without scripts') >> text=Stop")
    tab.click("text=Undo")
    tab.wait_for_selector("text=tagged without scripts")
    tab.close()


def every_page(content_id: str) -> Iterator[tuple[str, str]]:
    for role, paths in PAGES.items():
        for path in paths:
            yield role, path.replace("{id}", content_id)


@dataclass
class Findings:
    """What is wrong with one page."""

    wide: list[int]
    controls: list[Any]
    low: list[tuple[str, str, float]]


@pytest.fixture(scope="module")
def findings(site: Site, content_id: str) -> dict[str, Findings]:
    """Every page, loaded once and looked at in several widths and both colour schemes."""
    found = {}
    for role, path in every_page(content_id):
        tab = site.page(role)
        tab.goto(site.base + path)
        low = []
        for scheme in ("light", "dark"):
            # Colours change at once, without a transition.
            tab.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            for text, front, behind in tab.evaluate(COLOURS):
                if contrast(front, behind) < (3 if text == "border" else 4.5):
                    low.append((scheme, text, round(contrast(front, behind), 2)))
        controls = tab.evaluate(CONTROLS)
        wide = []
        # 640 pixels are a window of 1280 at a zoom of 200 %.
        for width in (320, 390, 640, 1280):
            tab.set_viewport_size({"width": width, "height": 800})
            wide += [width] if tab.evaluate("document.documentElement.scrollWidth") > width else []
        found[path] = Findings(wide, controls, low)
        tab.close()
    return found


def test_no_page_scrolls_sideways(findings: dict[str, Findings]) -> None:
    assert {path: each.wide for path, each in findings.items() if each.wide} == {}


def test_every_control_shows_its_focus_and_is_large_enough(findings: dict[str, Findings]) -> None:
    assert {path: each.controls for path, each in findings.items() if each.controls} == {}


def test_texts_and_controls_have_contrast_in_light_and_dark(findings: dict[str, Findings]) -> None:
    """Texts 4.5:1 on what is behind them, computed from the rendered colours; borders of controls 3:1."""
    assert {path: each.low for path, each in findings.items() if each.low} == {}


def test_the_keyboard_reaches_the_content_first_by_the_skip_link(site: Site) -> None:
    tab = site.page("Viewer")
    tab.goto(site.base + "/")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "q"
    tab.close()


def test_the_console_and_the_network_stay_silent(site: Site, content_id: str) -> None:
    assert site.complaints == []
    assert site.hosts == {site.base.removeprefix("http://")}


def test_a_policy_blocks_an_inline_script(site: Site) -> None:
    """Without this, the silence of the console would prove nothing."""
    tab = site.page("Viewer")
    tab.goto(f"{site.base}/inbox")
    before = len(site.complaints)
    tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\" id=p>x</p>')")
    wait_until(lambda: tab.evaluate("1") and len(site.complaints) > before)
    assert "Content Security Policy" in site.complaints.pop()
    tab.close()


def test_each_role_sees_its_navigation(site: Site) -> None:
    seen = {}
    for role in ROLES:
        tab = site.page(role)
        tab.goto(site.base + "/")
        seen[role] = [re.sub(r"\s.*", "", each) for each in tab.locator(".app nav a").all_inner_texts()]
        tab.close()
    reader = ["Library", "Inbox", "Subscriptions"]
    assert seen == {
        "Viewer": reader,
        "Contributor": reader,
        "Approver": reader,
        "Admin": [*reader, "Analytics", "People"],
    }


def test_contrast_is_computed_as_wcag_defines_it() -> None:

    assert round(contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)"), 1) == 21.0
    assert round(contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)"), 2) == 4.48
