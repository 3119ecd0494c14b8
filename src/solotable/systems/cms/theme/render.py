"""The theme as HTML: pages, the contact form and problems, from the templates of this package."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from solotable.pages.assets import Assets
from solotable.pages.forms import Form
from solotable.systems.browser.dates import Moment
from solotable.systems.browser.render import Branding, Renderer

from .layout import Layout

PACKAGE = "solotable.systems.cms.theme"
#: Below a path that no page can have.
PREFIX = "/public/theme"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownComment:
    """A comment on a post."""

    name: str
    text: str
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPost:
    """A post in a list."""

    title: str
    href: str
    at: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ribbon:
    """The band above a preview: what is shown, and until when the link works."""

    status: str
    version: int
    saved: Moment | None
    public_from: Moment | None
    expires: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPage:
    """What a template shows of a page."""

    path: str
    title: str
    description: str
    is_post: bool
    layout: Layout
    at: Moment | None = None
    comments: tuple[ShownComment, ...] = ()
    posts: tuple[ShownPost, ...] = ()
    ribbon: Ribbon | None = None
    #: The contact form, on the page that has it.
    form: Form | None = None
    #: What to say after a message was sent.
    sent: str = ""


class Theme:
    """Renders the pages of all sites."""

    def __init__(self) -> None:
        self.assets = Assets("solotable.systems.browser", PACKAGE, prefix=PREFIX)
        self.renderer = Renderer(PACKAGE, Branding(name="", stylesheet="theme.css"), self.assets)
        #: Differs for another release of the theme, for entity tags.
        self.tag = f"{zlib.crc32(_sources() + self.assets.url('theme.css').encode()):08x}"

    def html(self, template: str, *, site: Any, page: Any, **context: Any) -> str:
        """Return a page of a site as text."""
        return self.renderer.html(template, site=site, page=page, **context)


def _sources() -> bytes:
    folder = resources.files(PACKAGE) / "templates"
    found = sorted((each.name, each.read_bytes()) for each in folder.iterdir())
    return b"".join(data for _, data in found)
