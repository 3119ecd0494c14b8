"""Links in pages and menus: paths of the site, fragments, and URLs of web, mail and telephone only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_LONGEST = 2000
_MAX_LABEL = 200
#: A path of this host, never `//host`, nor `/\\host`, which browsers read as another host.
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*|/")
_FRAGMENT = re.compile(r"#[A-Za-z][A-Za-z0-9_-]{0,99}")
_URL = re.compile(
    r"(?:https?://[^\x00-\x20\x7f/\\@][^\x00-\x20\x7f\\]*|(?:mailto|tel):[^\x00-\x20\x7f\\]+)", re.IGNORECASE
)
_LABELS = ("label", "text", "title", "name")
_TARGETS = ("href", "url", "link", "to")


@dataclass(frozen=True, slots=True)
class Link:
    """A link with its text; `external` if it leads to another host."""

    label: str
    href: str

    @property
    def external(self) -> bool:
        """Whether the link leads to another host."""
        return self.href.lower().startswith(("http:", "https:"))

    def is_current(self, path: str) -> bool:
        """Return whether a path is the link's, or below it."""
        return self.href == path or (self.href != "/" and path.startswith(f"{self.href}/"))


def safe_href(target: object) -> str | None:
    """Return a link that a browser may follow; None for all others, such as scripts and data.

    >>> safe_href(" /team "), safe_href("#visit"), safe_href("javascript:alert(1)"), safe_href("//a.example")
    ('/team', '#visit', None, None)
    """
    if not isinstance(target, str) or len(target) > _LONGEST:
        return None
    text = target.strip()
    return text if any(each.fullmatch(text) for each in (_PATH, _FRAGMENT, _URL)) else None


def link_of(tree: Any) -> Link | None:
    """Return the link of a JSON object such as `{"label": "Shop", "href": "/shop"}`; None for another."""
    if not isinstance(tree, dict):
        return None
    href = next((found for name in _TARGETS if (found := safe_href(tree.get(name)))), None)
    label = next((text for name in _LABELS if isinstance(text := tree.get(name), str) and text.strip()), "")
    return None if href is None or not label else Link(label.strip()[:_MAX_LABEL], href)


def links_of(trees: object, *, limit: int) -> tuple[Link, ...]:
    """Return the links of a JSON list, without entries that are none."""
    given: Iterable[Any] = trees if isinstance(trees, list) else ()
    return tuple(link for each in given if (link := link_of(each)) is not None)[:limit]
