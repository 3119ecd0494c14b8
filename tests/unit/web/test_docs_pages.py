"""`/docs`: files from the app under versioned URLs, a text without scripts, paths behind a prefix."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable.web import install
from solotable.web.http import docs_pages

from . import app as shop

FILE = re.compile(r'(?:href|src)="([^"]+\.(?:css|js))"')


def test_the_page_names_no_other_host_and_holds_no_script() -> None:
    with shop.client(shop.make()) as http:
        page = http.get("/docs")
        files = FILE.findall(page.text)
        assert len(files) == 4
        for each in files:
            served = http.get(each)
            assert served.status_code == 200
            assert "immutable" in served.headers["cache-control"]
            assert served.headers["content-type"].startswith(("text/css", "text/javascript"))
            assert http.get(each.replace("/docs/", "/docs/0")).status_code == 404
        assert http.get("/docs/../docs_pages.py").status_code == 404
        assert http.get("/docs/oauth2-redirect").status_code == 404
    assert "://" not in page.text
    assert re.search(r"<script(?! defer src=)", page.text) is None
    assert page.headers["content-security-policy"] == docs_pages.POLICY


def test_redoc_redirects_to_the_one_page() -> None:
    with shop.client(shop.make()) as http:
        answer = http.get("/redoc", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/docs")


def test_without_scripts_the_page_links_the_openapi_document() -> None:
    with shop.client(shop.make()) as http:
        page = http.get("/docs").text
    inside = page.partition('<div id="swagger-ui"')[2].partition("</div>")[0]
    assert '<a href="/openapi.json">' in inside


def test_options_and_the_prefix_of_a_proxy_are_kept() -> None:
    app = FastAPI(
        title='<b>"Shop"</b>',
        docs_url="/help",
        redoc_url=None,
        swagger_ui_parameters={"docExpansion": "</script>"},
    )
    install(app)
    page = TestClient(app, root_path="/shop").get("/help").text
    assert "&lt;b&gt;&quot;Shop&quot;&lt;/b&gt;" in page
    assert "</script>" not in page.partition("data-options")[2]
    assert "&quot;url&quot;: &quot;/shop/openapi.json&quot;" in page
    assert all(each.startswith("/shop/help/") for each in FILE.findall(page))


def test_an_app_without_documentation_gets_none() -> None:
    app = FastAPI(docs_url=None, redoc_url=None)
    install(app)
    assert TestClient(app).get("/docs").status_code == 404


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_an_app_with_one_page_keeps_it(path: str) -> None:
    given = {"docs_url": None, "redoc_url": None, f"{path[1:]}_url": path}
    app = FastAPI(**given)  # type: ignore[arg-type]  # two paths
    install(app)
    answer = TestClient(app).get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
