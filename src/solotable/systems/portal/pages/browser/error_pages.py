"""Problems as pages: what happened, what is safe, what to do. Never a code alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from .render import POLICY, Renderer

if TYPE_CHECKING:
    from .visits import Visit


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


_LIBRARY = Action("Go to the library", "/")
#: Status: title, and a text after the problem's own sentence.
_WORDS: dict[int, tuple[str, str]] = {
    400: ("This address does not work", "Start with the first page of the list."),
    403: ("You may not do this", "Nothing was changed. An administrator can give you another role."),
    404: ("Nothing is here", "It was moved or deleted, or the address has a typing error."),
    405: ("This address takes no forms", "Nothing was changed."),
    409: ("This cannot be done now", "Nothing was changed. Load the content again to see where it stands."),
    412: ("Another person was faster", "Nothing was changed. Load the content again."),
    413: ("This is too large", "Nothing was stored."),
    415: ("This form cannot be read", "Nothing was stored."),
    422: ("Some fields need a correction", "Nothing was stored. Go back: what you typed is still there."),
    429: ("Too many requests", "Nothing was changed. Wait a few minutes, then try again."),
    503: ("The portal is busy", "Try again in a minute."),
}
_UNEXPECTED = ("Something went wrong", "The portal's log has the details. Try again in a minute.")


def render_problem(
    renderer: Renderer, scope: Scope, problem: Mapping[str, Any]
) -> tuple[bytes, dict[str, str]]:
    """Return a problem as a page and its headers; a signed-in user keeps the navigation."""
    title, advice = _WORDS.get(problem["status"], _UNEXPECTED)
    visit: Visit | None = scope.get("state", {}).get("visit")
    own = problem["detail"] if problem["status"] in _WORDS else ""
    page = ErrorPage(
        title=title,
        text=f"{own} {advice}".strip(),
        actions=(_LIBRARY,) if visit is not None else (Action("Sign in", "/sign-in"),),
        request_id=problem["request_id"] or "",
    )
    html = renderer.html(
        "problem.html",
        page=page,
        user=None if visit is None else visit.header,
        form_token="",  # an error page has no form
    )
    return html.encode(), {"content-security-policy": POLICY}
