"""The links in free JSON: values of attributes that hold one, as `href`, `ctaLink` or `buttonUrl`.

Only links to pages of the site itself count: a path, or a URL whose host is the site's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

from solotable.errors import DataError
from solotable.web.tenancy.hostnames import canonical_host

from .slugs import clean_slug

_NAMES = re.compile(r"(?:href|link|url|to)$", re.IGNORECASE)
#: What a page may be nested; deeper it is not stored.
_DEEPEST = 64
_LONGEST = 2000


def links_in(tree: Any, domain: str | None = None) -> set[str]:
    """Return the paths of the site that a tree of JSON links to, each in its one spelling.

    >>> sorted(links_in([{"marks": [{"href": "/About Us?x#y"}]}, {"ctaLink": "https://a.org/b"}], "a.org"))
    ['/about-us', '/b']
    """
    found = (path_of(text, domain) for text in _texts(tree, 0))
    return {path for path in found if path is not None}


def _texts(tree: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(tree, dict):
        for name, value in tree.items():
            if isinstance(value, str):
                if _NAMES.search(name):
                    yield value
            else:
                yield from _texts(value, depth + 1)
    elif isinstance(tree, list):
        for each in tree:
            yield from _texts(each, depth + 1)


def path_of(link: str, domain: str | None) -> str | None:
    """Return the path of the site that a link leads to; None for what leads elsewhere, or nowhere."""
    try:
        parts = urlsplit(link.strip()) if len(link) <= _LONGEST else None
        if parts is None or parts.scheme not in ("", "http", "https"):
            return None
        if parts.netloc and (domain is None or canonical_host(parts.netloc.rpartition("@")[2]) != domain):
            return None
        if not parts.path.startswith("/"):
            # A site has no page whose links are relative to it, but for the bare host.
            return "/" if parts.netloc and not parts.path else None
        return clean_slug(unquote(parts.path))
    except (ValueError, DataError):
        return None
