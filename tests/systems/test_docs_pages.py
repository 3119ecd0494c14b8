"""`/docs` of every system in headless Chromium: it renders without a CDN, under a strict policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from tests.systems.looks import launch
from tests.systems.serving import serving
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

APPS = ("cms", "community", "limiter.http", "portal", "surveys")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        try:
            yield browser
        finally:
            browser.close()


@pytest.mark.parametrize("system", APPS)
def test_the_documentation_renders_from_the_app_alone(system: str, chromium: Browser, tmp_path: Path) -> None:
    create_app: Callable[..., Any] = import_module(f"solotable.systems.{system}.app").create_app
    app = create_app(f"sqlite:///{tmp_path / 'docs.db'}")
    # Swagger UI takes seconds of CPU time for a long list of open operations.
    app.swagger_ui_parameters = {"docExpansion": "none"}
    complaints: list[str] = []
    hosts: set[str] = set()
    with serving(app) as base:
        context = chromium.new_context(color_scheme="dark")
        context.set_default_timeout(HANG_SECONDS * 1000)
        tab = context.new_page()
        tab.on("request", lambda request: hosts.add(request.url.partition("://")[2].partition("/")[0]))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("console", lambda message: complaints.append(message.text))
        answer = tab.goto(f"{base}/docs")
        assert answer is not None
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "http" not in policy
        tab.locator(".opblock-tag").first.click()
        tab.locator(".opblock-summary-control").first.click()
        tab.wait_for_selector(".opblock.is-open .responses-wrapper")
        assert tab.inner_text(".info .title").startswith(app.title)
        assert tab.locator(".fallback").count() == 0
        assert tab.evaluate("document.documentElement.className") == "dark-mode"
        context.close()
    # Pictures in the stylesheet are data, without a host.
    assert {host for host in hosts if not host.startswith("image")} - {""} == {base.removeprefix("http://")}
    assert complaints == []
