"""HTML from templates: autoescaped, strict about unknown names, with the headers of every page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
from starlette.responses import HTMLResponse

from solotable.pages.assets import Assets

#: A page runs nothing, loads its own styles and pictures, and posts to its own host.
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branding:
    """What an installation is called, and the stylesheet of its pages beside `base.css`."""

    name: str
    stylesheet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NavigationLink:
    """A link of the main navigation; `count` is a number beside it."""

    label: str
    href: str
    current: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UserHeader:
    """The signed-in user in the header of a page."""

    name: str
    #: A word below the name; empty for none.
    role: str = ""
    links: tuple[NavigationLink, ...] = ()

    @property
    def initials(self) -> str:
        """Return up to two letters of the name."""
        return initials_of(self.name)


def initials_of(name: str) -> str:
    """Return up to two letters: of the first and the last word of a name.

    >>> initials_of("Wanda van Kerr"), initials_of("")
    ('WK', '')
    """
    words = name.split()
    return "".join(word[0] for word in (words[:1] + words[1:][-1:])).upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What the last form did, and the form that undoes it."""

    title: str
    text: str = ""
    undo: str = ""
    fields: tuple[tuple[str, str], ...] = ()


class Renderer:
    """Renders the `templates` of a package, which may use and replace those that all systems share."""

    def __init__(self, package: str, branding: Branding, assets: Assets) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.ChoiceLoader(
                [jinja2.PackageLoader(each, "templates") for each in (package, "solotable.systems.browser")]
            ),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals["site"] = branding
        self._environment.globals["static"] = assets.url

    def html(self, template: str, **context: Any) -> str:
        """Return a page as text."""
        defaults = {"user": None, "done": None, "form_token": "", "conflict": None}
        return self._environment.get_template(template).render(defaults | context)

    def respond(
        self,
        template: str,
        *,
        status: int = 200,
        policy: str = POLICY,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Return a page as a response."""
        given = {"content-security-policy": policy, "referrer-policy": "same-origin", **(headers or {})}
        return HTMLResponse(self.html(template, **context), status_code=status, headers=given)
