"""Problems of the public site as pages: plain words, and a way on. Programs get them as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from solotable.systems.browser.error_pages import Action
from solotable.systems.browser.render import POLICY
from solotable.systems.cms.theme.render import Theme
from solotable.systems.cms.theme.words import Words

from .site.page_html import CONTACT
from .site.pages import prefers_html
from .site.site_info import SiteInfo

_UNKNOWN = SiteInfo(name="")


@dataclass(frozen=True, slots=True)
class ShownProblem:
    """What an error page says."""

    status: int
    title: str
    text: str
    actions: tuple[Action, ...]
    request_id: str


class ProblemPages:
    """Renders problems in the theme of the site that was asked for."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme

    def render(self, scope: Scope, problem: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
        """Return a problem as a page and its headers."""
        site: SiteInfo | None = scope.get("state", {}).get("site")
        page = _page(problem, site)
        html = self._theme.html("problem.html", site=site or _UNKNOWN, page=page)
        return html.encode(), {"content-security-policy": POLICY, "vary": "accept, host"}


def _page(problem: Mapping[str, Any], site: SiteInfo | None) -> ShownProblem:
    words, status = (Words() if site is None else site.words), problem["status"]
    if site is None:
        # No tenant has this host name, or the tenant is suspended.
        return ShownProblem(status, words["closed"], words["closed_text"], (), "")
    ways = (Action(words["home"], "/"), Action(words["contact"], CONTACT))
    if status == 404:
        return ShownProblem(status, words["not_found"], words["not_found_text"], ways, "")
    text = words["failed_text"] if status >= 500 else problem["detail"]
    return ShownProblem(status, words["failed"], text, ways, problem["request_id"] or "")


def is_program(scope: Scope) -> bool:
    """Return whether a request is not from a browser that shows a page."""
    accepted = b",".join(value for name, value in scope["headers"] if name == b"accept")
    return not prefers_html(accepted.decode("latin-1"))
