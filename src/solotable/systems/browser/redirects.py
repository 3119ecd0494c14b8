"""Redirects of pages, to paths of the same host only."""

from __future__ import annotations

from starlette.responses import RedirectResponse


def see(url: str) -> RedirectResponse:
    """Return a redirect after a form, so that loading the page again sends nothing."""
    return RedirectResponse(url, status_code=303)


def local_path(text: str) -> str:
    """Return a path of this host, `/` for everything else.

    >>> local_path("/inbox?unread=1"), local_path("//evil.example"), local_path("https://evil.example")
    ('/inbox?unread=1', '/', '/')
    """
    safe = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if safe and "\\" not in text else "/"
