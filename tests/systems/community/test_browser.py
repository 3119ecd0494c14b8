"""The community in headless Chromium: the login and a build end to end, and how its pages look."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from solotable import connect
from solotable.systems.community.builds.stages import BuildSettings
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.identity.oauth.client import OAuthClient, OAuthSettings, local_client_id
from solotable.systems.community.identity.oauth.local_provider import LocalProvider
from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.store.opening import Clock
from tests.systems.looks import COLOURS, CONTROLS, contrast, launch
from tests.systems.serving import address_of, listening, serving_on
from tests.waiting import HANG_SECONDS

from .api import Outbox, make_app
from .login import ALICE, BEN, PASSWORD

if TYPE_CHECKING:
    from playwright.sync_api import Page

LONG = "A title of two hundred characters, " + "averylongwordwithoutaspace" * 6


@dataclass
class Served:
    """A served community with its provider, a signed-in tab, and what the browser reported."""

    base: str
    folder: Path
    clock: Clock
    tab: Page
    complaints: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/community.db?durability=relaxed"

    def work(self) -> None:
        """Do what a worker process does, in a thread: this one has the loop of the browser."""
        with ThreadPoolExecutor() as pool:
            pool.submit(self._work).result()

    def _work(self) -> None:
        port = self.base.rpartition(":")[2]
        settings = BuildSettings(site_url=f"http://{{subdomain}}.localhost:{port}")
        with (
            connect(self.url, community, clock=self.clock) as db,
            BuildWorker(db, FolderStorage(self.folder / "sites"), settings) as worker,
        ):
            worker.run_once()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    from playwright.sync_api import sync_playwright

    folder, clock = tmp_path, Clock()
    with listening() as app_port, listening() as provider_port:
        base = address_of(app_port)
        redirect = f"{base}/auth/callback"
        local = LocalProvider(address_of(provider_port), [ALICE, BEN], clock=clock)
        client = OAuthClient(
            OAuthSettings(
                issuer=local.issuer,
                client_id=local_client_id(redirect),
                redirect_uri=redirect,
                clock=clock,
            )
        )
        url = f"sqlite:///{folder}/community.db?durability=relaxed"
        app = make_app(url, folder, clock, Outbox(), provider=client, base_url=base, sites_domain="localhost")
        with (
            serving_on(provider_port, local.app),
            serving_on(app_port, app),
            sync_playwright() as playwright,
        ):
            chromium = launch(playwright)
            context = chromium.new_context(reduced_motion="reduce")
            context.set_default_timeout(HANG_SECONDS * 1000)
            tab = context.new_page()
            made = Served(base, folder, clock, tab)
            tab.on("pageerror", lambda error: made.complaints.append(str(error)))
            tab.on("console", lambda message: made.complaints.append(message.text))
            yield made
            chromium.close()


def test_a_user_signs_in_builds_a_site_and_opens_it_on_pages_that_look_right(served: Served) -> None:
    """One test: the tab, the session and the site of its steps are the same."""
    build_a_site(served.tab, served)
    assert flaws_of(served.tab, served.base) == []
    # The browser reports the statuses of error pages, and that a built site has no icon.
    expected = "Failed to load resource: the server responded with a status of 404 (Not Found)"
    assert [each for each in served.complaints if each != expected] == []


def build_a_site(tab: Page, served: Served) -> None:
    """Sign in at the provider, make a site, watch its build, and open it at its subdomain."""
    tab.goto(f"{served.base}/")
    tab.click("text=Sign in")
    tab.fill("#handle", ALICE.handle)
    tab.fill("#password", PASSWORD)
    tab.click("button:text-is('Sign in')")
    tab.wait_for_url(f"{served.base}/")
    tab.click("text=My sites")
    tab.fill("#title", LONG[:200])
    tab.fill("#subdomain", "alice")
    tab.click("text=Make and build")
    tab.wait_for_selector(".badge:text-is('Waiting')")
    served.work()
    # The page loads itself again.
    tab.wait_for_selector(".badge:text-is('Live') >> nth=0")
    tab.click("text=Open the site")
    tab.wait_for_url("http://alice.localhost:*/")
    assert "averylongword" in tab.inner_text("h1, .site-title, header")


def flaws_of(tab: Page, base: str) -> list[tuple[object, ...]]:
    """Return where a page scrolls sideways, lacks contrast, or hides the focus of a control."""
    tab.goto(f"{base}/sites")
    build = tab.get_attribute(".site h3 a", "href")
    wrong: list[tuple[object, ...]] = []
    for path in ("/", "/sites", build, "/account", "/missing"):
        tab.goto(f"{base}{path}")
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            for text, front, behind in tab.evaluate(COLOURS):
                if contrast(front, behind) < (3 if text == "border" else 4.5):
                    wrong.append((path, scheme, text, round(contrast(front, behind), 2)))
        wrong += [(path, *each) for each in tab.evaluate(CONTROLS)]
        for width in (320, 390, 640, 1280):
            tab.set_viewport_size({"width": width, "height": 800})
            if tab.evaluate("document.documentElement.scrollWidth") > width:
                wrong.append((path, "scrolls sideways", width))
    return wrong
