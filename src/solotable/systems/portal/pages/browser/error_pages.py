"""The words of the portal's error pages."""

from __future__ import annotations

from solotable.systems.browser.error_pages import Action, ErrorPages
from solotable.systems.browser.render import Renderer

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


def error_pages(renderer: Renderer) -> ErrorPages:
    """Return the portal's error pages."""
    return ErrorPages(
        renderer=renderer,
        words=_WORDS,
        unexpected=("Something went wrong", "The portal's log has the details. Try again in a minute."),
        home=Action("Go to the library", "/"),
        sign_in=Action("Sign in", "/sign-in"),
    )
