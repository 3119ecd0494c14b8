"""Built sites in headless Chromium: widths, light and dark, contrast, keyboard, and no script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from solotable import connect, connect_async
from solotable.systems.community.builds.serve import SitesByHost, SiteServer
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.entities.builds import Build
from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.systems.looks import COLOURS, CONTROLS, contrast, launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS

from .test_render import EVIL_BODY, FULL
from .workshop import add_post, add_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = "A title of two hundred characters, " + "averylongwordwithoutaspace" * 6
#: A yellow accent, which no page could show as it is.
CONFIG = {"author": "Ada", "description": "What the canal brings.", "accent_color": "#ffee00"}
PATHS = ("/", "/posts/post-0", "/posts/post-1", "/posts/post-2", "/missing")


@dataclass
class Sites:
    """Served sites, one for each layout, and what the browser reported."""

    port: str
    browser: Browser
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    from playwright.sync_api import sync_playwright

    folder = tmp_path_factory.mktemp("sites")
    build_sites(folder)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with connect_async(f"sqlite:///{folder}/c.db", community) as db:
            app.state.sites = SiteServer(db, FolderStorage(folder / "files"), domain="localhost")
            yield

    app = Starlette(lifespan=lifespan, middleware=[Middleware(SitesByHost)])
    with serving(app) as base, sync_playwright() as playwright:
        chromium = launch(playwright)
        try:
            yield Sites(base.rpartition(":")[2], chromium)
        finally:
            chromium.close()


def build_sites(folder: Path) -> None:
    with connect(f"sqlite:///{folder}/c.db?durability=relaxed", community) as db:
        for layout, config in FULL.items():
            site = add_site(db, layout, 0, title="Notes", template=layout, config={**config, **CONFIG})
            for number, body in enumerate(["Text.\n\n## Item\n\nMore.", EVIL_BODY, "x" * 300]):
                add_post(db, site, number, title=LONG[:200] if number else "Ice", body=body)
            db.create(Build(did=site.did, site_id=site.site_id))
        with BuildWorker(db, FolderStorage(folder / "files")) as worker:
            assert worker.run_once().live == len(FULL)


@pytest.mark.parametrize("layout", FULL)
def test_sites_are_readable_in_every_width_and_both_schemes(sites: Sites, layout: str) -> None:
    context = sites.browser.new_context()
    context.set_default_timeout(HANG_SECONDS * 1000)
    tab = context.new_page()
    tab.on("request", lambda request: sites.hosts.add(request.url.split("/")[2].partition(":")[0]))
    tab.on("console", lambda message: sites.complaints.append(message.text))
    wide, low, controls = [], [], {}
    for path in PATHS:
        tab.goto(f"http://{layout}.localhost:{sites.port}{path}")
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            for text, front, behind in tab.evaluate(COLOURS):
                if contrast(front, behind) < (3 if text == "border" else 4.5):
                    low.append((path, scheme, text, round(contrast(front, behind), 2)))
        if found := tab.evaluate(CONTROLS):
            controls[path] = found
        for width in (320, 640, 1280):
            tab.set_viewport_size({"width": width, "height": 800})
            if tab.evaluate("document.documentElement.scrollWidth") > width:
                wide.append((path, width))
    tab.goto(f"http://{layout}.localhost:{sites.port}/")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to content"
    assert tab.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    context.close()
    assert (wide, low, controls) == ([], [], {})
    assert sites.hosts <= {f"{each}.localhost" for each in FULL}
    # The browser reports the status of the missing page, and nothing about policies.
    assert [each for each in sites.complaints if "status of 404" not in each] == []
