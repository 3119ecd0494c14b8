"""The portal's pages for tests without a browser: a client that signs in, follows forms and reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from .api import PASSWORD


@dataclass
class FormFound:
    """A form of a page: where it goes and what it sends."""

    action: str
    fields: dict[str, str]


class _Reader(HTMLParser):
    """Reads forms, tags and attributes; the tests look for what must not be there."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[FormFound] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag == "form" and given.get("method") == "post":
            self.forms.append(FormFound(given.get("action") or "", {}))
        elif tag == "input" and self.forms and given.get("type") == "hidden":
            self.forms[-1].fields[given.get("name") or ""] = given.get("value") or ""


@dataclass
class Page:
    """A page as a browser gets it."""

    response: httpx2.Response
    reader: _Reader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = _Reader()
        self.reader.feed(self.response.text)

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def text(self) -> str:
        """The words of the page, without tags."""
        return " ".join(unescape(re.sub(r"<[^>]*>", " ", self.response.text)).split())

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)</title>", self.response.text, re.DOTALL)
        return unescape(found[1]) if found else ""

    @property
    def policy(self) -> str:
        return self.response.headers["content-security-policy"]

    def form(self, action: str) -> FormFound:
        return next(each for each in self.reader.forms if each.action.endswith(action))

    def attributes(self, tag: str, name: str) -> list[str]:
        return [given[name] or "" for each, given in self.reader.tags if each == tag and name in given]


class Browser:
    """A client with cookies, like a browser without scripts."""

    def __init__(self, app: FastAPI, address: str = "testclient") -> None:
        # Its own cookies, on the lifespan that another client runs.
        self.client = TestClient(
            app, raise_server_exceptions=False, follow_redirects=True, client=(address, 50000)
        )

    def sign_in(self, user: str, password: str = PASSWORD) -> Page:
        page = self.get("/sign-in")
        fields = page.form("/sign-in").fields
        return self.post("/sign-in", {**fields, "email": f"{user}@example.com", "password": password})

    def get(self, path: str, **more: Any) -> Page:
        return Page(self.client.get(path, **more))

    def post(self, path: str, fields: dict[str, Any], **more: Any) -> Page:
        return Page(self.client.post(path, data=fields, **more))

    def submit(self, page: Page, action: str, **typed: Any) -> Page:
        """Send a form of a page with what a user types."""
        form = page.form(action)
        return self.post(form.action, {**form.fields, **typed})
