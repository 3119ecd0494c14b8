"""Problems as pages: what happened, what is safe, what to do. Never a code alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Scope

from .render import POLICY, Renderer, UserHeader


@dataclass(frozen=True, slots=True)
class Action:
    """A link that leads out of an error, or out of an empty list."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class ErrorPage:
    """What an error page says."""

    title: str
    text: str
    actions: tuple[Action, ...]
    request_id: str


class _Visit(Protocol):
    """What a page leaves as `visit` in the state of its scope: the signed-in user."""

    @property
    def header(self) -> UserHeader | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPages:
    """Renders problems; by status, `words` has a title and a text after the problem's own sentence."""

    renderer: Renderer
    words: Mapping[int, tuple[str, str]]
    unexpected: tuple[str, str]
    #: The way out for a user with a session, and without one.
    home: Action
    sign_in: Action

    def render(self, scope: Scope, problem: Mapping[str, Any]) -> tuple[bytes, dict[str, str]]:
        """Return a problem as a page and its headers; a signed-in user keeps the navigation."""
        title, advice = self.words.get(problem["status"], self.unexpected)
        visit: _Visit | None = scope.get("state", {}).get("visit")
        header = None if visit is None else visit.header
        own = problem["detail"] if problem["status"] in self.words else ""
        page = ErrorPage(
            title=title,
            text=f"{own} {advice}".strip(),
            actions=(self.sign_in if header is None else self.home,),
            request_id=problem["request_id"] or "",
        )
        # An error page has no form.
        html = self.renderer.html("problem.html", page=page, user=header, form_token="")
        return html.encode(), {"content-security-policy": POLICY}
