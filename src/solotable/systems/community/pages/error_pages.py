"""The words of the community's error pages."""

from __future__ import annotations

from solotable.systems.browser.error_pages import Action, ErrorPages
from solotable.systems.browser.render import Renderer

_WORDS: dict[int, tuple[str, str]] = {
    400: ("This did not work", "Nothing was changed."),
    401: ("You are not signed in", "Sign in, then try again."),
    403: ("You may not do this", "Nothing was changed."),
    404: ("Nothing is here", "It was moved or deleted, or the address has a typing error."),
    405: ("This address takes no forms", "Nothing was changed."),
    409: ("This cannot be done now", "Nothing was changed. Load the page again to see where it stands."),
    413: ("This is too large", "Nothing was stored."),
    415: ("This form cannot be read", "Nothing was stored."),
    422: ("Some fields need a correction", "Nothing was stored. Go back: what you typed is still there."),
    429: ("Too many requests", "Nothing was changed. Wait a few minutes, then try again."),
    503: ("Something does not answer", "Try again in a minute."),
}


def error_pages(renderer: Renderer) -> ErrorPages:
    """Return the community's error pages."""
    return ErrorPages(
        renderer=renderer,
        words=_WORDS,
        unexpected=("Something went wrong", "The log has the details. Try again in a minute."),
        home=Action("Go to the neighbourhoods", "/"),
        sign_in=Action("Go to the neighbourhoods", "/"),
    )
